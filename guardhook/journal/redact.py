"""Taking secrets out of what is about to be recorded.

Rules come from `guardhook.journal.rules`, frozen into rows `(name, where, gates, anchors, pattern, group)`:
- A row is considered when one of its gates occurs. where says in which form of the text: `raw`, `low` (lower case), `long` (only the runs of 16
  and more token characters: most texts have few, so that dozens of token prefixes cost nothing), or `any` (always: a user's own rule).
- The pattern is tried where one of the anchors stands (in the text, for `low` in its lower case); `any` patterns search. group is what is replaced.
A pattern of None means private key blocks, which are found without a regular expression; one that is a text is compiled when it is first wanted,
which only commands have the time for.

Markers are `[REDACTED:<name>]`, and a text that was redacted once is not changed by doing it again. When the time for patterns runs
out, the whole string becomes `[REDACTED:limit]`; nothing passes unread.
"""

from __future__ import annotations

import time

from guardhook.core import limits
from guardhook.core.jsontext import pointer
from guardhook.core.restore import restore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.restore import Pattern

Row = tuple[str, str, tuple[str, ...], tuple[str, ...], "tuple[object, ...] | str | None", int]

MODES = frozenset(("redacted", "full", "hashed", "none"))
MARK = "[REDACTED:"
LIMIT = "[REDACTED:limit]"
NAMED = "[REDACTED:named]"
KEY = "[REDACTED:private_key]"

# Processor time that all patterns together may take for one value, seconds.
SECONDS = 0.25
DEPTH = 200
POINTERS = 2000
_RUN = 16
_LONG = b"a" * _RUN
_LARGE = 4096
_FEW = 64  # long runs that are looked for one by one
_PASSES = 6
_KEY_LINE = 256
_SPARSE = 64  # characters of a text for each place of a gate, at least, for anchors to be looked for there

# A JSON member with such a name holds a secret, whatever it looks like. Compared in lower case without `_`, `-`, `.` and blanks.
_NAMES = frozenset((
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "authorization", "proxyauthorization",
    "cookie", "setcookie", "xapikey", "credential", "credentials", "privatekey", "secretkey", "accesskey", "bearer", "connectionstring",
    "sharedaccesskey", "accountkey", "signingkey", "encryptionkey", "masterkey", "authkey", "otp", "totp", "dsn",
))  # fmt: skip
_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "secretkey",
    "privatekey",
    "accesskey",
    "credentials",
)
# Names with such an ending that hold no secret.
_HARMLESS = frozenset((
    "pagetoken", "nextpagetoken", "nexttoken", "previouspagetoken", "prevpagetoken", "continuationtoken", "synctoken", "cursortoken",
    "progresstoken", "maxtoken", "stoptoken", "eostoken", "bostoken", "padtoken", "nosecret",
))  # fmt: skip
# What a line repeats of the payload, or quotes from it.
_QUOTING = ("effects", "verdict", "tool", "cwd", "call", "agent", "native_event", "client")
_HINTS = ("pass", "secret", "token", "key", "auth", "cookie", "cred", "pwd", "bearer", "connection", "otp", "dsn")

_patterns: dict[int, tuple[object, Pattern]] = {}  # by identity, beside what keeps it
_tables: tuple[bytes, bytes] | None = None


def redact(value: object, rows: tuple[Row, ...], mode: str = "redacted") -> tuple[object, list[str]]:
    """The value as it may be recorded, and JSON pointers (RFC 6901) of the strings that were changed. The value itself is never changed.

    full keeps everything; hashed replaces every string by the SHA-256 of its UTF-8 bytes; none gives {}; any other word means redacted.
    In these two modes, and for more than POINTERS strings, the pointer is that of the whole value. Object keys are never changed.
    """
    if mode == "full":
        return value, []
    if mode == "none":
        return {}, [""]
    if mode == "hashed":
        return _Walk(_hash_everything, False).run(value), [""]
    texts, names = _collect(value)
    named = any(hint in names for hint in _HINTS)
    # A long text is looked at by itself: rows that only its neighbours call for would cost a pass over it.
    hit = _candidates("\0".join([text for text in texts if len(text) < _LARGE]), rows)
    large = {text: _candidates(text, rows) for text in texts if len(text) >= _LARGE}
    if not hit and not named and not any(large.values()):
        return value, []
    cleaner = _Cleaner(hit, large)
    walk = _Walk(cleaner.clean, named)
    new = walk.run(value)
    return new, walk.pointers if len(walk.pointers) <= POINTERS else [""]


