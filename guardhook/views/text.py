"""Words for a terminal: escaped, measured in columns, cut without splitting a character.

Whatever an agent, a harness or a file said goes through `one_line` or `block` before it is printed: no control character, no invisible or reordering
one gets to the terminal as itself. Measuring is done on the escaped text.
"""

from __future__ import annotations

import unicodedata

from guardhook.core.jsontext import printable

_UNBOUNDED = 1 << 40
_LONGEST_ESCAPE = 10
_MARKS = 2


def cells(text: str) -> int:
    """Columns that escaped text takes on a terminal: East Asian wide characters and emoji two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    if char < "\x80":
        return 1
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1


def fit(text: str, columns: int) -> str:
    """The text, cut with `…` so that it takes at most this many columns. It must be escaped already."""
    if text.isascii():
        return text if len(text) <= columns else text[: columns - 1] + "…" if columns > 0 else ""
    used = whole = 0
    for index, char in enumerate(text):
        used += _width(char)
        if used <= columns - 1:
            whole = index + 1
        elif used > columns:
            return text[:whole] + "…" if columns > 0 else ""
    return text


def pad(text: str, columns: int) -> str:
    """The text cut or filled to exactly this many columns."""
    short = fit(text, columns)
    return short + " " * (columns - cells(short))


def one_line(text: str, columns: int = _UNBOUNDED) -> str:
    """Anything as one harmless line of at most this many columns."""
    start = text[: columns + 1]
    if start.isascii() and start.isprintable():
        return start if len(start) <= columns else start[: columns - 1] + "…" if columns > 0 else ""
    return fit(harmless(start), columns)


def harmless(text: str) -> str:
    """One line in which whatever could move the cursor, hide or reorder text is a visible escape.

    Accents stay on their letters (at most two), and the sign that makes a symbol an emoji stays behind it; anywhere else they could hide something.
    """
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    base, marks = "", 0
    for char in text:
        if char < "\x7f" and char.isprintable():
            out.append(char)
        elif marks < _MARKS and base and _belongs(char, base):
            out.append(char)
            marks += 1
            continue
        else:
            out.append(printable(char, _LONGEST_ESCAPE))
        base, marks = char, 0
    return "".join(out)


def _belongs(char: str, base: str) -> bool:
    if "\u0300" <= char <= "\u036f":
        return base.isalpha()
    return char in "\ufe0e\ufe0f" and (unicodedata.category(base) in ("So", "Sm") or base in "#*0123456789")


def block(text: str, columns: int, most_lines: int = 40) -> list[str]:
    """Several harmless lines: line breaks stay, tabs become blanks, everything else is escaped; what is left out is counted."""
    lines = text.replace("\r\n", "\n").split("\n")
    out = [one_line(line.replace("\t", "    "), columns) for line in lines[:most_lines]]
    if len(lines) > most_lines:
        out.append(f"… {len(lines) - most_lines} more lines")
    return out


def duration(ms: float | None) -> str:
    """`350ms`, `1.2s`, `3m 4s`, `2h 5m`; `-` when unknown or negative."""
    if ms is None or ms != ms or ms < 0 or ms == float("inf"):
        return "-"
    if ms < 1000:
        return f"{round(ms)}ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    return f"{whole // 3600}h {whole // 60 % 60}m"


def relative(us: int | None, now_us: int) -> str:
    """How long ago, roughly; `-` when unknown."""
    if us is None:
        return "-"
    seconds = (now_us - us) // 1_000_000
    if seconds < -1:
        return "in the future"
    if seconds < 60:
        return "just now"
    for size, name, most in ((60, "m", 3600), (3600, "h", 86_400), (86_400, "d", 30 * 86_400)):
        if seconds < most:
            return f"{seconds // size}{name} ago"
    return f"{seconds // (30 * 86_400)}mo ago"


def cost(value: float | None) -> str:
    """Dollars with four decimals, eight for very small sums."""
    if value is None:
        return "-"
    return f"${value:.8f}" if 0 < abs(value) < 0.0001 else f"${value:.4f}"


def count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


class Paint:
    """Colours, or none: whoever prints decides once."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def red(self, text: str) -> str:
        return self._in("31", text)

    def green(self, text: str) -> str:
        return self._in("32", text)

    def yellow(self, text: str) -> str:
        return self._in("33", text)

    def cyan(self, text: str) -> str:
        return self._in("36", text)

    def status(self, status: str) -> str:
        """The status as a word with its symbol."""
        symbol, paint = {
            "running": ("●", self.cyan),
            "completed": ("✔", self.green),
            "failed": ("✘", self.red),
            "timeout": ("⧖", self.yellow),
        }.get(status, ("?", self.dim))
        return paint(f"{symbol} {status.upper()}")


def box(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Names and values with a frame around; without the frame where there is no room. Values must be escaped."""
    names = max((cells(name) for name, _ in rows), default=0)
    if width < names + 20:
        return [fit(f"{name}: {value}", max(width, 1)) for name, value in rows]
    inner = min(width - 4, max(names + 2 + cells(value) for _, value in rows))
    out = ["╭" + "─" * (inner + 2) + "╮"]
    for name, value in rows:
        out.append("│ " + pad(f"{pad(name, names)}  {value}", inner) + " │")
    out.append("╰" + "─" * (inner + 2) + "╯")
    return out
