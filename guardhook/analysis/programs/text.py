"""Programs that read and transform text: what flows in flows out."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined, options
from guardhook.analysis.decode import base32_text, base64_text, hex_text, translate
from guardhook.analysis.expand import secret_name
from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, concat, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# name -> (letters with a value, long options with a value, operands before the files, keeps lines as they are)
_READERS: dict[str, tuple[str, tuple[str, ...], int, bool]] = {
    "cat": ("", (), 0, True), "tac": ("s", (), 0, False), "head": ("nc", ("--lines", "--bytes"), 0, True), "tail": ("ncs", ("--lines", "--bytes", "--pid"), 0, True), "less": ("bhjkoOpPtTxyz", (), 0, True),
    "more": ("n", (), 0, True), "most": ("", (), 0, True), "bat": ("lHrmA", ("--language", "--line-range", "--style", "--theme"), 0, True), "batcat": ("lHrm", ("--language", "--line-range", "--style"), 0, True), "nl": ("bdfhilnsvw", (), 0, False),
    "od": ("AjNtwS", (), 0, False), "xxd": ("clgos", (), 0, False), "hexdump": ("efns", (), 0, False), "hd": ("efns", (), 0, False), "hexyl": ("ns", (), 0, False), "strings": ("nteT", (), 0, False),
    "sort": ("kotST", ("--key", "--field-separator", "--output", "--parallel", "--buffer-size"), 0, True), "gsort": ("kotST", (), 0, True), "uniq": ("fsw", (), 0, True), "cut": ("bcdf", ("--delimiter", "--fields", "--bytes", "--characters", "--output-delimiter"), 0, False), "column": ("sotNREHc", (), 0, False),
    "wc": ("", ("--files0-from",), 0, False), "rev": ("", (), 0, False), "fold": ("w", (), 0, False), "fmt": ("wpgt", (), 0, False), "expand": ("t", (), 0, False), "unexpand": ("t", (), 0, False), "paste": ("d", (), 0, False), "pr": ("", (), 0, False),
    "join": ("12jtaevo", (), 0, False), "comm": ("", (), 0, False), "diff": ("UICxXSFW", ("--label", "--exclude", "--color"), 0, False), "colordiff": ("UI", (), 0, False), "cmp": ("ni", (), 0, False), "sdiff": ("wo", (), 0, False), "delta": ("", (), 0, False),
    "grep": ("efmABCdD", ("--regexp", "--file", "--max-count", "--include", "--exclude", "--exclude-dir", "--color", "--context"), 1, False), "egrep": ("efmABC", (), 1, False), "fgrep": ("efmABC", (), 1, False), "zgrep": ("efmABC", (), 1, False),
    "rg": ("efgtTmABCjrE", ("--regexp", "--glob", "--type", "--max-count", "--context", "--replace", "--iglob", "--pre", "--sort"), 1, False), "ripgrep": ("efgtTmABC", (), 1, False), "ag": ("GmABC", (), 1, False), "jq": ("LfC", ("--arg", "--argjson", "--slurpfile", "--rawfile", "--indent", "--from-file"), 1, False),
    "yq": ("opI", (), 1, False), "gron": ("", (), 0, False), "fx": ("", (), 0, False), "jless": ("", (), 0, True), "mlr": ("", (), 1, False), "csvcut": ("cd", (), 0, False), "dasel": ("fprw", (), 1, False), "xmllint": ("", ("--xpath",), 0, False),
    "zcat": ("", (), 0, False), "bzcat": ("", (), 0, False), "xzcat": ("", (), 0, False), "zstdcat": ("", (), 0, False), "zless": ("", (), 0, False), "iconv": ("ft", (), 0, True), "recode": ("", (), 1, True), "view": ("", (), 0, True), "glow": ("w", (), 0, True),
    "ccat": ("", (), 0, True), "pygmentize": ("lfoO", (), 0, True), "grip": ("", (), 0, True), "look": ("", (), 1, False), "tail-f": ("", (), 0, True), "numfmt": ("", (), 0, False), "envsubst": ("", (), 9, True), "pdftotext": ("", (), 0, False), "crunch": ("", (), 9, False),
    "dos2unix": ("", (), 0, True), "uniq-c": ("", (), 0, True),
}  # fmt: skip
_PATTERN_OPTIONS = ("-e", "-f", "--regexp", "--file", "--from-file")


def _reader(call: Call) -> Val:
    short, long, skip, same = _READERS[call.name]
    if call.name in ("less", "more", "most"):
        for value in call.args:
            if value.text.startswith("+!"):
                call.code(Val(value.text[2:], value.taint), "inline")
    opts = options(call.args, short=short, long=long)
    operands = list(opts.rest)
    if call.name == "jq" and (opts.has("--arg", "--argjson", "--slurpfile", "--rawfile")):
        operands = [v for v in operands if v.text not in {x.text for x in opts.every("--arg", "--argjson")}]
    if skip and not (skip == 1 and any(n in opts.values for n in _PATTERN_OPTIONS)):
        operands = operands[skip:]
    for value in opts.every("-o", "--output") if call.name in ("sort", "gsort") else ():
        call.change("write", value, ("truncate",))
    for value in opts.every("--pre") if call.name in ("rg", "ripgrep") else ():
        call.code(value, "inline")
    if call.name == "yq" and opts.has("-i", "--inplace"):
        for value in operands:
            call.change("write", value, ("in-place",))
        return EMPTY
    quiet = call.name in ("grep", "egrep", "fgrep", "rg") and opts.has(
        "-q", "--quiet", "--silent", "-l", "--files-with-matches", "-c", "--count", "-L"
    )
    if (
        skip
        and call.stdin is not None
        and call.stdin.taint & {"environment"}
        and any(secret_name(a.text.strip("^$")) for a in call.args)
    ):
        call.emit("read", ("environment", "secret-variable"), detail="credentials among the environment variables")
    if call.name == "wc" or quiet:
        return UNKNOWN
    if not operands:
        if call.name in ("rg", "ripgrep", "ag") and call.stdin is None:
            return UNKNOWN
        source = call.input if call.stdin is not None else UNKNOWN
        return _transformed(call, opts.given, source, same)
    more = ("recursive",) if opts.has("-r", "-R", "--recursive") and skip else ()
    contents = [call.input if v.text == "-" else call.read(v, more) for v in operands]
    return _transformed(call, opts.given, concat(contents), same)


def _transformed(call: Call, given: set[str], source: Val, same: bool) -> Val:
    name = call.name
    if name == "xxd" and given & {"-r", "--revert"}:
        decoded = hex_text(source.text, plain="-p" in given or "-ps" in given) if source.known else None
        return _decoded(source, decoded, "xxd -r")
    if not source.known or (source.taint & {"listing"} and not same):
        return source if same else unknown(source)
    if name == "rev":
        # Only ever used on commands to hide them.
        return Val("\n".join(line[::-1] for line in source.text.split("\n")), source.taint, source.origin)
    if name == "tac":
        lines = source.text.rstrip("\n").split("\n")
        return Val("\n".join(reversed(lines)) + "\n", source.taint, source.origin)
    if name == "cut":
        return _cut(call, source)
    if name in ("head", "tail"):
        return _ends(call, source)
    if name in ("grep", "egrep", "fgrep"):
        return _matching(call, source)
    if name == "fold":
        return unknown(source)
    return source if same else unknown(source)


def _ends(call: Call, source: Val) -> Val:
    opts = options(call.args, short="nc", long=("--lines", "--bytes"))
    count = opts.value("-n", "--lines")
    number = (
        count.text
        if count is not None
        else next((t[1:] for t in call.texts() if t[1:].isdecimal() and t[0] == "-"), "10")
    )
    if opts.has("-c", "--bytes"):
        amount = (opts.value("-c", "--bytes") or EMPTY).text
        if amount.isdecimal():
            text = source.text[: int(amount)] if call.name == "head" else source.text[-int(amount) :]
            return Val(text, source.taint, source.origin)
        return unknown(source)
    lines = source.text.rstrip("\n").split("\n")
    if number.isdecimal():
        chosen = lines[: int(number)] if call.name == "head" else lines[-int(number) :] if int(number) else []
    elif number.startswith("+") and number[1:].isdecimal():
        chosen = lines[max(int(number[1:]) - 1, 0) :]
    else:
        return unknown(source)
    return Val("\n".join(chosen) + "\n", source.taint, source.origin)


def _cut(call: Call, source: Val) -> Val:
    opts = options(call.args, short="bcdf", long=("--delimiter", "--fields", "--characters", "--bytes"))
    wanted = opts.value("-f", "--fields", "-c", "--characters", "-b", "--bytes")
    if wanted is None:
        return unknown(source)
    first, dash, last = wanted.text.partition("-")
    if not (first or "1").isdecimal() or (last and not last.isdecimal()):
        return unknown(source)
    begin = int(first or "1") - 1
    end = (int(last) if last else None) if dash else begin + 1
    out: list[str] = []
    delimiter = (opts.value("-d", "--delimiter") or Val("\t")).text
    for line in source.text.rstrip("\n").split("\n"):
        if opts.has("-f", "--fields"):
            pieces = line.split(delimiter) if delimiter else [line]
            out.append(delimiter.join(pieces[begin:end]) if len(pieces) > 1 else line)
        else:
            out.append(line[begin:end])
    return Val("\n".join(out) + "\n", source.taint, source.origin)


def _matching(call: Call, source: Val) -> Val:
    opts = options(call.args, short="efmABC")
    pattern = opts.value("-e") or (opts.rest[0] if opts.rest else EMPTY)
    if opts.has("-v", "-o", "-E", "-P", "-c") or any(c in pattern.text for c in ".*[]^$\\+?(){}|"):
        return Val(source.text if not opts.has("-o", "-c") else HOLE, source.taint, source.origin)
    lines = [line for line in source.text.split("\n") if pattern.text in line]
    return Val("\n".join(lines) + "\n", source.taint, source.origin)


def _decoded(source: Val, text: str | None, how: str) -> Val:
    return Val(text if text is not None else HOLE, source.taint | {"decoded"}, source.origin or how)


def _base(call: Call) -> Val:
    opts = options(call.args, short="wio" if call.name != "openssl" else "", long=("--wrap", "--input", "--output"))
    source = call.read(opts.rest[0]) if opts.rest and opts.rest[0].text != "-" else call.input
    given = opts.value("-i", "--input")
    if given is not None:
        source = call.read(given)
    if opts.has("-d", "-D", "--decode"):
        decoder = (
            base32_text
            if "32" in call.name or opts.has("--base32")
            else hex_text
            if opts.has("--base16")
            else base64_text
        )
        return _decoded(source, decoder(source.text) if source.known else None, f"{call.name} -d")
    return unknown(source)


_PUBLIC = frozenset(("x509", "verify", "req", "crl", "ocsp", "s_client", "asn1parse"))


def _openssl(call: Call) -> Val:
    texts = call.texts()
    verb = texts[0] if texts else ""
    opts = options(
        call.args[1:], long=("-in", "-out", "-pass", "-k", "-K", "-iv", "-connect", "-inkey"), single_dash=True
    )
    named = opts.value("-in")
    if named is None:
        source = call.input
    elif verb in _PUBLIC or opts.has("-pubout", "-pubin"):
        # Certificates and requests, often in files named like keys; only what is public is printed.
        call.emit("read", path=call.place(named).path, path_classes=call.place(named).classes - {"secret"})
        source = UNKNOWN
    else:
        source = call.read(named)
    target = opts.value("-out")
    if verb == "s_client":
        host = (opts.value("-connect") or EMPTY).text.rpartition(":")[0]
        sent = call.stdin is not None and bool(call.stdin.text or call.stdin.taint)
        call.emit("connect", ("upload", "raw") if sent else ("raw",), host=host)
        if call.stdin is not None and call.stdin.taint & {"secret", "env-secret", "environment"}:
            call.emit("secret_flow", ("network",), host=host, detail=f"{call.stdin.origin} to {host}")
        return Val(HOLE, frozenset(("network",)), host)
    if verb in ("enc", "base64", "aes-256-cbc", "rsautl", "smime", "cms", "pkeyutl") or verb.startswith(("aes", "des")):
        if opts.has("-d", "-decrypt"):
            text = (
                base64_text(source.text)
                if source.known and ("-base64" in texts or "-a" in texts or verb == "base64")
                else None
            )
            out = _decoded(source, text, "openssl -d")
        else:
            out = unknown(source)
    elif verb in (
        "genrsa",
        "rand",
        "genpkey",
        "ecparam",
        "req",
        "dhparam",
        "version",
        "x509",
        "dgst",
        "passwd",
        "verify",
        "ciphers",
    ):
        out = UNKNOWN
    else:
        out = unknown(source)
    if target is not None:
        place = call.change("write", target, ("truncate",))
        call.walker.files[place.text] = out
        return EMPTY
    return out


def _gpg(call: Call) -> Val:
    opts = options(
        call.args,
        short="oru",
        long=("--output", "--recipient", "--homedir", "--passphrase", "--keyserver", "--recv-keys", "--local-user"),
    )
    if any(t.startswith("--export-secret") for t in call.texts()):
        call.emit("read", ("key-export",), path="", path_classes=frozenset(("secret",)), detail="exports secret keys")
        return Val(HOLE, frozenset(("secret",)), "gpg secret keys")
    if opts.has("--delete-secret-keys", "--delete-secret-and-public-key", "--delete-keys"):
        call.emit("delete", ("keys",), path="", path_classes=frozenset(("secret",)), detail="deletes keys")
    sources = [call.read(v) for v in opts.rest if v.text != "-"] or [call.input]
    out = unknown(*sources)
    if opts.has("-d", "--decrypt"):
        out = _decoded(out, None, "gpg -d")
    target = opts.value("-o", "--output")
    if target is not None and target.text != "-":
        place = call.change("write", target)
        call.walker.files[place.text] = out
        return EMPTY
    return out


def _tr(call: Call) -> Val:
    opts = options(call.args)
    source = call.input if call.stdin is not None else UNKNOWN
    sets = [v.text.replace(STAR, "*") for v in opts.rest]
    if not source.known or not sets or HOLE in "".join(sets):
        return unknown(source)
    text = translate(
        source.text, sets, delete=opts.has("-d", "--delete"), complement=opts.has("-c", "-C", "--complement")
    )
    if text is None:
        return unknown(source)
    return Val(text, source.taint, source.origin)


def _uudecode(call: Call) -> Val:
    return _decoded(unknown(*[call.read(v) for v in options(call.args, short="o").rest], call.input), None, call.name)


def _names(call: Call) -> Val:
    """basename, dirname, realpath, readlink."""
    opts = options(call.args, short="s", long=("--suffix", "--relative-to"))
    if not opts.rest:
        return UNKNOWN
    value = opts.rest[0]
    text = value.text
    if call.name == "basename":
        base = text.rstrip("/").rpartition("/")[2] or "/"
        suffix = opts.rest[1].text if len(opts.rest) > 1 else (opts.value("-s") or EMPTY).text
        return Val(base.removesuffix(suffix) + "\n" if suffix else base + "\n", value.taint, value.origin)
    if call.name == "dirname":
        head, slash, _ = text.rstrip("/").rpartition("/")
        return Val((head or ("/" if slash else ".")) + "\n", value.taint, value.origin)
    place = call.place(value)
    return Val(place.text + "\n" if place.text.startswith("/") else HOLE, value.taint, value.origin)


def _yes(call: Call) -> Val:
    return joined(call.args) if call.args else Val("y\n")


def _who(call: Call) -> Val:
    if call.name == "whoami" or (call.name == "id" and any("n" in t for t in call.texts() if t.startswith("-"))):
        return Val((call.walker.user or call.walker.facts.user) + "\n")
    return UNKNOWN


def _listing(call: Call) -> Val:
    opts = options(call.args, short="IwT", long=("--ignore", "--color", "--sort", "--time", "--format"))
    roots = opts.rest or [Val(".")]
    out: list[str] = []
    for root in roots[:16]:
        text = root.text
        if STAR in text or HOLE in text or opts.has("-d"):
            out.append(text)
        elif root.text in (".", "./"):
            out.append(STAR)
        else:
            place = call.place(root)
            out.append(
                text
                if place.text.rpartition("/")[2].count(".")
                else f"{text.rstrip('/')}/{STAR}"
                if "/" in text and opts.has("-d")
                else STAR
            )
    return Val("\n".join(out) + "\n", frozenset(("listing",)))


def _clipboard(call: Call) -> Val:
    if call.stdin is not None and call.stdin.taint & {"secret"}:
        return unknown(call.stdin)
    return UNKNOWN


def _awk(call: Call) -> Val:
    from guardhook.analysis.programs.interpreters import awk

    return awk(call)


def _ps(call: Call) -> Val:
    """All processes, or some that were chosen."""
    chosen = any(t == "p" or t.startswith(("-C", "-p", "-t", "--pid", "--ppid", "-g", "--group")) for t in call.texts())
    return Val(HOLE, origin="output of ps for some" if chosen else "output of ps")


def _hash(call: Call) -> Val:
    return UNKNOWN


def _rot13(call: Call) -> Val:
    source = call.input
    text = translate(source.text, ["A-Za-z", "N-ZA-Mn-za-m"]) if source.known else None
    return _decoded(source, text, call.name)


def _man(call: Call) -> Val:
    opts = options(call.args, short="PHMCSersLT", long=("--pager", "--html"))
    for value in opts.every("-P", "--pager", "-H", "--html"):
        call.code(value, "inline")
    return UNKNOWN


def _shuf(call: Call) -> Val:
    return unknown(call.input)


HANDLERS: dict[str, Handler] = {
    "": _hash, **dict.fromkeys(_READERS, _reader), "base64": _base, "gbase64": _base, "base32": _base, "basenc": _base, "openssl": _openssl, "gpg": _gpg, "gpg2": _gpg, "age": _gpg, "tr": _tr,
    "uudecode": _uudecode, "basename": _names, "dirname": _names, "realpath": _names, "readlink": _names, "yes": _yes, "whoami": _who, "logname": _who, "id": _who,
    **dict.fromkeys(("ls", "ll", "la", "dir", "vdir", "exa", "eza", "lsd"), _listing), "pbcopy": _clipboard, "pbpaste": _clipboard, "xclip": _clipboard, "xsel": _clipboard,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk), "rot13": _rot13, "ps": _ps, "caesar": _rot13, "shuf": _shuf, "man": _man,
}  # fmt: skip