def protect(data: dict[str, object], rows: tuple[Row, ...], mode: str) -> dict[str, object]:
    """The data of a `hook.received` line as it may be recorded: payload, effects and verdict redacted, and cut to limits.RECORD_BYTES.

    Sets redacted and cut (pointers into payload), and redaction where the mode is not the usual one. Where the payload is hashed or left out,
    what effects and verdict quote of it goes as well.
    """
    out = dict(data)
    payload = data.get("payload")
    room = limits.RECORD_BYTES * 3 // 4
    cut: list[str] = []
    step = None
    if mode != "none" and _weight(payload) > room:
        from guardhook.journal import fit

        step = fit.level(payload, room)
        if step is not None:
            payload, cut = fit.clip(payload, step + fit.MARGIN)
    out["payload"], out["redacted"] = redact(payload, rows, mode)
    if step is not None:
        out["payload"], cut = fit.trim(out["payload"], cut, step)
    if cut:
        out["cut"] = cut
    if mode in ("hashed", "none"):
        from guardhook.journal.strip import strip

        bare = strip(data)
        out["effects"], out["verdict"] = bare.get("effects", []), bare.get("verdict")
        out["redaction"] = mode
    elif mode == "full":
        out["redaction"] = mode
    else:
        rest, _ = redact({name: data[name] for name in _QUOTING if data.get(name)}, rows, mode)
        if isinstance(rest, dict):
            out.update(rest)
    return out


def _weight(value: object) -> int:
    texts, _ = _collect(value)
    return sum(map(len, texts))


def redact_text(text: str, rows: tuple[Row, ...]) -> str:
    """One string without its secrets."""
    hit = _candidates(text, rows)
    return _Cleaner(hit).clean(text) if hit else text


def secret_name(name: str) -> bool:
    """Whether a member of this name holds a secret."""
    tame = name.lower()
    for char in "_-. ":
        if char in tame:
            tame = tame.replace(char, "")
    return tame in _NAMES or (tame.endswith(_ENDINGS) and tame not in _HARMLESS)


def _collect(value: object) -> tuple[list[str], str]:
    """All strings below a value, and all distinct keys in lower case as one text."""
    texts: list[str] = []
    keys: set[str] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            keys.update(item)
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
    return texts, "\0".join(keys).lower()


def _lower(text: str) -> str:
    """Lower case with every character in its place, and `?` for what no literal of ours holds: a text of one byte per character is searched far quicker."""
    if not text.isascii():
        # The only characters outside ASCII whose lower case has a letter of ASCII (Unicode 15).
        for char, letter in (("İ", "i"), ("\u212a", "k")):
            if char in text:
                text = text.replace(char, letter)
        text = text.encode("ascii", "replace").decode("ascii")
    return text.lower()


def _long_runs(text: str) -> str:
    """The runs of at least _RUN token characters in a text."""
    global _tables
    if _tables is None:
        inside = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
        _tables = (
            bytes(97 if code in inside else 32 for code in range(256)),
            bytes(code if code in inside else 32 for code in range(256)),
        )
    raw = text.encode("ascii", "replace")
    mask = raw.translate(_tables[0])
    found: list[str] = []
    at = mask.find(_LONG)
    while at >= 0:
        if len(found) == _FEW:  # a dump of some kind: parting all of it is quicker
            break
        start = mask.rfind(b" ", 0, at) + 1
        end = mask.find(b" ", at)
        found.append(text[start : end if end >= 0 else len(text)])
        at = mask.find(_LONG, end) if end >= 0 else -1
    else:
        return " ".join(found)
    return " ".join([word for word in raw.translate(_tables[1]).decode("ascii").split() if len(word) >= _RUN])


def _candidates(text: str, rows: tuple[Row, ...]) -> list[Row]:
    """The rows that could change the text."""
    forms = {"raw": text}
    found: list[Row] = []
    known: dict[tuple[str, str], bool] = {}
    for row in rows:
        where = row[1]
        if where == "any":
            found.append(row)
            continue
        form = forms.get(where)
        if form is None:
            form = forms[where] = _lower(text) if where == "low" else _long_runs(text)
        if not form or (where == "low" and all(known.get((where, anchor)) is False for anchor in row[3])):
            continue
        for gate in row[2]:
            here = known.get((where, gate))
            if here is None:
                here = known[where, gate] = gate in form
            if here:
                if where == "long" and row[3] == row[2]:
                    # Only prefixes that occur are looked for in the text.
                    row = (row[0], where, row[2], tuple([g for g in row[2] if g in form]), row[4], row[5])
                found.append(row)
                break
    return _narrowed(found, known) if len(text) >= _LARGE else found


def _narrowed(rows: list[Row], known: dict[tuple[str, str], bool]) -> list[Row]:
    """The rows without anchors that can't occur because a gate that is part of them doesn't: each would cost a pass over the text."""
    absent = {
        form: [gate for (where, gate), here in known.items() if where == form and not here] for form in ("raw", "low")
    }
    out: list[Row] = []
    for row in rows:
        where = row[1]
        if absent.get(where):
            left = tuple([anchor for anchor in row[3] if not any(gate in anchor for gate in absent[where])])
            if len(left) < len(row[3]):
                row = (row[0], where, row[2], left, row[4], row[5])
        if row[3] or row[4] is None or where == "any":
            out.append(row)
    return out


