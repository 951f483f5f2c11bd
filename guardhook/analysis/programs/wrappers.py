"""Programs that run another program. Most are one row: which options take a value, and how many operands come first."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import EMPTY, UNKNOWN, Val, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# name -> (letters that take a value, long options that take a value, operands before the command)
_PLAIN: dict[str, tuple[str, tuple[str, ...], int]] = {
    "nice": ("n", ("--adjustment",), 0), "ionice": ("cnpPu", ("--class", "--classdata", "--pid"), 0), "nohup": ("", (), 0), "setsid": ("", (), 0),
    "stdbuf": ("ioe", ("--input", "--output", "--error"), 0), "time": ("fo", ("--format", "--output"), 0), "timeout": ("sk", ("--signal", "--kill-after"), 1),
    "gtimeout": ("sk", ("--signal", "--kill-after"), 1), "chrt": ("pTPD", (), 1), "taskset": ("pc", (), 1), "caffeinate": ("tw", (), 0), "arch": ("ed", (), 0),
    "strace": ("abeEIoOpPsSuXU", ("--trace", "--output", "--user"), 0), "ltrace": ("aAbDeFlnopsuwx", (), 0), "valgrind": ("", (), 0), "perf": ("", (), 1),
    "chronic": ("", (), 0), "unbuffer": ("", (), 0), "eatmydata": ("", (), 0), "fakeroot": ("lsbiu", ("--lib", "--faked"), 0), "torify": ("", (), 0),
    "torsocks": ("aupP", (), 0), "tsocks": ("", (), 0), "proxychains": ("f", (), 0), "proxychains4": ("f", (), 0), "dbus-run-session": ("", ("--config-file",), 0),
    "dbus-launch": ("", (), 0), "xvfb-run": ("efnpsw", ("--server-args", "--error-file", "--server-num"), 0), "setarch": ("", (), 1), "linux32": ("", (), 0),
    "linux64": ("", (), 0), "x86_64": ("", (), 0), "tini": ("pg", (), 0), "dumb-init": ("r", (), 0), "su-exec": ("", (), 1), "gosu": ("", (), 1), "chpst": ("ubelmdofpt", (), 0),
    "setpriv": ("", ("--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--securebits", "--pdeathsig"), 0), "numactl": ("CNmpi", (), 0),
    "cpulimit": ("lpe", ("--limit",), 0), "prlimit": ("p", ("--pid",), 0), "systemd-inhibit": ("", ("--what", "--who", "--why", "--mode"), 0),
    "cgexec": ("g", (), 0), "heaptrack": ("o", (), 0), "rlwrap": ("abBcCDefFgHlmMOPqsStwz", (), 0), "noglob": ("", (), 0), "nocorrect": ("", (), 0), "--": ("", (), 0),
    "choom": ("np", (), 0), "faketime": ("f", (), 1), "setuidgid": ("", (), 1), "s6-setuidgid": ("", (), 1), "with-contenv": ("", (), 0), "firejail": ("", (), 0),
    "retry": ("dt", ("--delay", "--tries", "--times"), 0), "pseudo": ("", (), 0), "catchsegv": ("", (), 0), "envdir": ("", (), 1), "softlimit": ("amdslfoprt", (), 0),
    "bundle": ("", (), 1), "cross-env": ("", (), 0), "ld.so": ("", ("--library-path", "--preload"), 0), "ld-linux-x86-64.so.2": ("", ("--library-path", "--preload"), 0),
    "sem": ("jP", ("--id",), 0), "ts": ("", (), 0), "rtk": ("", (), 0), "hyperfine": ("wmMrnsSNPDLipuc", ("--warmup", "--runs", "--prepare", "--export-json", "--export-markdown"), 0),
    "dotenv": ("ecpf", ("--file",), 0), "dotenvx": ("f", ("--env-file",), 1), "doppler": ("pc", ("--project", "--config"), 1), "infisical": ("", ("--env", "--path"), 1),
    "aws-vault": ("dn", ("--duration",), 2), "chamber": ("", (), 2), "direnv": ("", (), 2), "mise": ("", (), 1), "asdf": ("", (), 2), "rye": ("", (), 1), "hatch": ("e", (), 1),
    "pdm": ("p", (), 1), "pipenv": ("", (), 1), "poetry": ("C", ("--directory", "--project"), 1), "pyenv": ("", (), 1), "rbenv": ("", (), 1), "make-tty": ("", (), 0),
    "ssh-agent": ("at", (), 0), "wsl": ("du", ("--distribution", "--user", "--cd"), 0),
}  # fmt: skip
# Rows of the table above that only run something after one of these words.
_AFTER = {
    "bundle": ("exec",), "dotenvx": ("run",), "doppler": ("run",), "infisical": ("run",), "mise": ("exec", "x"), "rye": ("run",), "hatch": ("run",),
    "pdm": ("run",), "pipenv": ("run",), "poetry": ("run",), "pyenv": ("exec",), "rbenv": ("exec",), "aws-vault": ("exec",), "chamber": ("exec",), "direnv": ("exec",), "asdf": ("exec",), "perf": ("record", "stat", "trace"),
}  # fmt: skip
_ASSIGNING = frozenset(("cross-env", "env", "sudo", "doas", "dotenv"))


def _row(call: Call) -> Val:
    short, long, skip = _PLAIN[call.name]
    words = _after(call)
    if words is None:
        return _via_packages(call)
    opts = options(words, short=short, long=long, permute=False)
    rest = opts.rest
    if call.name == "hyperfine":
        for command in rest:
            call.code(command, "inline")
        return call.result()
    if call.name in _AFTER:
        skip -= 1
    if call.name == "ssh-agent" and not rest:
        return Val(HOLE, origin="output of ssh-agent")
    rest = rest[skip:]
    if call.name in _AFTER and rest and rest[0].text == "--":
        rest = rest[1:]
    if call.name in _ASSIGNING:
        rest = _assignments(call, rest)
    if not rest:
        return call.result()
    return call.run(rest, call.name)


def _after(call: Call) -> list[Val] | None:
    """The words after the subcommand that runs something; None when another subcommand was given."""
    wanted = _AFTER.get(call.name)
    if wanted is None:
        return call.args
    for index, value in enumerate(call.args):
        if value.text in wanted:
            return call.args[index + 1 :]
        if not value.text.startswith("-"):
            return None
    return None


def _assignments(call: Call, words: list[Val]) -> list[Val]:
    """Takes `NAME=value` words off the front and into the environment of what is run."""
    index = 0
    for index, value in enumerate(words):  # noqa: B007
        name, equals, text = value.text.partition("=")
        if not equals or not name.replace("_", "a").isalnum() or name[:1].isdigit():
            break
        call.env[name] = Val(text, value.taint, value.origin)
    else:
        index = len(words)
    if call.env:
        from guardhook.analysis import guard

        guard.environment(call)
    return words[index:]


def _env(call: Call) -> Val:
    args = list(call.args)
    state = call.state.fork()
    while args:
        text = args[0].text
        if text in ("-S", "--split-string") and len(args) > 1:
            args = [*split_string(args[1]), *args[2:]]
        elif text.startswith("--split-string="):
            args = [*split_string(Val(text.partition("=")[2], args[0].taint)), *args[1:]]
        elif text.startswith("-S") and len(text) > 2:
            args = [*split_string(Val(text[2:], args[0].taint)), *args[1:]]
        elif (
            text.startswith("-")
            and not text.startswith("--")
            and "S" in text[1:]
            and text[1:].strip("vi0").startswith("S")
        ):
            inner = text[text.index("S") + 1 :]
            args = (
                [*split_string(Val(inner)), *args[1:]]
                if inner
                else [*(split_string(args[1]) if len(args) > 1 else []), *args[2:]]
            )
        elif text in ("-u", "--unset", "-a", "--argv0") and len(args) > 1:
            args = args[2:]
        elif text in ("-C", "--chdir") and len(args) > 1:
            state.cwd = call.place(args[1]).text if call.place(args[1]).text.startswith("/") else None
            args = args[2:]
        elif text.startswith(("--chdir=", "-C")) and len(text) > 2:
            place = call.place(Val(text.partition("=")[2] if text.startswith("--") else text[2:]))
            state.cwd = place.text if place.text.startswith("/") else None
            args = args[1:]
        elif text == "--":
            args = args[1:]
            break
        elif text.startswith("-"):
            args = args[1:]
        elif text == HOLE and "secret" in args[0].taint and len(args) > 1 and HOLE not in args[1].text:
            args = args[1:]  # `env $(cat .env.test) npm test`
        else:
            break
    for value in args:
        name, equals, text = value.text.partition("=")
        if not equals or "/" in name:
            break
        state.vars[name] = Val(text, value.taint, value.origin)
    rest = _assignments(call, args)
    if not rest:
        call.emit("read", ("environment",), detail="all environment variables")
        return Val(HOLE, frozenset(("environment",)), "the environment")
    environment = dict(call.env)
    if any(a.text in ("-i", "--ignore-environment", "-") for a in call.args[: len(call.args) - len(rest)]):
        environment["-i"] = EMPTY
    return call.run(rest, "env", state=state, env=environment)


def split_string(value: Val) -> list[Val]:
    """`env -S`: quotes and backslashes as a shell would read them, nothing expanded but `${…}`."""
    from guardhook.analysis.nodes import Unparsable
    from guardhook.analysis.parser import parse
    from guardhook.analysis.tree import simple_commands

    try:
        commands = simple_commands(parse(source(value.text).replace("\\_", " ")))
    except Unparsable:
        return [Val(w, value.taint) for w in value.text.split()]
    words: list[Val] = []
    for command in commands[:1]:
        for name, _, word in command.assignments:
            words.append(Val(f"{name}={word.literal or HOLE}", value.taint))
        words.extend(Val(w.literal if w.literal is not None else HOLE, value.taint) for w in command.words)
    return words


def _as_user(call: Call, user: str, rest: list[Val], env: dict[str, Val | list[Val]] | None = None) -> Val:
    walker = call.walker
    keep = walker.user
    walker.user = user
    try:
        return call.run(rest, call.name, env=env)
    finally:
        walker.user = keep


def _sudo(call: Call) -> Val:
    opts = options(call.args, short="CDghprRtTuUa", long=("--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--close-from", "--other-user", "--role", "--type", "--command-timeout"), permute=False)  # fmt: skip
    named = opts.value("-u", "--user")
    user = "root" if named is None or named.text in ("root", "#0") else named.text
    flags = {"sudo", "as-root" if user == "root" else "as-other"}
    rest = _assignments(call, opts.rest)
    if opts.has("-e", "--edit") or call.name == "sudoedit":
        for value in opts.rest:
            call.change("write", value, ("edit",))
        call.emit("privilege", flags | {"edit"})
        return EMPTY
    if not rest:
        if opts.has("-i", "-s", "--login", "--shell"):
            call.emit("privilege", flags | {"shell"}, detail="a shell as " + user)
            if call.stdin is not None:
                return call.code(call.stdin, "stdin")
            call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
        elif opts.has("-v", "-k", "-K", "-l", "-n", "-V", "--list", "--validate"):
            return UNKNOWN
        return UNKNOWN
    call.emit("privilege", flags, detail=f"{rest[0].shown} as {user}")
    state = call.state
    where = opts.value("-D", "--chdir")
    if where is not None:
        state = state.fork()
        state.cwd = call.place(where).text
        keep, call.state = call.state, state
        out = _as_user(call, user, rest)
        call.state = keep
        return out
    return _as_user(call, user, rest)


def _su(call: Call) -> Val:
    opts = options(call.args, short="cgGsTuw", long=("--command", "--group", "--shell", "--user", "--session-command"))
    names = [v for v in opts.rest if v.text != "-"]
    user = names[0].text if names else "root"
    if call.name == "runuser" and opts.value("-u", "--user") is not None:
        call.emit("privilege", ("su", "as-other"), detail="runuser")
        rest = names
        return _as_user(call, opts.value("-u", "--user").text, rest) if rest else UNKNOWN  # type: ignore[union-attr]
    call.emit("privilege", ("su", "as-root" if user == "root" else "as-other"), detail="as " + user)
    command = opts.value("-c", "--command", "--session-command")
    keep = call.walker.user
    call.walker.user = user
    try:
        if command is not None:
            return call.code(command, "inline")
        if call.stdin is not None:
            return call.code(call.stdin, "stdin")
        call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
    finally:
        call.walker.user = keep
    return UNKNOWN


def _doas(call: Call) -> Val:
    opts = options(call.args, short="aCu", permute=False)
    named = opts.value("-u")
    user = "root" if named is None else named.text
    call.emit("privilege", ("doas", "as-root" if user == "root" else "as-other"))
    if opts.rest:
        return _as_user(call, user, _assignments(call, opts.rest))
    if opts.has("-s"):
        call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
    return UNKNOWN


def _pkexec(call: Call) -> Val:
    opts = options(call.args, long=("--user",), permute=False)
    call.emit("privilege", ("pkexec", "as-root"))
    return _as_user(call, "root", opts.rest) if opts.rest else UNKNOWN


def _xargs(call: Call) -> Val:
    opts = options(call.args, short="adEILnPs", long=("--arg-file", "--delimiter", "--max-args", "--max-lines", "--max-procs", "--max-chars", "--replace", "--process-slot-var"), permute=False)  # fmt: skip
    given = call.stdin
    arg_file = opts.value("-a", "--arg-file")
    if arg_file is not None:
        given = call.read(arg_file)
    if given is None:
        given = UNKNOWN
    command = opts.rest or [Val("echo")]
    taint = given.taint | {"stdin-args"}
    replace = opts.value("-I", "--replace") or (Val("{}") if opts.has("-i", "--replace") else None)
    text = given.text
    if opts.has("-0", "--null"):
        items = [t for t in text.replace("\n", " ").split(" ") if t]
    elif replace is not None or opts.value("-d") is not None:
        separator = opts.value("-d", "--delimiter")
        pieces = (
            text.replace(separator.text, "\n")
            if separator is not None and separator.text and separator.text != "\\n"
            else text
        )
        items = [line.strip() for line in pieces.split("\n") if line.strip()]
    else:
        items = _xargs_words(text)
    values = [Val(item, taint, given.origin, "…") for item in items[:4096]]
    if replace is None:
        count = opts.value("-n", "--max-args", "-L")
        if count is not None and count.text == "1" and len(values) > 1:
            out = UNKNOWN
            for value in values[:16]:
                out = call.run([*command, value], "xargs", stdin=EMPTY)
            return out
        return call.run([*command, *values], "xargs", stdin=EMPTY)
    out = UNKNOWN
    for value in values[:16]:
        words = [
            Val(
                c.text.replace(replace.text, value.text),
                c.taint | (taint if replace.text in c.text else c.taint),
                c.origin or given.origin,
                c.raw,
            )
            for c in command
        ]
        out = call.run(words, "xargs", stdin=EMPTY)
    return out


def _xargs_words(text: str) -> list[str]:
    if not any(q in text for q in "'\"\\"):
        return text.split()
    return [v.text for v in split_string(Val(text.replace("\n", " ")))] or text.split()


def _parallel(call: Call) -> Val:
    args = call.args
    cut = next((i for i, a in enumerate(args) if a.text in (":::", "::::", ":::+", "::::+")), len(args))
    opts = options(args[:cut], short="jISaNnLPsdC", long=("--jobs", "--colsep", "--results", "--joblog", "--delay", "--timeout", "--retries", "--halt", "--workdir", "--sshlogin", "--arg-file"), permute=False)  # fmt: skip
    sources = [a for a in args[cut + 1 :] if not a.text.startswith(":::")]
    if cut < len(args) and args[cut].text.startswith("::::"):
        sources = [call.read(s) for s in sources]
    items = sources
    if not items and cut == len(args):
        given = call.stdin if call.stdin is not None else UNKNOWN
        items = [Val(line, given.taint | {"stdin-args"}, given.origin, "…") for line in given.text.split("\n") if line]
    if not opts.rest:
        for item in items[:16]:
            call.code(item, "stdin")
        return UNKNOWN
    out = UNKNOWN
    template = joined(opts.rest)
    for item in items[:16] or [UNKNOWN]:
        text = template.text
        filled = False
        for mark in ("{}", "{.}", "{/}", "{//}", "{/.}", "{1}"):
            if mark in text:
                text = text.replace(mark, item.text)
                filled = True
        if not filled:
            text += " " + item.text
        out = call.code(
            Val(text, template.taint | item.taint, template.origin or item.origin, template.raw),
            "inline",
            "parallel",
            stdin=EMPTY,
        )
    return out


def _shell_words(short: str, long: tuple[str, ...] = ()) -> Handler:
    def handler(call: Call) -> Val:
        opts = options(call.args, short=short, long=long, permute=False)
        return call.code(joined(opts.rest), "inline") if opts.rest else UNKNOWN

    return handler


def _flock(call: Call) -> Val:
    opts = options(
        call.args, short="wEc", long=("--wait", "--timeout", "--conflict-exit-code", "--command"), permute=False
    )
    command = opts.value("-c", "--command")
    if command is not None:
        return call.code(command, "inline")
    rest = opts.rest[1:]
    if rest and rest[0].text in ("-c", "--command") and len(rest) > 1:
        return call.code(rest[1], "inline")
    return call.run(rest, "flock") if rest else UNKNOWN


def _script(call: Call) -> Val:
    opts = options(
        call.args, short="cEIoBOTtmL", long=("--command", "--log-out", "--log-in", "--echo", "--output-limit")
    )
    command = opts.value("-c", "--command")
    if command is not None:
        return call.code(command, "inline")
    if len(opts.rest) > 1:
        # BSD: script [file [command …]]
        return call.run(opts.rest[1:], "script")
    if call.stdin is not None:
        return call.code(call.stdin, "stdin")
    call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
    return UNKNOWN


def _box(call: Call) -> Val:
    args = call.args
    if not args or args[0].text.startswith("--"):
        return UNKNOWN
    return call.run(args, call.name)


def _chroot(call: Call) -> Val:
    opts = options(call.args, long=("--userspec", "--groups"), permute=False)
    call.emit("privilege", ("chroot",), detail="chroot")
    if not opts.rest:
        return UNKNOWN
    walker = call.walker
    root = call.place(opts.rest[0])
    rest = opts.rest[1:]
    keep = walker.inside, walker.mounts
    if root.text == "/" and walker.inside == "container" and opts.rest[0].text.strip("/"):
        walker.inside, walker.mounts = "", []  # into this machine's root, which is mounted there
    elif root.text != "/":
        walker.inside, walker.mounts = "container", [(root.text, "/")]
    state = call.state.fork()
    state.cwd = "/"
    try:
        return call.run(rest, "chroot", state=state) if rest else UNKNOWN
    finally:
        walker.inside, walker.mounts = keep


def _ip(call: Call) -> Val:
    """`ip netns exec NAME command`; everything else is about the network."""
    from guardhook.analysis.programs import index

    words = [a for a in call.args if not a.text.startswith("-")]
    if len(words) > 3 and words[0].text == "netns" and words[1].text == "exec":
        return call.run(call.args[call.args.index(words[3]) :], "ip netns")
    return index.handler("system", "ip")(call)


def _unshare(call: Call) -> Val:
    opts = options(call.args, short="SGRw" if call.name == "unshare" else "tSGrwZ", long=("--setuid", "--setgid", "--root", "--wd", "--target", "--propagation"), permute=False)  # fmt: skip
    call.emit("privilege", ("namespace",), detail=call.name)
    return call.run(opts.rest, call.name) if opts.rest else UNKNOWN


def _systemd_run(call: Call) -> Val:
    opts = options(call.args, short="HMtpEu", long=("--unit", "--property", "--description", "--slice", "--uid", "--gid", "--nice", "--working-directory", "--setenv", "--on-active", "--on-boot", "--on-calendar", "--on-startup", "--on-unit-active", "--timer-property", "--host", "--machine", "--service-type"), permute=False)  # fmt: skip
    if any(name.startswith("--on-") for name in opts.given):
        call.emit("persist", ("systemd", "timer"), detail="a timer")
    state = call.state.fork()
    where = opts.value("--working-directory")
    state.cwd = (
        call.place(where).text if where is not None else (call.state.cwd if opts.has("--same-dir", "-d") else "/")
    )
    return call.run(opts.rest, "systemd-run", state=state) if opts.rest else UNKNOWN


def _start_stop_daemon(call: Call) -> Val:
    opts = options(call.args, short="pxnuacgkdNiIKr", long=("--pidfile", "--exec", "--name", "--user", "--startas", "--chuid", "--chdir", "--group", "--nicelevel"), permute=False)  # fmt: skip
    program = opts.value("-x", "--exec", "-a", "--startas")
    return call.run([program, *opts.rest], call.name) if program is not None and opts.has("-S", "--start") else UNKNOWN


def _gdb(call: Call) -> Val:
    opts = options(
        call.args,
        short="",
        long=("-ex", "--ex", "--eval-command", "-x", "--args", "-p"),
        single_dash=True,
        permute=False,
    )
    for value in opts.every("-ex", "--ex", "--eval-command"):
        text = value.text.strip()
        if text.startswith(("shell ", "!", "call system", "python")):
            inner = text.partition(" ")[2] if not text.startswith("!") else text[1:]
            if text.startswith("call system"):
                inner = text.partition("(")[2].rstrip(") ").strip("\"'")
            call.code(Val(inner), "inline")
    return UNKNOWN


def _watchexec(call: Call) -> Val:
    if call.name == "entr":
        opts = options(call.args, permute=False)
        return call.run(opts.rest, "entr") if opts.rest else UNKNOWN
    if call.name == "nodemon":
        opts = options(call.args, short="wex", long=("--watch", "--ext", "--exec", "--ignore"))
        command = opts.value("-x", "--exec")
        return call.code(command, "inline") if command is not None else call.result()
    opts = options(
        call.args,
        short="wefidsSE",
        long=("--watch", "--exts", "--filter", "--ignore", "--debounce", "--shell"),
        permute=False,
    )
    return call.run(opts.rest, call.name) if opts.rest else UNKNOWN


def _concurrently(call: Call) -> Val:
    opts = options(call.args, short="nclrk", long=("--names", "--prefix-colors", "--kill-others-on"))
    for value in opts.rest:
        name = next((value.text[len(m) :] for m in ("npm:", "pnpm:", "yarn:", "bun:") if value.text.startswith(m)), "")
        if name.strip() and "*" not in name:
            call.run([Val(value.text.partition(":")[0]), Val("run"), *(Val(w) for w in name.split())], "concurrently")
        elif not name.strip():
            call.code(value, "inline")
    return UNKNOWN


def _nix(call: Call) -> Val:
    opts = options(call.args, short="IpcAE", long=("--run", "--command", "--packages"))
    for value in opts.every("--run", "--command"):
        if call.name == "nix-shell":
            return call.code(value, "inline")
    texts = call.texts()
    for mark in ("-c", "--command"):
        if mark in texts:
            return call.run(call.args[texts.index(mark) + 1 :], call.name)
    return call.result()


def _conda(call: Call) -> Val:
    texts = call.texts()
    if "run" in texts:
        rest = call.args[texts.index("run") + 1 :]
        opts = options(rest, short="np", long=("--name", "--prefix", "--cwd"), permute=False)
        return call.run(opts.rest, call.name) if opts.rest else UNKNOWN
    if texts[:2] == ["env", "remove"] or (texts[:1] == ["remove"] and "--all" in texts):
        call.emit("run", ("removes-environment",), detail="a conda environment")
    return call.result()


def _via_packages(call: Call) -> Val:
    from guardhook.analysis.programs import index

    return index.handler("packages", call.name)(call)


def _expect(call: Call) -> Val:
    opts = options(call.args, short="cf")
    code = opts.value("-c")
    if code is not None:
        for piece in code.text.replace(";", "\n").split("\n"):
            words = piece.split()
            if words[:1] in (["spawn"], ["exec"], ["system"]):
                call.code(Val(piece.strip().partition(" ")[2]), "inline")
    return UNKNOWN


def _bwrap(call: Call) -> Val:
    values = {"--bind": 2, "--ro-bind": 2, "--dev-bind": 2, "--symlink": 2, "--setenv": 2, "--chdir": 1, "--tmpfs": 1, "--proc": 1, "--dev": 1, "--dir": 1, "--unsetenv": 1, "--uid": 1, "--gid": 1, "--hostname": 1, "--ro-bind-try": 2, "--bind-try": 2}  # fmt: skip
    index = 0
    while index < len(call.args) and call.args[index].text.startswith("--"):
        index += 1 + values.get(call.args[index].text, 0)
    return call.run(call.args[index:], "bwrap") if index < len(call.args) else UNKNOWN


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_PLAIN, _row),
    "env": _env, "sudo": _sudo, "sudoedit": _sudo, "su": _su, "runuser": _su, "sg": _su, "doas": _doas, "pkexec": _pkexec, "xargs": _xargs, "parallel": _parallel, "rush": _parallel,
    "watch": _shell_words("nd", ("--interval", "--differences")), "exec-with": _shell_words(""), "flock": _flock, "script": _script, "busybox": _box, "toybox": _box,
    "chroot": _chroot, "proot": _chroot, "unshare": _unshare, "nsenter": _unshare, "systemd-run": _systemd_run, "start-stop-daemon": _start_stop_daemon, "gdb": _gdb,
    "watchexec": _watchexec, "entr": _watchexec, "nodemon": _watchexec, "concurrently": _concurrently, "nix-shell": _nix, "nix": _nix, "conda": _conda, "mamba": _conda,
    "micromamba": _conda, "expect": _expect, "ip": _ip, "bwrap": _bwrap,
    **dict.fromkeys(("npx", "uvx", "bunx", "pnpx", "dlx", "npm", "pnpm", "yarn", "uv"), _via_packages),
}  # fmt: skip
