"""Programs that talk to other machines: where to, what they take along, what they bring back."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined, options
from guardhook.analysis.hosts import reads_as
from guardhook.analysis.nodes import CLASS, HOLE, STAR
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

SENSITIVE = frozenset(("secret", "env-secret", "environment"))
_LOCAL = frozenset(("localhost", "127.0.0.1", "0.0.0.0", "::1", "[::1]", "host.docker.internal"))
# With these, programs take any number of slashes, of either kind, for two.
_LENIENT = frozenset(("http", "https", "ws", "wss", "ftp"))
_METADATA = frozenset(
    ("169.254.169.254", "metadata.google.internal", "metadata", "100.100.100.200", "fd00:ec2::254", "169.254.170.2")
)
# Places made for handing data to strangers.
_DROPS = (
    "pastebin.com", "paste.ee", "hastebin.com", "termbin.com", "ix.io", "sprunge.us", "0x0.st", "transfer.sh", "file.io", "gofile.io", "anonfiles.com", "webhook.site", "requestbin",
    "pipedream.net", "ngrok.io", "ngrok.app", "ngrok-free.app", "burpcollaborator.net", "oast.", "interact.sh", "requestcatcher.com", "beeceptor.com", "hookbin.com", "discord.com/api/webhooks",
    "discordapp.com/api/webhooks", "api.telegram.org", "hooks.slack.com", "bashupload.com", "temp.sh", "catbox.moe", "dpaste", "ghostbin", "rentry.co", "controlc.com", "canarytokens", "dnslog", "pastie", "uguu.se", "tmpfiles.org", "trycloudflare.com", "loca.lt", "serveo.net",
)  # fmt: skip


def host_of(url: str) -> str:
    """The host of a URL or of `host[:port][/path]`, lower case; holes are shown as `…`."""
    url = url.strip().replace("\\", "/")
    scheme, colon, rest = url.partition(":")
    if colon and scheme.lower() in _LENIENT:
        rest = rest.lstrip("/")
    elif not rest.startswith("//"):
        rest = url.lstrip("/") if url.startswith("//") else url
    else:
        rest = rest[2:]
    rest = rest.replace(CLASS, "[").split("/")[0].split("?")[0].split("#")[0].replace("\\", "/").split("/")[0]
    rest = rest.rpartition("@")[2]
    rest = rest.partition(":")[0] if not rest.startswith("[") else rest.partition("]")[0].lstrip("[")
    return rest.lower().replace(HOLE, "…").replace(STAR, "*").rstrip(".")


def host_flags(host: str, url: str = "") -> set[str]:
    """local, private, ip, metadata, drop, onion, unknown-host."""
    flags: set[str] = set()
    host = _dotted(host) or host
    if host in _LOCAL or host.endswith((".localhost", ".local", ".internal.test")) or host.startswith("127."):
        flags.add("local")
    if host in _METADATA:
        flags.add("metadata")
    octets = host.split(".")
    if len(octets) == 4 and all(o.isdecimal() for o in octets):
        flags.add("ip")
        if host.startswith(("10.", "192.168.")) or (host.startswith("172.") and 16 <= int(octets[1]) <= 31):
            flags.add("private")
    elif host.isdecimal() or host.startswith("0x") or ":" in host:
        flags.add("ip")
    where = (url or host).lower()
    if any(drop in where for drop in _DROPS):
        flags.add("drop")
    if host.endswith(".onion"):
        flags.add("onion")
    if "…" in host or "*" in host or not host:
        flags.add("unknown-host")
    return flags


def _dotted(host: str) -> str:
    """An IPv4 address in any spelling that inet_aton takes, as four decimal numbers; "" for anything else.

    One to four numbers, each decimal, octal (0…) or hexadecimal (0x…), of which the last one fills what is left; and the form that
    IPv6 has for it.
    """
    if host.startswith("::ffff:"):
        host = host[7:]
        high, colon, low = host.partition(":")
        if colon:
            host = f"0x{high.zfill(4)}{low.zfill(4)}" if len(high) <= 4 and len(low) <= 4 else ""
    if not host[:1].isdigit() or not host.isascii() or len(host) > 50:
        return ""
    parts = host.split(".")
    try:
        numbers = [int(p, 16 if p[:2] == "0x" else 8 if p[:1] == "0" and len(p) > 1 else 10) for p in parts]
    except ValueError:
        return ""
    *first, last = numbers
    if len(numbers) > 4 or any(n > 255 for n in first) or last >= 256 ** (5 - len(numbers)):
        return ""
    number = last + sum(n << 8 * (3 - place) for place, n in enumerate(first))
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def connect(
    call: Call, url: Val, sent: list[Val], more: set[str] | frozenset[str] = frozenset(), *, upload: bool = False
) -> str:
    """Notes a connection, and the flow when what is sent is sensitive. Gives the host."""
    host = host_of(url.text)
    flags = host_flags(host, url.text) | set(more)
    if upload or sent:
        flags.add("upload")
    call.emit("connect", flags, host=host)
    plain_host = reads_as(host) if "…" not in host else ""
    if plain_host:
        call.emit("lookalike", ("host",), host=host, detail=f"{host!r} reads as {plain_host!r}")
    for value in (url, *sent):
        hot = value.taint & SENSITIVE
        if hot:
            kinds = {"secret": "file", "env-secret": "variable", "environment": "environment"}
            call.emit(
                "secret_flow",
                {"network", *(kinds[k] for k in hot)} | flags & {"local", "drop", "private"},
                host=host,
                detail=f"{value.origin} to {host}",
            )
            break
    return host


# --- curl and wget

_CURL_SHORT = "AbcCdDeEFhHKmoPQrTtuUwxXyYz"
_CURL_LONG = tuple("--" + n for n in (
    "user-agent", "cookie", "cookie-jar", "continue-at", "data", "data-raw", "data-binary", "data-urlencode", "data-ascii", "dump-header", "referer", "cert", "form", "form-string", "header",
    "config", "max-time", "output", "output-dir", "ftp-port", "quote", "range", "upload-file", "telnet-option", "user", "proxy-user", "write-out", "proxy", "request", "speed-limit", "speed-time",
    "time-cond", "url", "connect-timeout", "retry", "retry-delay", "retry-max-time", "limit-rate", "resolve", "cacert", "capath", "key", "max-redirs", "interface", "json", "oauth2-bearer",
    "unix-socket", "dns-servers", "aws-sigv4", "netrc-file", "pass", "ciphers", "connect-to", "proto", "variable", "expand-data", "expand-url", "stderr", "trace", "url-query", "socks5", "socks5-hostname", "noproxy", "tls-max", "cert-type", "proto-redir",
))  # fmt: skip


def _curl(call: Call) -> Val:
    opts = options(call.args, short=_CURL_SHORT, long=_CURL_LONG)
    urls = [*opts.rest, *opts.every("--url", "--expand-url")]
    sent: list[Val] = []
    for value in opts.every(
        "-d", "--data", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "--expand-data", "--url-query"
    ):
        sent.append(_at_file(call, value))
    sent.extend(opts.every("--data-raw", "--form-string"))
    for value in opts.every("-F", "--form"):
        _, equals, text = value.text.partition("=")
        if equals and text[:1] in "@<" and text:
            sent.append(_payload(call, Val(text[1:].split(";")[0], value.taint, value.origin)))
        else:
            sent.append(value)
    for value in opts.every("-T", "--upload-file"):
        sent.append(call.input if value.text in ("-", ".") else _payload(call, value))
    sent.extend(opts.every("-b", "--cookie"))
    for value in opts.every("-u", "--user"):
        if value.taint & {"secret"}:
            sent.append(value)
    for value in opts.every("-H", "--header"):
        lowered = value.text.lower()
        if value.taint & SENSITIVE and not (
            "env-secret" in value.taint
            and any(k in lowered for k in ("authorization", "token", "key", "auth", "secret"))
        ):
            sent.append(value)
        if value.text.startswith("@"):
            sent.append(_payload(call, Val(value.text[1:])))
    for value in opts.every("--variable"):
        _, at, file = value.text.partition("@")
        if at:
            sent.append(_payload(call, Val(file)))
    for value in opts.every("-K", "--config"):
        if value.text != "-":
            call.read(value)
    method = opts.value("-X", "--request")
    upload = bool(
        opts.every(
            "-d",
            "--data",
            "--data-binary",
            "--data-raw",
            "--data-ascii",
            "--data-urlencode",
            "--json",
            "-F",
            "--form",
            "-T",
            "--upload-file",
            "--form-string",
        )
    )
    more: set[str] = set()
    if opts.has("-k", "--insecure"):
        more.add("insecure")
    if method is not None and method.text.upper() in ("DELETE", "PUT", "PATCH", "POST"):
        more.add(method.text.lower())
    if any("/_delete_by_query" in value.text for value in opts.rest):
        more.add("delete")
    if any("docker.sock" in v.text for v in opts.every("--unix-socket")):
        call.emit("privilege", ("docker-socket",), detail="talks to the container daemon's socket")
    for u in urls:
        if u.text.startswith("file:"):
            return call.read(Val(u.text.removeprefix("file://").removeprefix("file:")))
    fetched = Val(HOLE, frozenset(("network",)), urls[0].shown if urls else "curl")
    for u in urls:
        if u.text:
            connect(call, u, sent, more, upload=upload)
    written = False
    outputs = opts.every("-o", "--output")
    folder = opts.value("--output-dir")
    for target in outputs:
        if target.text in ("-", "/dev/stdout"):
            continue
        written = True
        path = Val(f"{folder.text.rstrip('/')}/{target.text}") if folder is not None else target
        place = call.change("write", path, ("download", "truncate"))
        call.walker.pour(target.text if target.text in call.walker.pipes else place.text, fetched)
    if opts.has("-O", "--remote-name", "-J", "--remote-name-all"):
        for u in urls:
            _remote_name_written(call, u, fetched, folder)
        return EMPTY
    for value in opts.every("-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--stderr"):
        if value.text not in ("-", "/dev/stdout", "/dev/stderr"):
            call.change("write", value, ("truncate",))
    if opts.has("-I", "--head") or (method is not None and method.text.upper() == "HEAD"):
        return UNKNOWN
    return EMPTY if written else fetched


def _at_file(call: Call, value: Val) -> Val:
    text = value.text
    if text.startswith("@"):
        return call.input if text == "@-" else _payload(call, Val(text[1:], value.taint, value.origin))
    name, at, path = text.partition("@")
    if at and name and name.isidentifier():
        return _payload(call, Val(path))
    return value


def _payload(call: Call, path: Val) -> Val:
    if path.text == "-":
        return call.input
    content = call.read(path, ("upload",))
    return content if content.taint else Val(HOLE, path.taint, path.origin)


def _remote_name_written(call: Call, url: Val, content: Val, folder: Val | None = None, name: str = "") -> None:
    base = name or url.text.split("?")[0].split("#")[0].rstrip("/").rpartition("/")[2] or "index.html"
    if "://" in url.text and url.text.count("/") < 3:
        base = "index.html"
    path = f"{folder.text.rstrip('/')}/{base}" if folder is not None else base
    place = call.change("write", Val(path), ("download", "truncate"))
    call.walker.files[place.text] = content


def _wget(call: Call) -> Val:
    opts = options(call.args, short="oaeBtOTwQPUlADIXiR", long=("--output-file", "--output-document", "--directory-prefix", "--post-data", "--post-file", "--body-data", "--body-file", "--header", "--user-agent", "--user", "--password", "--tries", "--timeout", "--method", "--input-file", "--level", "--accept", "--reject", "--load-cookies", "--save-cookies", "--limit-rate", "--wait", "--execute", "--use-askpass"))  # fmt: skip
    sent = list(opts.every("--post-data", "--body-data"))
    sent.extend(_payload(call, v) for v in opts.every("--post-file", "--body-file"))
    sent.extend(v for v in opts.every("--header") if v.taint & SENSITIVE and "env-secret" not in v.taint)
    for value in opts.every("--use-askpass"):
        call.run([value], "wget")
    upload = bool(opts.every("--post-data", "--body-data", "--post-file", "--body-file"))
    for u in opts.rest:
        connect(call, u, sent, {"insecure"} if opts.has("--no-check-certificate") else set(), upload=upload)
    fetched = Val(HOLE, frozenset(("network",)), opts.rest[0].shown if opts.rest else "wget")
    target = opts.value("-O", "--output-document")
    if target is not None:
        if target.text in ("-", "/dev/stdout"):
            return fetched
        place = call.change("write", target, ("download", "truncate"))
        call.walker.pour(place.text if target.text not in call.walker.pipes else target.text, fetched)
        return EMPTY
    if opts.has("--spider"):
        return UNKNOWN
    for u in opts.rest:
        _remote_name_written(call, u, fetched, opts.value("-P", "--directory-prefix"))
    return EMPTY


def _aria(call: Call) -> Val:
    opts = options(
        call.args, short="odxsjkl", long=("--out", "--dir", "--output", "--split", "--max-connection-per-server")
    )
    fetched = Val(HOLE, frozenset(("network",)), call.argv[-1] if call.args else call.name)
    name = opts.value("-o", "--out", "--output")
    for u in opts.rest:
        if u.text == "-":
            continue
        connect(call, u, [])
        if name is None or name.text != "-":
            _remote_name_written(call, u, fetched, opts.value("-d", "--dir"), name.text if name is not None else "")
    return fetched if name is not None and name.text == "-" else EMPTY


def _httpie(call: Call) -> Val:
    opts = options(
        call.args,
        short="aopAsP",
        long=("--auth", "--output", "--print", "--session", "--style", "--verify", "--timeout", "--proxy"),
    )
    operands = list(opts.rest)
    method = operands.pop(0).text if operands and operands[0].text.isupper() and operands[0].text.isalpha() else ""
    if not operands:
        return UNKNOWN
    url = operands.pop(0)
    sent = [
        _payload(call, Val(v.text.partition("@")[2])) if "@" in v.text and "=" not in v.text.split("@")[0] else v
        for v in operands
        if ":" not in v.text.split("=")[0] or v.taint & {"secret"}
    ]
    sent = [call.read(Val(v.text.partition("=@")[2])) if "=@" in v.text else v for v in sent]
    if call.stdin is not None and call.stdin.text:
        sent.append(call.stdin)
    connect(
        call,
        url,
        sent,
        {method.lower()} if method else set(),
        upload=bool(operands) or method in ("POST", "PUT", "PATCH"),
    )
    target = opts.value("-o", "--output")
    fetched = Val(HOLE, frozenset(("network",)), url.shown)
    if target is not None or opts.has("-d", "--download"):
        path = target or Val(url.text.rpartition("/")[2] or "index")
        place = call.change("write", path, ("download", "truncate"))
        call.walker.files[place.text] = fetched
        return EMPTY
    return fetched


# --- raw connections


def _netcat(call: Call) -> Val:
    opts = options(
        call.args,
        short="ecpwsiqgGoxXTIOmMPVW",
        long=("--exec", "--sh-exec", "--lua-exec", "--source", "--wait", "--output", "--proxy"),
    )
    executed = [*opts.every("-e", "--exec", "--lua-exec"), *opts.every("-c", "--sh-exec")]
    listening = opts.has("-l", "--listen")
    host = opts.rest[0] if opts.rest and not (listening and len(opts.rest) == 1) else EMPTY
    name = host.text.replace(HOLE, "…")
    if opts.has("-z"):
        call.emit("connect", host_flags(host_of(host.text)) | {"scan"}, host=host_of(host.text))
        return UNKNOWN
    flags = {"raw"} | (host_flags(host_of(host.text)) if host.text else set()) | ({"listen"} if listening else set())
    sent = [call.stdin] if call.stdin is not None and call.stdin.text else []
    call.emit("connect", flags | ({"upload"} if sent else set()), host=host_of(host.text))
    if sent and sent[0].taint & SENSITIVE:
        call.emit(
            "secret_flow", {"network", "raw"}, host=name, detail=f"{sent[0].origin} to {name or 'whoever connects'}"
        )
    if executed:
        call.emit("run_fetched", ("network-shell",), detail=f"{executed[0].shown} on a connection", host=name)
    return Val(HOLE, frozenset(("network",)), name or "whoever connects")


def _socat(call: Call) -> Val:
    network = ""
    for value in call.args:
        lowered = value.text.lower()
        if lowered.startswith(("tcp", "openssl", "udp", "ssl", "sctp", "socks", "vsock")):
            network = value.text
            host = host_of(value.text.partition(":")[2])
            call.emit("connect", host_flags(host) | {"raw"} | ({"listen"} if "listen" in lowered else set()), host=host)
    for value in call.args:
        kind, _, rest = value.text.partition(":")
        if kind.lower() in ("exec", "system"):
            if network:
                call.emit("run_fetched", ("network-shell",), detail=f"{rest[:60]} on a connection")
            call.code(Val(rest.split(",")[0].strip("'\"")), "inline")
        elif kind.lower() in ("open", "file", "create", "gopen") and network:
            content = call.read(Val(rest.split(",")[0]))
            if content.taint & SENSITIVE:
                call.emit("secret_flow", ("network", "raw"), detail=f"{content.origin} to {network}")
    if call.stdin is not None and call.stdin.taint & SENSITIVE and network:
        call.emit("secret_flow", ("network", "raw"), detail=f"{call.stdin.origin} to {network}")
    return Val(HOLE, frozenset(("network",)), network) if network else UNKNOWN


def _telnet(call: Call) -> Val:
    opts = options(call.args, short="belnSX")
    host = host_of(opts.rest[0].text) if opts.rest else ""
    call.emit("connect", host_flags(host) | {"raw"}, host=host)
    if call.stdin is not None and call.stdin.taint & SENSITIVE:
        call.emit("secret_flow", ("network", "raw"), host=host, detail=f"{call.stdin.origin} to {host}")
    return Val(HOLE, frozenset(("network",)), host)


def _names(call: Call) -> Val:
    """DNS and ping: a name can carry data out."""
    for value in call.args:
        if value.text.startswith("-"):
            continue
        if value.taint & SENSITIVE:
            call.emit("secret_flow", ("network", "dns"), host=value.shown, detail=f"{value.origin} in a host name")
        host = host_of(value.text.lstrip("@"))
        if "." in host:
            call.emit("connect", host_flags(host) | {"lookup"}, host=host)
    return (
        Val(HOLE, frozenset(("network",)), "name server")
        if call.name in ("dig", "nslookup", "host", "drill")
        else UNKNOWN
    )


# --- remote shells and copies

_SSH_SHORT = "BbcDEeFIiJLlmOoPpQRSWw"


def _ssh(call: Call) -> Val:
    opts = options(call.args, short=_SSH_SHORT, permute=False)
    for value in opts.every("-o"):
        key, _, text = value.text.replace("=", " ", 1).partition(" ")
        if (
            key.lower() in ("proxycommand", "localcommand", "knownhostscommand", "permitlocalcommand")
            and key.lower() != "permitlocalcommand"
        ):
            call.code(Val(text.strip(), value.taint), "inline")
    if not opts.rest:
        return UNKNOWN
    target = opts.rest[0].text
    host = host_of(target.removeprefix("ssh://"))
    flags = host_flags(host) | {"ssh"}
    if opts.has("-R", "-L", "-D", "-w"):
        flags.add("tunnel")
    rest = opts.rest[1:]
    if rest:
        flags.add("command")
    call.emit("connect", flags, host=host)
    if call.stdin is not None and call.stdin.taint & SENSITIVE:
        call.emit("secret_flow", ("network", "ssh"), host=host, detail=f"{call.stdin.origin} to {host}")
    for value in rest:
        if value.taint & SENSITIVE:
            call.emit("secret_flow", ("network", "ssh"), host=host, detail=f"{value.origin} to {host}")
            break
    walker = call.walker
    keep = walker.inside, walker.files, walker.pipes
    walker.inside, walker.files, walker.pipes = "remote", {}, {}
    state = call.state.fork()
    state.cwd = walker.home
    state.functions, state.aliases, state.vars = {}, {}, {}
    try:
        if rest:
            call.code(joined(rest), "remote", "ssh", state=state, stdin=call.stdin)
        elif call.stdin is not None and call.stdin.text:
            call.code(call.stdin, "remote", "ssh", state=state)
        elif not opts.has("-N", "-f", "-V", "-Q", "-G", "-O", "-T"):
            call.emit("run", ("interactive", "shell", "remote"), detail="takes commands that no hook sees")
    finally:
        walker.inside, walker.files, walker.pipes = keep
    return Val(HOLE, frozenset(("remote",)), host)


def remote_copy(call: Call, sources: list[Val], target: Val, more: set[str]) -> None:
    """Copies from this machine to another."""
    host = host_of(target.text.partition(":")[0] if "://" not in target.text else target.text)
    call.emit("connect", host_flags(host) | {"upload"} | more, host=host)
    for value in sources:
        content = call.read(value, ("upload",))
        if content.taint & SENSITIVE:
            call.emit("secret_flow", {"network", "copy"}, host=host, detail=f"{content.origin} to {host}")


def _scp(call: Call) -> Val:
    opts = options(call.args, short="cFiJlopSPXDb")
    for value in opts.every("-S"):
        call.run([value], "scp")
    operands = list(opts.rest)
    if not operands:
        return UNKNOWN
    target = operands.pop() if len(operands) > 1 else None
    if target is not None and ":" in target.text.split("/")[0]:
        remote_copy(call, operands, target, {"scp"})
        return UNKNOWN
    for value in operands:
        if ":" in value.text:
            host = host_of(value.text.partition(":")[0])
            call.emit("connect", host_flags(host) | {"scp"}, host=host)
    if target is not None:
        place = call.change("write", target, ("download",))
        fetched = Val(HOLE, frozenset(("network",)), operands[0].shown)
        call.walker.files[place.text] = fetched
        if target.text in (".", "..") or target.text.endswith("/") or call.walker.facts.is_dir(place.text):
            for value in operands:
                name = value.text.rpartition(":")[2].rstrip("/").rpartition("/")[2]
                call.walker.files[place.text.rstrip("/") + "/" + name] = fetched
    if call.stdin is not None:
        for line in call.stdin.text.split("\n"):
            if line.startswith(("put ", "mput ")):
                remote_copy(call, [Val(line.split()[1])], Val(operands[0].text + ":"), {"sftp"})
            elif line.startswith("!"):
                call.code(Val(line[1:]), "inline")
    return UNKNOWN


def _ftp(call: Call) -> Val:
    opts = options(call.args, short="ecup", long=())
    host = host_of(opts.rest[0].text) if opts.rest else ""
    call.emit("connect", host_flags(host) | {"ftp"}, host=host)
    if opts.has("-u") and call.name == "ftp":
        remote_copy(call, opts.rest, opts.value("-u") or EMPTY, {"ftp"})
    scripts = [*opts.every("-e", "-c")]
    if call.stdin is not None:
        scripts.append(call.stdin)
    for script in scripts:
        for line in script.text.replace(";", "\n").split("\n"):
            words = line.split()
            if words[:1] and words[0] in ("put", "mput", "mirror") and len(words) > 1:
                remote_copy(call, [Val(w) for w in words[1:] if not w.startswith("-")], Val(host + ":"), {"ftp"})
            elif line.strip().startswith("!"):
                call.code(Val(line.strip()[1:]), "inline")
    return Val(HOLE, frozenset(("network",)), host)


def _sshpass(call: Call) -> Val:
    opts = options(call.args, short="fdpPv", permute=False)
    return call.run(opts.rest, "sshpass") if opts.rest else UNKNOWN


def _pssh(call: Call) -> Val:
    """A command on many machines."""
    opts = options(call.args, short="hHlptoewgfIxum", long=("--hosts", "--host", "--user", "--par"), permute=False)
    call.emit("connect", ("ssh", "command"), host="…")
    rest = opts.rest if opts.has("-h", "-H", "-w", "-g", "-m", "--hosts", "--host") else opts.rest[1:]
    if rest:
        keep, call.walker.inside = call.walker.inside, "remote"
        try:
            call.code(joined(rest), "remote", call.name, state=call.state.fork())
        finally:
            call.walker.inside = keep
    return UNKNOWN


def _tunnel(call: Call) -> Val:
    if call.name == "tailscale" and not {"up", "serve", "funnel"} & set(call.texts()[:1]):
        return UNKNOWN
    call.emit(
        "connect", ("tunnel", "upload"), host=call.name, detail="makes a local port or file reachable from outside"
    )
    return UNKNOWN


def _scan(call: Call) -> Val:
    opts = options(call.args, short="pPiIoTsDgeS", long=("--script", "--top-ports", "--rate"))
    for value in opts.every("--script"):
        if "/" in value.text or value.text.endswith(".nse"):
            call.read(value)
    host = host_of(opts.rest[0].text) if opts.rest else ""
    call.emit("connect", host_flags(host) | {"scan"}, host=host)
    return UNKNOWN


def _browser(call: Call) -> Val:
    opts = options(call.args, short="")
    for u in opts.rest[:1]:
        connect(call, u, [])
        return Val(HOLE, frozenset(("network",)), u.shown)
    return UNKNOWN


def _other(call: Call) -> Val:
    urls = [a for a in call.args if "://" in a.text]
    for u in urls:
        connect(call, u, [a for a in call.args if a.taint & SENSITIVE])
    return Val(HOLE, frozenset(("network",)), urls[0].shown) if urls else unknown(call.input)


def _certutil(call: Call) -> Val:
    texts = [t.lower() for t in call.texts()]
    urls = [a for a in call.args if "://" in a.text]
    if any("urlcache" in t for t in texts) and urls:
        connect(call, urls[0], [])
        place = call.change("write", call.args[-1], ("download",))
        call.walker.files[place.text] = Val(HOLE, frozenset(("network",)), urls[0].shown)
    elif any("decode" in t for t in texts) and len(call.args) > 2:
        place = call.change("write", call.args[-1])
        call.walker.files[place.text] = Val(HOLE, frozenset(("decoded",)), "certutil -decode")
    return UNKNOWN


def _copy_id(call: Call) -> Val:
    host = host_of(call.args[-1].text) if call.args else ""
    call.emit("connect", host_flags(host) | {"ssh", "upload"}, host=host)
    call.emit("persist", ("remote-key",), host=host, detail=f"a key that may log in on {host}")
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _other, "ssh-copy-id": _copy_id, "curl": _curl, "curlie": _curl, "wget": _wget, "wget2": _wget, "axel": _aria, "aria2c": _aria, "fetch": _aria, "http": _httpie, "https": _httpie, "httpie": _httpie, "xh": _httpie,
    **dict.fromkeys(("nc", "ncat", "netcat", "nc.openbsd", "nc.traditional"), _netcat), "socat": _socat, "telnet": _telnet, "websocat": _telnet,
    **dict.fromkeys(("dig", "nslookup", "host", "drill", "ping", "ping6", "traceroute"), _names),
    "ssh": _ssh, "autossh": _ssh, "mosh": _ssh, "rsh": _ssh, "rexec": _ssh, "scp": _scp, "sftp": _scp, "ftp": _ftp, "lftp": _ftp, "tftp": _ftp, "sshpass": _sshpass, **dict.fromkeys(("ngrok", "localtunnel", "lt", "bore", "frpc", "chisel", "cloudflared", "tailscale"), _tunnel), **dict.fromkeys(("pssh", "parallel-ssh", "pdsh", "dsh", "clush"), _pssh),
    "nmap": _scan, "masscan": _scan, **dict.fromkeys(("lynx", "w3m", "links", "elinks"), _browser), "certutil": _certutil, "bitsadmin": _certutil,
}  # fmt: skip