class _Cleaner:
    """Applies rows to strings within one allowance of time."""

    __slots__ = ("_end", "_large", "_rows")

    def __init__(self, rows: list[Row], large: dict[str, list[Row]] | None = None) -> None:
        self._rows = rows
        self._large = large  # rows of texts of their own
        self._end = time.process_time() + SECONDS

    def clean(self, text: str) -> str:
        rows = self._rows if self._large is None or len(text) < _LARGE else self._large.get(text, self._rows)
        if not rows:
            return text
        try:
            # What was replaced can make its neighbour match (a prefix counts only at the start of a word), so until nothing changes.
            for _ in range(_PASSES):
                new = self._pass(text, rows)
                if new == text:
                    return text
                text = new
        except (TimeoutError, MemoryError):
            pass
        return LIMIT

    def _pass(self, text: str, rows: list[Row]) -> str:
        forms: dict[str, str] = {}
        seen: dict[tuple[bool, str], list[int]] = {}  # rows share anchors
        for name, where, gates, anchors, frozen, group in rows:
            mark = f"{MARK}{name}]"
            if frozen is None:
                new = _key_blocks(text)
            elif where == "any":
                new = self._searched(text, _pattern(frozen), mark, group)
            else:
                places = _places(text, where == "low", gates, anchors, forms, seen)
                # Restoring a pattern costs more than looking for its anchors.
                new = self._anchored(text, places, _pattern(frozen), mark, group) if places else text
            if new is not text:
                text, forms, seen = new, {}, {}
        return text

    def _left(self) -> float:
        left = self._end - time.process_time()
        if left <= 0:
            raise TimeoutError
        return left

    def _anchored(self, text: str, places: list[int], pattern: Pattern, mark: str, group: int) -> str:
        marked = MARK in text
        pieces: list[str] = []
        done = 0
        left = self._left()
        for number, place in enumerate(places):
            if place < done or (marked and _in_mark(text, place)):
                continue
            if number % 64 == 63:
                left = self._left()
            match = pattern.match(text, place, timeout=left)
            if match is None:
                continue
            start, end = match.span(group)
            if start < done or end <= start or text.startswith(MARK, start):
                continue
            pieces.append(text[done:start])
            pieces.append(mark)
            done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _searched(self, text: str, pattern: Pattern, mark: str, group: int) -> str:
        pieces: list[str] = []
        done = place = 0
        while place <= len(text):
            match = pattern.search(text, place, timeout=self._left())
            if match is None:
                break
            start, end = match.span(group)
            whole = match.span()
            place = max(whole[1], place + 1, end)
            if end > start >= done and not text.startswith(MARK, start) and not _in_mark(text, start):
                pieces.append(text[done:start])
                pieces.append(mark)
                done = end
        return "".join((*pieces, text[done:])) if pieces else text


def _places(
    text: str,
    lower: bool,
    gates: tuple[str, ...],
    anchors: tuple[str, ...],
    forms: dict[str, str],
    seen: dict[tuple[bool, str], list[int]],
) -> list[int]:
    """Where the anchors stand, in order. forms and seen keep what is known of this text."""
    form = text
    if lower:
        form = forms.get("low") or forms.setdefault("low", _lower(text))
    places: list[int] = []
    several = 0
    for anchor in anchors:
        found = seen.get((lower, anchor))
        if found is None:
            found = seen[lower, anchor] = _occurrences(form, lower, gates, anchor, seen)
        if found:
            several += 1
            places = found if several == 1 else places + found
    return sorted(places) if several > 1 else places


def _occurrences(
    form: str, lower: bool, gates: tuple[str, ...], anchor: str, seen: dict[tuple[bool, str], list[int]]
) -> list[int]:
    """Where an anchor stands. In a long text one that has a gate in it is looked for only where that gate stands: a pass less over the text."""
    if len(form) >= _LARGE:
        for gate in gates:
            at = anchor.find(gate)
            if at < 0 or gate == anchor:
                continue
            places = seen.get((lower, gate))
            if places is None:
                places = seen[lower, gate] = _occurrences(form, lower, (), gate, seen)
            if len(places) * _SPARSE < len(form):
                return [place - at for place in places if place >= at and form.startswith(anchor, place - at)]
    found: list[int] = []
    at = form.find(anchor)
    while at >= 0:
        found.append(at)
        at = form.find(anchor, at + 1)
    return found


def _in_mark(text: str, place: int) -> bool:
    """Whether a place lies inside a marker."""
    start = text.rfind(MARK, max(0, place - 48), place)
    return start >= 0 and "]" not in text[start:place]


