"""Folding: the form of a text in which spelling tricks are gone, so that a policy sees what a person would read.

`fold` is Unicode NFKC, case folding, and removal of everything invisible (default-ignorable, format and control
characters, combining marks; Unicode 15.1 DerivedCoreProperties). `skeleton` maps look-alike letters of other scripts to the Latin
letters they imitate (UTS #39, the pairs that occur in shell words). Both sides of a comparison are folded alike.
"""

from __future__ import annotations

# Letters that read as Latin ones. Keys are already case-folded, so capitals need no row unless they fold elsewhere.
_LOOKALIKES = {
    # Cyrillic
    "а": "a", "в": "b", "е": "e", "ё": "e", "з": "3", "к": "k", "м": "m", "н": "h", "о": "o", "р": "p", "с": "c", "т": "t",
    "у": "y", "х": "x", "ѕ": "s", "і": "i", "ї": "i", "ј": "j", "һ": "h", "ԁ": "d", "ԛ": "q", "ԝ": "w", "ь": "b", "г": "r",
    "п": "n", "ѵ": "v", "ӏ": "l", "ғ": "f", "ү": "y", "ө": "o", "ԍ": "g", "ӡ": "3", "ѡ": "w", "ҡ": "k", "ӕ": "ae", "ԑ": "e",
    "є": "e", "ш": "w", "ѳ": "o", "ҽ": "e", "ԏ": "t", "қ": "k", "ҫ": "c", "ң": "h",
    # Greek
    "α": "a", "β": "b", "ε": "e", "η": "n", "ι": "i", "κ": "k", "μ": "u", "ν": "v", "ο": "o", "ρ": "p", "σ": "o", "ς": "c",
    "τ": "t", "υ": "u", "χ": "x", "γ": "y", "ω": "w", "ζ": "z", "ϲ": "c", "ϳ": "j", "δ": "d", "λ": "l", "π": "n", "ϱ": "p",
    # Armenian, Georgian, Cherokee (folds to its own small letters), Lisu and others that pass for Latin
    "ա": "w", "ց": "g", "զ": "q", "հ": "h", "ո": "n", "ս": "u", "օ": "o", "յ": "j", "ք": "p", "ղ": "n", "տ": "s", "լ": "l",
    "ꮎ": "o", "ꮃ": "w", "ꭺ": "a", "ꮯ": "c", "ꭼ": "e", "ꮋ": "h", "ꭻ": "j", "ꮶ": "k", "ꮮ": "l", "ꮇ": "m", "ꮲ": "p", "ꮪ": "s",
    "ꭲ": "t", "ꮩ": "v", "ꮓ": "z", "ꭰ": "d", "ꭱ": "r", "ꮢ": "r", "ꮐ": "g", "ꭹ": "y", "ꮤ": "w", "ꮿ": "b",
    "ꓐ": "b", "ꓑ": "p", "ꓓ": "d", "ꓔ": "t", "ꓖ": "g", "ꓗ": "k", "ꓙ": "j", "ꓚ": "c", "ꓜ": "z", "ꓝ": "f", "ꓟ": "m", "ꓠ": "n",
    "ꓡ": "l", "ꓢ": "s", "ꓣ": "r", "ꓦ": "v", "ꓧ": "h", "ꓪ": "w", "ꓫ": "x", "ꓬ": "y", "ꓮ": "a", "ꓰ": "e", "ꓲ": "i", "ꓳ": "o",
    "ꓴ": "u",
    # Latin letters that imitate others, small capitals, phonetic letters
    "ı": "i", "ȷ": "j", "ɑ": "a", "ɡ": "g", "ɩ": "i", "ɪ": "i", "ʟ": "l", "ǀ": "l", "ɾ": "r", "ʀ": "r", "ꜱ": "s", "ᴀ": "a",
    "ʙ": "b", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e", "ꜰ": "f", "ɢ": "g", "ʜ": "h", "ᴊ": "j", "ᴋ": "k", "ᴍ": "m", "ɴ": "n", "ᴏ": "o",
    "ᴘ": "p", "ᴛ": "t", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w", "ʏ": "y", "ᴢ": "z", "ᴦ": "r", "ʋ": "v", "ʍ": "w", "ƿ": "p", "ø": "o",
    "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ɓ": "b", "ɗ": "d", "ƙ": "k", "ɱ": "m", "ŋ": "n", "ɍ": "r", "ƒ": "f", "ɨ": "i",
    "ӿ": "x", "æ": "ae", "œ": "oe",
    # Punctuation that passes for shell punctuation
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-", "﹣": "-", "⁃": "-", "˗": "-", "ー": "-", "➖": "-", "𐆑": "-",
    "⁄": "/", "∕": "/", "⧸": "/", "╱": "/", "⟋": "/", "ⳇ": "/", "∖": "\\", "⧵": "\\",
    "․": ".", "。": ".", "٠": ".", "∗": "*", "⁎": "*", "٭": "*", "∣": "|", "ǁ": "||", "⏐": "|", "；": ";", ";": ";", "：": ":", "∶": ":", "ː": ":",
    "ʹ": "'", "ʼ": "'", "‘": "'", "’": "'", "“": '"', "”": '"', "˜": "~", "∼": "~", "⁓": "~", "‚": ",",
}  # fmt: skip

