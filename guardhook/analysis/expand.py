"""Word expansion: from parts to the fields that a program would receive, as far as the text tells."""

from __future__ import annotations

from guardhook.analysis import glob
from guardhook.analysis.lexer import NAME, NAME_START, ansi_escape
from guardhook.analysis.nodes import ARITH, ARRAY, CMD, HOLE, LIT, VAR, Word
from guardhook.analysis.values import EMPTY, NONE, UNKNOWN, Alt, State, Val, activate, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.ground import Ground

# Names of environment variables that usually hold a credential.
_SECRET_WORDS = ("SECRET", "TOKEN", "PASSWORD", "PASSWD", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", "_PAT", "_PASS", "AUTH_KEY", "ENCRYPTION_KEY", "SIGNING_KEY", "DATABASE_URL", "CONNECTION_STRING")  # fmt: skip
_PATTERN_WORK = 256  # texts longer than this are not matched against patterns: the result is unknown


def secret_name(name: str) -> bool:
    """Whether an environment variable of this name usually holds a credential."""
    upper = name.upper()
    return any(word in upper for word in _SECRET_WORDS) or upper.endswith(("_KEY", "_PWD"))


def fields(walker: Ground, word: Word, state: State) -> list[Val]:
    """The fields of a word after brace, tilde, parameter, command and arithmetic expansion and splitting."""
    if word.literal is not None:
        return [Val(word.literal)]
    out: list[Val] = []
    raw = walker.slice(word.start, word.end)
    for parts in glob.braces(word.parts):
        walker.spend(1)
        _fields(walker, parts, state, raw, out)
        walker.spend_words(len(out))
    return out


def single(walker: Ground, word: Word, state: State, tilde: bool = True) -> Val:
    """The value of a word where no splitting happens: assignments, redirections, here-documents."""
    if word.literal is not None:
        return Val(word.literal)
    pieces: list[str] = []
    taint = NONE
    origin = ""
    for index, part in enumerate(word.parts):
        if part[0] == LIT:
            text = part[1]
            if not part[2]:
                if tilde and text.startswith("~") and index == 0:
                    text = _tilde(walker, state, text, len(word.parts) > 1)
                elif tilde and ":~" in text:
                    text = text.replace(":~", ":" + walker.home)
                text = activate(text)
            pieces.append(text)
            continue
        for value in part_values(walker, part, state):
            pieces.append(value.text if not pieces or part[0] != VAR or part[1] not in "@*" else " " + value.text)
            taint |= value.taint
            origin = origin or value.origin
    return Val("".join(pieces), taint, origin, walker.slice(word.start, word.end))


def array(walker: Ground, word: Word, state: State) -> list[Val] | None:
    """The elements when the word is an array literal."""
    if word.parts and word.parts[-1][0] == ARRAY:
        out: list[Val] = []
        for item in word.parts[-1][1]:
            out.extend(fields(walker, item, state))
        return out
    return None


def _fields(walker: Ground, parts: list[tuple], state: State, raw: str, out: list[Val]) -> None:  # type: ignore[type-arg]
    pieces: list[str] = []
    present = False
    taint = NONE
    origin = ""
    for index, part in enumerate(parts):
        kind = part[0]
        if kind == LIT:
            text = part[1]
            if part[2]:
                present = True
            else:
                if index == 0 and text.startswith("~"):
                    text = _tilde(walker, state, text, len(parts) > 1)
                text = activate(text)
                present = present or bool(text)
            pieces.append(text)
            continue
        if kind == ARRAY:
            continue
        quoted = part[-1] if kind in (VAR, CMD, ARITH) else True
        values = part_values(walker, part, state)
        many = kind == VAR and (part[1] == "@" or part[1].endswith("[@]")) and part[2] != "#"
        for number, value in enumerate(values):
            taint |= value.taint
            origin = origin or value.origin
            if number and (many or not quoted):
                out.append(Val("".join(pieces), taint, origin, raw))
                pieces = []
            elif number:
                pieces.append(" ")
            if quoted:
                pieces.append(value.text)
                present = present or not many or bool(values)
                continue
            text = activate(value.text)
            split = _split(text, state)
            if text and text[0] in " \t\n" and pieces:
                out.append(Val("".join(pieces), taint, origin, raw))
                pieces = []
            for place, field in enumerate(split):
                if place:
                    out.append(Val("".join(pieces), taint, origin, raw))
                    pieces = []
                pieces.append(field)
                present = True
            if text and len(split) and text[-1] in " \t\n" and index + 1 < len(parts):
                out.append(Val("".join(pieces), taint, origin, raw))
                pieces = []
                present = False
    if present or "".join(pieces):
        out.append(Val("".join(pieces), taint, origin, raw))


def _split(text: str, state: State) -> list[str]:
    """Field splitting of an unquoted expansion."""
    ifs = state.vars.get("IFS")
    if isinstance(ifs, Val) and ifs.known:
        if not ifs.text:
            return [text] if text else []
        for char in ifs.text:
            text = text.replace(char, "\n")
        return [f for f in text.split("\n") if f]
    return text.split()


def _tilde(walker: Ground, state: State, text: str, more: bool) -> str:
    name, slash, rest = text[1:].partition("/")
    if not slash and more and not name:
        # `~$x` isn't expanded by bash, but zsh and a later eval may: the home folder is the unsafe reading.
        return walker.home_of(state) + HOLE
    if not name:
        return walker.home_of(state) + slash + rest
    if name == "+":
        return (walker.cwd(state) or HOLE) + slash + rest
    if name == "-":
        return (state.old or HOLE) + slash + rest
    if all(c in NAME or c in "-." for c in name):
        home = "/root" if name == "root" else (walker.home if name == walker.facts.user else "/home/" + name)
        return home + slash + rest
    return text


def part_values(walker: Ground, part: tuple, state: State) -> list[Val]:  # type: ignore[type-arg]
    """What a part stands for: mostly one value; none or several for positional parameters and arrays."""
    kind = part[0]
    if kind == LIT:
        return [Val(part[1])]
    if kind == CMD:
        value = walker.substitute(part[1], state)
        return [Val(value.text.rstrip("\n"), value.taint, value.origin)]
    if kind == ARITH:
        return [_arithmetic(walker, part[1], state)]
    if kind == VAR:
        return parameter(walker, part[1], part[2], part[3], state)
    return [walker.process(part[1], part[2], state)]


def _arithmetic(walker: Ground, word: Word, state: State) -> Val:
    text = single(walker, word, state).text
    for _ in range(8):  # `$((x))` names variables without a `$`
        names = _names(text)
        if not names:
            break
        for name in names:
            value = lookup(walker, name, state)
            if value is None or not value.known:
                return UNKNOWN
            text = text.replace(name, value.text or "0")
    number = _calculate(text)
    return Val(str(number)) if number is not None else UNKNOWN


def _names(text: str) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(text):
        if text[i] in NAME_START and (i == 0 or text[i - 1] not in NAME):
            j = i + 1
            while j < len(text) and text[j] in NAME:
                j += 1
            out.append(text[i:j])
            i = j
        else:
            i += 1
    return sorted(out, key=len, reverse=True)


def _calculate(text: str) -> int | None:
    """Sums, differences, products and quotients of decimal numbers; anything else is None."""
    text = text.replace(" ", "")
    if not text or len(text) > 64 or any(c not in "0123456789+-*/%" for c in text) or "**" in text or "//" in text:
        return None
    numbers: list[int] = []
    total = 0
    operator = "+"
    i = 0
    while i < len(text):
        sign = 1
        while i < len(text) and text[i] in "+-" and (i == 0 or not text[i - 1].isdigit()):
            sign = -sign if text[i] == "-" else sign
            i += 1
        j = i
        while j < len(text) and text[j].isdigit():
            j += 1
        if i == j:
            return None
        number = sign * int(text[i:j])
        if operator == "+":
            numbers.append(number)
        elif operator == "-":
            numbers.append(-number)
        elif operator == "*":
            numbers[-1] *= number
        elif number == 0:
            return None
        else:
            numbers[-1] = numbers[-1] // number if operator == "/" else numbers[-1] % number
        operator = text[j : j + 1]
        i = j + 1
    total = sum(numbers)
    return total if not operator else None


def referred(name: str, state: State) -> str:
    """The variable that a name stands for by `declare -n`."""
    for _ in range(4):
        base, bracket, rest = name.partition("[")
        found = state.refs.get(base)
        if not found or found == base:
            break
        name = found + bracket + rest
    return name


def lookup(walker: Ground, name: str, state: State) -> Val | None:
    """The value of a scalar variable; None when the text doesn't say."""
    if state.refs:
        name = referred(name, state)
    value = state.vars.get(name)
    if value is None:
        return walker.environment(name, state)
    if isinstance(value, Alt):
        return walker.pick(value)
    if isinstance(value, list):
        return value[0] if value else EMPTY
    return value


def parameter(walker: Ground, name: str, operator: str, argument: Word | None, state: State) -> list[Val]:
    """`$name` and `${name…}`."""
    if name == HOLE:
        return [UNKNOWN]
    if state.refs:
        name = referred(name, state)
    values: list[Val] | None = None
    if name in ("@", "*"):
        values = list(state.arguments)
    elif name.endswith(("[@]", "[*]")):
        stored = state.vars.get(name[:-3])
        values = stored if isinstance(stored, list) else ([lookup(walker, name[:-3], state) or UNKNOWN])
    if values is not None:
        if operator == "#":
            return [Val(str(len(values)))]
        if not operator:
            return values
        if operator.startswith(":") and operator[1:] in ("", "-", "+"):
            return _slice_list(walker, values, operator, argument, state)
        return [_operate(walker, name, v, operator, argument, state) for v in values]
    value: Val | None
    if name.isdigit():
        index = int(name[:6])
        if index == 0:
            value = Val(state.name)
        else:
            value = state.arguments[index - 1] if index <= len(state.arguments) else EMPTY
    elif name in "#?$!-":
        value = Val(str(len(state.arguments))) if name == "#" else UNKNOWN
    elif name.endswith("]"):
        value = _element(walker, name, state)
    else:
        value = lookup(walker, name, state)
    if operator == "!":
        if value is None or not value.known:
            return [UNKNOWN]
        return parameter(walker, value.text, "", None, state) if value.text.isidentifier() else [UNKNOWN]
    if value is None and secret_name(name) and not operator.startswith((":+", "+", "#")):
        value = Val(HOLE, frozenset(("env-secret",)), "$" + name)
    if not operator:
        return [value if value is not None else UNKNOWN]
    return [_operate(walker, name, value, operator, argument, state)]


def _element(walker: Ground, name: str, state: State) -> Val | None:
    base, _, index = name[:-1].partition("[")
    stored = state.vars.get(base)
    if isinstance(stored, list):
        if index.startswith("$"):
            found = lookup(walker, index.strip("${}"), state)
            index = found.text if found is not None else index
        number = _calculate(index)
        if number is not None and -len(stored) <= number < len(stored):
            return stored[number]
        return UNKNOWN if number is None else EMPTY
    value = state.vars.get(name)
    return value if isinstance(value, Val) else (lookup(walker, base, state) if index == "0" else None)


def _slice_list(walker: Ground, values: list[Val], operator: str, argument: Word | None, state: State) -> list[Val]:
    text = single(walker, argument, state).text if argument is not None else ""
    if operator == ":-":
        return values or [Val(text)]
    if operator == ":+":
        return [Val(text)] if values else []
    start, _, length = text.partition(":")
    first = _calculate(start)
    if first is None:
        return values
    first = max(first - 1, 0) if first > 0 else first
    count = _calculate(length) if length else None
    return values[first:] if count is None else values[first : first + count]


def _operate(walker: Ground, name: str, value: Val | None, operator: str, argument: Word | None, state: State) -> Val:
    if operator in (":-", "-", ":=", "="):
        if value is not None and value.text and not (HOLE in value.text and name not in state.vars):
            return value
        default = single(walker, argument, state) if argument is not None else EMPTY
        if operator in (":=", "="):
            state.vars[name] = default
        return default
    if operator in (":+", "+"):
        if value is not None and value.known:
            return single(walker, argument, state) if value.text and argument is not None else EMPTY
        other = single(walker, argument, state) if argument is not None else EMPTY
        return walker.pick(Alt([other, EMPTY]))
    if operator in (":?", "?"):
        # Unset or empty, the command isn't reached: whatever it is, it isn't nothing.
        return (
            value
            if value is not None and value.text != HOLE
            else Val(HOLE + "x", value.taint if value is not None else NONE)
        )
    if value is None:
        return UNKNOWN
    if operator == "#" and argument is None:
        return Val(str(len(value.text))) if value.known else UNKNOWN
    if argument is not None and len(value.text) <= _PATTERN_WORK:
        result = _transform(walker, value.text, operator, argument, state)
        if result is not None:
            return Val(result, value.taint, value.origin)
    return Val(HOLE, value.taint, value.origin)


def _transform(walker: Ground, text: str, operator: str, argument: Word, state: State) -> str | None:
    if HOLE in text and operator not in ("%", "%%", "@"):
        return None
    if operator in ("#", "##", "%", "%%"):
        pattern = single(walker, argument, state).text
        if HOLE in pattern or HOLE in text:
            return None
        return (glob.strip_prefix if operator[0] == "#" else glob.strip_suffix)(pattern, text, len(operator) == 2)
    if operator in ("/", "//", "/#", "/%"):
        both = single(walker, argument, state).text
        pattern, _, new = both.partition("/")
        if HOLE in both:
            return None
        if operator == "/#":
            rest = glob.strip_prefix(pattern, text, True)
            return rest if rest is None else new + rest if rest != text else text
        if operator == "/%":
            rest = glob.strip_suffix(pattern, text, True)
            return rest if rest is None else rest + new if rest != text else text
        return glob.replace(pattern, source(new), text, operator == "//")
    if operator in ("^", "^^", ",", ",,"):
        change = str.upper if operator[0] == "^" else str.lower
        return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
    rest = single(walker, argument, state).text
    if operator == ":":
        start, _, length = rest.partition(":")
        first = _number(walker, start, state)
        count = _number(walker, length, state) if length else None
        if first is None or (length and count is None):
            return None
        cut = text[first:] if first >= 0 or -first <= len(text) else ""
        return cut if count is None else cut[:count]
    if operator == "@":
        if rest == "U":
            return text.upper()
        if rest == "L":
            return text.lower()
        if rest == "u":
            return text[:1].upper() + text[1:]
        if rest == "E":
            return unescape(text)
        return text
    return None


def _number(walker: Ground, text: str, state: State) -> int | None:
    value = _calculate(text.strip())
    if value is None and text.strip().isidentifier():
        found = lookup(walker, text.strip(), state)
        value = _calculate(found.text) if found is not None else None
    return value


def unescape(text: str) -> str:
    """Backslash escapes as `echo -e`, `printf` and `$'…'` read them."""
    if "\\" not in text:
        return text
    out: list[str] = []
    i = 0
    while i < len(text):
        j = text.find("\\", i)
        if j < 0:
            break
        out.append(text[i:j])
        if text.startswith("\\0", j) and text[j + 2 : j + 3] in "01234567" and text[j + 2 : j + 3]:
            piece, i = ansi_escape(text[: j + 1] + text[j + 2 :], j)
            i += 1
        else:
            piece, i = ansi_escape(text, j)
        out.append(piece)
    out.append(text[i:])
    return "".join(out).replace("\0", "")