def _pattern(frozen: tuple[object, ...] | str) -> Pattern:
    known = _patterns.get(id(frozen))
    if known is None:
        if isinstance(frozen, str):
            import regex

            known = (frozen, regex.compile(frozen, regex.V0))
        else:
            known = (frozen, restore(frozen))
        _patterns[id(frozen)] = known
    return known[1]


_BEGIN, _END, _DASHES = "-----BEGIN ", "-----END ", "-----"
_TYPE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ")


def _header_end(text: str, start: int) -> int:
    """The end of `TYPE PRIVATE KEY-----` (or `… KEY BLOCK-----`) at start, -1 when there is none."""
    dashes = text.find(_DASHES, start, start + 64)
    if dashes < 0:
        return -1
    kind = text[start:dashes]
    fits = kind.endswith(("PRIVATE KEY", "PRIVATE KEY BLOCK")) and _TYPE.issuperset(kind)
    return dashes + len(_DASHES) if fits else -1


def _key_blocks(text: str) -> str:
    """Private key blocks replaced. A block without an end swallows limits.REDACT_OPEN_BLOCK characters, one with an end at most eight times that."""
    pieces: list[str] = []
    done = 0
    begin = text.find(_BEGIN)
    while begin >= 0:
        body = _header_end(text, begin + len(_BEGIN))
        if body < 0:
            begin = text.find(_BEGIN, begin + 1)
            continue
        stop = min(len(text), body + limits.REDACT_OPEN_BLOCK)
        end = text.find(_END, body, body + 8 * limits.REDACT_OPEN_BLOCK)
        while end >= 0:
            closed = _header_end(text, end + len(_END))
            if closed >= 0:
                stop = closed
                break
            end = text.find(_END, end + 1, body + 8 * limits.REDACT_OPEN_BLOCK)
        pieces.append(text[done:begin])
        pieces.append(KEY)
        done = stop
        begin = text.find(_BEGIN, done)
    return "".join((*pieces, text[done:])) if pieces else text


def _hash_everything(text: str) -> str:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from _sha2 import sha256  # type: ignore[import-not-found]  # its name from Python 3.12 on
    digest: str = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest


class _Walk:
    """Rebuilds a JSON value where a function changes strings; what doesn't change is shared, not copied."""

    __slots__ = ("_change", "_lists", "_named", "_open", "_path", "pointers")

    def __init__(self, change: object, named: bool) -> None:
        self._lists = 0  # around what is looked at
        self._open = 0  # characters that a private key may still go on for, whose lines are parted over a list
        self._change = change
        self._named = named
        self._path: list[str | int] = []
        self.pointers: list[str] = []

    def run(self, value: object) -> object:
        return self._value(value, False)

    def _value(self, value: object, named: bool) -> object:
        if isinstance(value, str):
            if self._open and self._goes_on(value):
                new = KEY
            else:
                new = self._named_string(value) if named else self._change(value)  # type: ignore[operator]
                if self._lists and new != value and new.endswith(KEY) and _END not in value[value.rfind(_BEGIN) :]:
                    self._open = limits.REDACT_OPEN_BLOCK
            if new != value:
                self.pointers.append(pointer(self._path))
                return new
            return value
        if isinstance(value, dict):
            return self._dict(value, named)
        if isinstance(value, (list, tuple)):
            return self._list(value, named)
        return value

    def _goes_on(self, value: str) -> bool:
        """Whether a text is the next line of a key that began in an earlier element of the list (as in the hunks of an editor's answer)."""
        if len(value) > _KEY_LINE or "\n" in value[:-1]:
            self._open = 0
            return False
        self._open = 0 if _END in value else max(0, self._open - len(value))
        return value != ""

    @staticmethod
    def _named_string(value: str) -> str:
        return value if not value or (value.startswith(MARK) and value.endswith("]")) else NAMED

    def _dict(self, value: dict[str, object], named: bool) -> object:
        if len(self._path) >= DEPTH:
            self.pointers.append(pointer(self._path))
            return LIMIT
        out: dict[str, object] | None = None
        for key, item in value.items():
            self._path.append(key)
            new = self._value(item, named or (self._named and secret_name(key)))
            self._path.pop()
            if new is not item:
                if out is None:
                    out = dict(value)
                out[key] = new
        return value if out is None else out

    def _list(self, value: list[object] | tuple[object, ...], named: bool) -> object:
        if len(self._path) >= DEPTH:
            self.pointers.append(pointer(self._path))
            return LIMIT
        out: list[object] | None = None
        before = self._open
        self._lists += 1
        for index, item in enumerate(value):
            self._path.append(index)
            new = self._value(item, named)
            self._path.pop()
            if new is not item:
                if out is None:
                    out = list(value)
                out[index] = new
        self._lists -= 1
        self._open = before
        return value if out is None else out