_KEEP = frozenset("\t\n\r")
# Marks that are no combining characters themselves, but decompose into nothing else.
_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
_LIGATURES = (("\ufdfa", "\u0635"), ("\ufdfb", "\u062c"))
_MANY = 24
# Texts from here on are folded by way of their distinct characters.
LONG = 16 * 1024
_DISTINCT = 4096
_CHANGED = 160
_SHOWN = bytes(c for c in range(0x80) if chr(c) in _KEEP or 0x20 <= c < 0x7F)
_LOWER = bytes(c + 32 if 0x41 <= c <= 0x5A else c for c in range(0x100))
_CONTROLS = bytes(c for c in range(0x80) if c not in _SHOWN)


def _invisible_chars() -> frozenset[str]:
    ranges = (
        (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x488, 0x489), (0x600, 0x605), (0x61C, 0x61C),
        (0x6DD, 0x6DD), (0x70F, 0x70F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E),
        (0x2060, 0x206F), (0x20D0, 0x20F0), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB),
        (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
    )  # fmt: skip
    return frozenset(chr(code) for low, high in ranges for code in range(low, high + 1))


_invisible: frozenset[str] | None = None
_ASCII_CONTROLS = (*(chr(c) for c in range(0x20) if chr(c) not in _KEEP), "\x7f")


def invisible(text: str) -> list[str]:
    """The distinct characters of the text that a reader can't see, sorted. Tab and line ends are not among them."""
    if text.isascii():
        return [c for c in _ASCII_CONTROLS if c in text] if not text.isprintable() else []
    return sorted((set(text) if len(text) < LONG else _distinct(text)) & _table())


def _table() -> frozenset[str]:
    global _invisible
    if _invisible is None:
        _invisible = _invisible_chars()
    return _invisible


def fold(text: str) -> str:
    """NFKC, case-folded, without invisible characters and combining marks. Tab, line feed and carriage return stay."""
    if text.isascii():
        text = text.lower()
        if not text.isprintable():
            for char in _ASCII_CONTROLS:
                if char in text:
                    text = text.replace(char, "")
        return text
    if len(text) >= LONG:
        folded = _by_character(text)
        if folded is not None:
            return folded
    from unicodedata import normalize

    # Marks go first: putting a long run of them in order takes the square of its length, and a minute for 100 KB.
    text = normalize("NFKC", _bare(text)).casefold()
    return normalize("NFKC", _bare(normalize("NFD", text)))


def _by_character(text: str) -> str | None:
    """`fold` of a long text: each distinct character folded once, and put in its place in the UTF-8 form, where bytes are quick to replace.

    None where that is not the same: where characters depend on their neighbours (conjoining jamo, parts of Indic vowels), or very many change.
    """
    global _known
    present = _distinct(text)
    if len(present) > _DISTINCT:
        return None
    pairs: list[tuple[str, str]] = []
    left: set[str] = set()
    for char in present:
        if char.isascii():  # a control character
            continue
        folded = fold(char)
        if _joins(char) or (folded != char and any(map(_joins, folded))):
            return None
        left.update(folded)
        if folded != char:
            pairs.append((char, folded))
    if len(pairs) > _CHANGED:
        return None
    data = text.encode("utf-8", "surrogatepass").translate(_LOWER, _CONTROLS)
    for char, folded in pairs:
        data = data.replace(char.encode("utf-8", "surrogatepass"), folded.encode("utf-8", "surrogatepass"))
    result = data.decode("utf-8", "surrogatepass")
    if not result.isascii():
        _known = result, frozenset(c for c in left if not c.isascii())
    return result


def _joins(char: str) -> bool:
    """Whether a character may become one with the starter before it."""
    from unicodedata import category, combining

    return "\u1160" <= char <= "\u11ff" or (category(char) in ("Mc", "Mn") and not combining(char))


_known: tuple[str, frozenset[str]] = ("", frozenset())


def _distinct(text: str) -> frozenset[str]:
    """The distinct characters of a long text but for ASCII ones that are seen. The last text is remembered: it is asked for more than once."""
    global _known
    if _known[0] is not text:
        rest = text.encode("utf-8", "surrogatepass").translate(None, _SHOWN)
        _known = text, frozenset(rest.decode("utf-8", "surrogatepass"))
    return _known[1]


def _bare(text: str) -> str:
    """Without combining marks and invisible characters. Long ligatures, eight and eighteen letters, become their first one."""
    from unicodedata import combining

    present = set(text)
    for char, letter in _LIGATURES:
        if char in present:
            text = text.replace(char, letter)
    gone = [c for c in present if not c.isascii() and (combining(c) or c in _MARKS)]
    gone += present & _table()
    if len(gone) > _MANY:
        return text.translate(dict.fromkeys(map(ord, gone)))
    # Only what occurs is replaced: `str.translate` costs 5 ms per 100 KB, this next to nothing.
    for char in gone:
        text = text.replace(char, "")
    return text


def fold_name(text: str) -> str:
    """`fold` for a name, where white space of any kind is noise as well: no line end or tab survives."""
    folded = fold(text)
    return folded.replace("\n", "").replace("\r", "").replace("\t", "") if not folded.isprintable() else folded


def skeleton(folded: str) -> str:
    """Look-alikes of a folded text mapped to the Latin letters and ASCII signs that they imitate."""
    if folded.isascii():
        return folded
    present = set(folded) if len(folded) < LONG else _distinct(folded)
    for char in present.intersection(_LOOKALIKES):
        folded = folded.replace(char, _LOOKALIKES[char])
    return folded
