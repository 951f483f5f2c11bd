"""Accounts, services, schedules, processes, firewalls, kernel: what reaches beyond files."""

from __future__ import annotations

from guardhook.analysis.call import Call, joined, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.programs.verbs import operands
from guardhook.analysis.values import EMPTY, UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler


def _crontab(call: Call) -> Val:
    opts = options(call.args, short="u")
    if opts.has("-l"):
        return Val(HOLE, origin="output of crontab")
    if opts.has("-r"):
        call.emit("persist", ("cron", "removes"), detail="removes the whole crontab")
        return UNKNOWN
    if opts.has("-e") and not opts.rest:
        call.emit("persist", ("cron", "edit"), detail="edits the crontab")
        return UNKNOWN
    call.emit("persist", ("cron",), detail="a crontab")
    text = call.input.text if not opts.rest or opts.rest[0].text == "-" else ""
    for line in text.split("\n"):
        words = line.split(None, 5)
        if line.startswith("@"):
            words = ["", "", "", "", *line.split(None, 1)]
        if len(words) > 5 and not line.startswith("#"):
            call.code(Val(words[5], call.input.taint), "scheduled", "cron", state=call.state.fork())
    return UNKNOWN


def _at(call: Call) -> Val:
    if call.texts()[:1] in (["-l"], ["-c"]):
        return UNKNOWN
    if call.stdin is not None:
        call.emit("persist", ("at",), detail="a job for later")
        call.code(call.stdin, "scheduled", "at", state=call.state.fork())
    else:
        call.emit("persist", ("at",), detail="a job for later")
    return UNKNOWN


_SYSTEMCTL_READ = frozenset(
    (
        "status",
        "list-units",
        "list-unit-files",
        "show",
        "cat",
        "is-active",
        "is-enabled",
        "is-failed",
        "list-timers",
        "list-sockets",
        "help",
        "get-default",
        "list-dependencies",
        "list-jobs",
        "show-environment",
        "--version",
    )
)


def _systemctl(call: Call) -> Val:
    words = operands(
        call, short="tpnMHo", long=("--type", "--property", "--host", "--machine", "--output", "--signal", "--state")
    )
    verb = words[0] if words else "list-units"
    if call.name in ("service", "rc-service"):
        verb = words[1] if len(words) > 1 else "status"
    units = words[1:] if call.name not in ("service", "rc-service") else words[:1]
    if verb in (
        "reboot",
        "poweroff",
        "halt",
        "kexec",
        "suspend",
        "hibernate",
        "emergency",
        "rescue",
        "isolate",
        "exit",
        "soft-reboot",
    ):
        call.emit("process", ("shutdown",), detail=f"{call.name} {verb}")
    elif verb in (
        "enable",
        "link",
        "reenable",
        "add-wants",
        "preset",
        "set-default",
        "edit",
        "import-environment",
        "set-environment",
    ):
        call.emit("persist", ("systemd", verb), detail=" ".join([call.name, *words])[:120])
    elif verb in ("stop", "disable", "mask", "kill"):
        security = any(
            any(
                k in u
                for k in (
                    "firewall",
                    "ufw",
                    "auditd",
                    "apparmor",
                    "selinux",
                    "fail2ban",
                    "crowdstrike",
                    "falcon",
                    "clamav",
                    "osquery",
                    "sshd",
                    "rsyslog",
                    "syslog",
                    "defender",
                    "guardhook",
                    "sysmon",
                    "wazuh",
                    "iptables",
                    "nftables",
                )
            )
            for u in units
        )
        call.emit(
            "process",
            {"service", verb} | ({"security"} if security else set()),
            detail=" ".join([call.name, *words])[:120],
        )
        if any("guardhook" in u for u in units):
            call.emit("guard_change", ("service",), detail=f"{verb} of guardhook")
    elif verb in ("start", "restart", "reload", "daemon-reload", "try-restart", "reset-failed", "condrestart"):
        call.emit("process", ("service", "start"), detail=" ".join([call.name, *words])[:120])
    return UNKNOWN


def _launchctl(call: Call) -> Val:
    words = operands(call)
    verb = words[0] if words else ""
    if verb in ("load", "bootstrap", "enable", "submit", "kickstart", "start"):
        call.emit("persist", ("launchd",), detail=" ".join(call.argv)[:120])
    elif verb in ("unload", "bootout", "disable", "remove", "kill", "stop"):
        call.emit("process", ("service", "stop"), detail=" ".join(call.argv)[:120])
    elif verb in ("setenv",):
        call.emit("persist", ("launchd", "environment"), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _service_links(call: Call) -> Val:
    call.emit("persist", ("init",), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _schtasks(call: Call) -> Val:
    texts = [t.lower() for t in call.texts()]
    if "/create" in texts:
        call.emit("persist", ("scheduled-task",), detail=" ".join(call.argv)[:120])
    elif "/delete" in texts:
        call.emit("process", ("scheduled-task", "delete"), detail=" ".join(call.argv)[:120])
    return UNKNOWN


# --- processes


def _kill(call: Call) -> Val:
    args = call.args
    signal = "TERM"
    targets: list[Val] = []
    index = 0
    while index < len(args):
        text = args[index].text
        if text in ("-s", "-n", "--signal") and index + 1 < len(args):
            signal = args[index + 1].text
            index += 1
        elif text in ("-l", "-L"):
            return UNKNOWN
        elif text == "--":
            targets.extend(args[index + 1 :])
            break
        elif text.startswith("-") and len(text) > 1 and not targets and not (text[1:].isdecimal() and index > 0):
            signal = text[1:]
        else:
            targets.append(args[index])
        index += 1
    flags = {"kill"}
    if signal.upper() in ("9", "KILL", "SIGKILL"):
        flags.add("force")
    if signal == "0":
        return UNKNOWN
    for value in targets:
        text = value.text
        if text == "-1":
            flags.add("everything")
        elif text == "1":
            flags.add("init")
        elif HOLE in text or text.startswith("%"):
            flags.add("unknown-process")
            if "$(" in value.raw or "`" in value.raw or "listing" in value.taint or "stdin-args" in value.taint:
                flags.add("by-search")
                if value.origin == "output of ps":
                    flags.add("everything")  # all that runs: nothing was chosen from it
        elif text == "$PPID" or value.raw in ("$PPID", '"$PPID"'):
            flags.add("parent")
        if "PPID" in value.raw:
            flags.add("parent")
    call.emit("process", flags, detail=" ".join(call.argv)[:80])
    return UNKNOWN


_VITAL = frozenset(("init", "systemd", "sshd", "dockerd", "claude", "codex", "gemini", "guardhook", "launchd", "loginwindow", "WindowServer", "Xorg", "gnome-shell", "cursor", "qwen", "kernel_task", "dbus-daemon"))  # fmt: skip


def _pkill(call: Call) -> Val:
    opts = options(
        [a for a in call.args if not _signal(a.text)],
        short="sguUGtPFc",
        long=("--signal", "--user", "--parent", "--terminal"),
    )
    forced = any(_signal(a.text) and a.text.lstrip("-").upper() in ("9", "KILL", "SIGKILL") for a in call.args)
    flags = {"kill", "by-name"} | ({"force"} if forced else set())
    names = [v.text for v in opts.rest]
    if any(n in _VITAL or n.strip("^$.*") in ("", *_VITAL) for n in names):
        flags.add("vital")
    if any(n in (".", "", ".*", "*") for n in names) or (opts.has("-u", "-U", "--user") and not names):
        flags.add("everything")
    if any(n in ("claude", "codex", "gemini", "qwen", "cursor") for n in names):
        flags.add("harness")
    call.emit("process", flags, detail=" ".join([call.name, *call.argv])[:80])
    return UNKNOWN


def _signal(text: str) -> bool:
    body = text[1:]
    return text.startswith("-") and (body.isdecimal() or (body.isupper() and len(body) > 1))


def _fuser(call: Call) -> Val:
    if options(call.args, short="ns").has("-k", "--kill"):
        call.emit("process", ("kill", "by-port"), detail=" ".join(call.argv)[:80])
    return UNKNOWN


def _shutdown(call: Call) -> Val:
    texts = call.texts()
    if texts[:1] in (["-c"], ["--help"]):
        return UNKNOWN
    if call.name in ("init", "telinit") and texts[:1] not in (["0"], ["6"], ["1"], ["s"], ["S"]):
        return UNKNOWN
    call.emit("process", ("shutdown",), detail=" ".join([call.name, *texts])[:80])
    return UNKNOWN


# --- privilege and accounts


def _accounts(call: Call) -> Val:
    flags = {"accounts"}
    texts = " ".join(call.texts())
    if call.name in ("userdel", "groupdel") or "-delete" in texts:
        flags.add("delete")
        if options(call.args).has("-r", "--remove"):
            flags.add("home")
    if any(g in texts for g in ("sudo", "wheel", "admin", "docker", "root")) and call.name in (
        "usermod",
        "gpasswd",
        "adduser",
        "useradd",
        "dseditgroup",
        "groupmod",
    ):
        flags.add("admin-group")
    if call.name in ("useradd", "adduser") and ("-o" in call.texts() and "0" in call.texts()):
        flags.add("as-root")
    if call.name in ("visudo", "vipw"):
        flags.add("sudoers")
    if call.name == "passwd" and not call.args:
        return UNKNOWN
    call.emit("privilege", flags, detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _setcap(call: Call) -> Val:
    call.emit("privilege", ("capability",), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _capsh(call: Call) -> Val:
    texts = call.texts()
    if "--" in texts:
        rest = call.args[texts.index("--") + 1 :]
        return call.run([Val("bash"), *rest], "capsh") if rest else UNKNOWN
    return UNKNOWN


def _kernel(call: Call) -> Val:
    if (
        call.name == "sysctl"
        and not any("=" in t for t in call.texts())
        and not options(call.args).has("-w", "-p", "--system")
    ):
        return UNKNOWN
    call.emit("privilege", ("kernel",), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _firewall(call: Call) -> Val:
    texts = call.texts()
    joined_text = " ".join(texts)
    reading = set(texts) & {
        "-L",
        "-S",
        "--list",
        "list",
        "status",
        "show",
        "-l",
        "--list-all",
        "--state",
        "-n",
        "--version",
        "-sr",
        "-s",
    }
    flags = {"firewall"}
    if (
        set(texts) & {"-F", "--flush", "flush", "disable", "reset", "-X", "-d", "--panic-on"}
        or "-P INPUT ACCEPT" in joined_text
    ):
        flags.add("off")
    elif reading:
        return UNKNOWN
    call.emit("privilege", flags, detail=f"{call.name} {joined_text}"[:120])
    return UNKNOWN


def _network(call: Call) -> Val:
    words = operands(call)
    changing = {"add", "del", "delete", "flush", "set", "replace", "down", "off", "change", "up"}
    if set(words[:3]) & changing or (call.name == "networksetup" and any(t.startswith("-set") for t in call.texts())):
        call.emit("privilege", ("network-config",), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _security_off(call: Call) -> Val:
    texts = [t.lower() for t in call.texts()]
    off = {
        "0",
        "permissive",
        "disable",
        "--master-disable",
        "-e",
        "reset",
        "off",
        "--global-disable",
        "clear",
        "/set",
        "delete",
        "cl",
        "-r",
    }
    if set(texts) & off or call.name in ("aa-disable", "tccutil", "apparmor_parser"):
        call.emit("privilege", ("security-off",), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _history(call: Call) -> Val:
    if options(call.args).has("-c", "-d", "-w", "-p") and not options(call.args).has("-p") and call.name == "history":
        call.emit("process", ("history",), detail="shell history")
        return UNKNOWN
    # People type passwords on command lines.
    return Val(HOLE, frozenset(("environment",)), "the shell's history")


def _journalctl(call: Call) -> Val:
    if any(t.startswith(("--vacuum", "--rotate")) for t in call.texts()):
        call.emit("process", ("logs",), detail=" ".join(call.argv)[:80])
    return UNKNOWN


def _keychain(call: Call) -> Val:
    words = operands(call)
    verb = words[0] if words else ""
    if verb in ("find-generic-password", "find-internet-password", "dump-keychain", "export", "find-certificate") and (
        set(call.texts()) & {"-w", "-g", "-d"} or verb in ("dump-keychain", "export")
    ):
        call.emit("read", ("credential", "keychain"), path_classes=frozenset(("secret",)), detail="the keychain")
        return Val(HOLE, frozenset(("secret",)), "the keychain")
    if verb.startswith(("delete-", "add-trusted", "authorizationdb", "set-keychain", "remove-trusted")):
        call.emit("privilege", ("keychain",), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _defaults(call: Call) -> Val:
    words = operands(call)
    if words[:1] == ["delete"] and len(words) < 3:
        call.emit("delete", ("preferences",), detail=" ".join(call.argv)[:80], path_classes=frozenset(("home_child",)))
    elif words[:1] == ["write"] and any("login" in w.lower() for w in words[1:3]):
        call.emit("persist", ("launchd",), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _registry(call: Call) -> Val:
    texts = [t.lower() for t in call.texts()]
    if texts[:1] == ["delete"]:
        call.emit(
            "delete",
            ("registry", "force" if "/f" in texts else "registry"),
            detail=" ".join(call.argv)[:120],
            path_classes=frozenset(("system",)),
        )
    elif texts[:1] == ["add"]:
        run = any("\\run" in t or "currentversion" in t for t in texts)
        call.emit("persist" if run else "privilege", ("registry",), detail=" ".join(call.argv)[:120])
    return UNKNOWN


def _windows(call: Call) -> Val:
    texts = [t.lower() for t in call.texts()]
    line = " ".join([call.name, *texts])
    if (call.name in ("vssadmin", "wmic") and "delete" in texts) or (call.name == "bcdedit" and "/set" in texts):
        call.emit("delete", ("backups",), detail=line[:120], path_classes=frozenset(("system",)))
    elif call.name == "cipher" and any(t.startswith("/w") for t in texts):
        call.emit("delete", ("overwrite",), detail=line[:120], path_classes=frozenset(("system",)))
    elif call.name == "net" and texts[:1] in (["user"], ["localgroup"]) and ("/add" in texts or "/delete" in texts):
        call.emit("privilege", ("accounts",), detail=line[:120])
    elif call.name in ("icacls", "takeown"):
        for value in options(call.args).rest[:1]:
            call.change(
                "chmod", Val(value.text.replace("\\", "/")), ("recursive",) if "/t" in texts or "/r" in texts else ()
            )
    elif call.name == "sc" and texts[:1] in (["delete"], ["stop"], ["config"], ["create"]):
        call.emit("persist" if texts[0] == "create" else "process", ("service", texts[0]), detail=line[:120])
    return UNKNOWN


# --- terminals that keep running


def _screen(call: Call) -> Val:
    if call.name == "screen":
        opts = options(call.args, short="ScptXehsT", permute=False)
        if opts.has("-X"):
            stuffed = [*opts.every("-X"), *opts.rest]
            if stuffed and stuffed[0].text in ("stuff", "exec"):
                return call.code(joined(stuffed[1:]), "typed", "screen", state=call.state.fork())
            return UNKNOWN
        if opts.has("-l", "--list", "-v") or "-ls" in call.texts() or "-list" in call.texts():
            return UNKNOWN
        return call.run(opts.rest, "screen") if opts.rest else _interactive(call)
    words = options(call.args, short="fLSc", permute=False).rest
    if not words:
        return _interactive(call)
    verb = words[0].text
    rest = words[1:]
    if verb in (
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "respawn-pane",
        "respawnp",
        "respawn-window",
        "run-shell",
        "run",
        "if-shell",
        "display-popup",
        "popup",
        "pipe-pane",
        "pipep",
    ):
        opts = options(rest, short="cesnFtxyl" if verb not in ("run-shell", "run") else "cbdt", permute=False)
        if not opts.rest:
            return UNKNOWN
        return (
            call.code(joined(opts.rest), "typed", "tmux", state=call.state.fork())
            if len(opts.rest) == 1 or verb in ("run-shell", "run")
            else call.run(opts.rest, "tmux")
        )
    if verb in ("send-keys", "send", "set-buffer", "setb"):
        opts = options(rest, short="tNb", permute=False)
        keys = [
            v
            for v in opts.rest
            if v.text not in ("Enter", "C-m", "C-j", "Space", "KPEnter", "Escape", "C-c", "Tab", "BSpace")
        ]
        if keys:
            return call.code(joined(keys), "typed", "tmux", state=call.state.fork())
    elif verb in ("kill-server",):
        call.emit("process", ("kill", "by-name"), detail="tmux kill-server")
    return UNKNOWN


def _interactive(call: Call) -> Val:
    call.emit("run", ("interactive", "shell"), detail="takes commands that no hook sees")
    return UNKNOWN


def _keys(call: Call) -> Val:
    opts = options(call.args, short="tbfNCPVsIOnzY")
    target = opts.value("-f")
    if target is not None and call.name == "ssh-keygen" and not opts.has("-l", "-y", "-R", "-F", "-e"):
        call.change("write", target, ("key",))
    if opts.has("-y", "-e") and target is not None and call.name == "ssh-keygen":
        call.read(target)
    if call.name == "ssh-add" and opts.has("-D"):
        call.emit("process", ("keys",), detail="removes all identities from the agent")
    return UNKNOWN


def _reading(call: Call) -> Val:
    return UNKNOWN


def _attack(call: Call) -> Val:
    call.emit("connect", ("attack-tool", "scan"), host="", detail=call.name)
    return UNKNOWN


def _capture(call: Call) -> Val:
    opts = options(call.args, short="iwrcsnCGWZ")
    call.emit("privilege", ("packet-capture",), detail=" ".join(call.argv)[:80])
    for value in opts.every("-z"):
        call.code(value, "inline")
    target = opts.value("-w")
    if target is not None:
        call.change("write", target, ("truncate",))
    return Val(HOLE, frozenset(("network",)), "captured packets")


def _tmutil(call: Call) -> Val:
    words = operands(call)
    if words and words[0] in ("delete", "deletelocalsnapshots", "disable", "thinlocalsnapshots", "removedestination"):
        call.emit("delete", ("backups",), detail=" ".join(call.argv)[:80], path_classes=frozenset(("system",)))
    return UNKNOWN


def _pm2(call: Call) -> Val:
    words = operands(call)
    if words and words[0] in ("delete", "kill", "stop"):
        call.emit(
            "process",
            {"service", "stop"} | ({"everything"} if "all" in words or words[0] == "kill" else set()),
            detail=" ".join(call.argv)[:80],
        )
    elif words and words[0] in ("startup", "save"):
        call.emit("persist", ("init",), detail=" ".join(call.argv)[:80])
    return UNKNOWN


def _xdotool(call: Call) -> Val:
    words = [v for v in call.args if not v.text.startswith("-")]
    if words and words[0].text == "type" and len(words) > 1:
        return call.code(joined(words[1:]), "typed", call.name, state=call.state.fork())
    return EMPTY


def _boot(call: Call) -> Val:
    call.emit("privilege", ("boot",), detail=" ".join([call.name, *call.argv])[:120])
    return UNKNOWN


def _loginctl(call: Call) -> Val:
    words = operands(call)
    if words[:1] == ["enable-linger"]:
        call.emit("persist", ("systemd", "linger"), detail="keeps user services running after logout")
    elif words and words[0].startswith(("terminate", "kill")):
        call.emit("process", ("kill", "session"), detail=" ".join(words))
    return UNKNOWN


HANDLERS: dict[str, Handler] = {
    "": _reading, "crontab": _crontab, "at": _at, "batch": _at, "systemctl": _systemctl, "service": _systemctl, "rc-service": _systemctl, "launchctl": _launchctl, "update-rc.d": _service_links, "rc-update": _service_links,
    "chkconfig": _service_links, "schtasks": _schtasks, "kill": _kill, "pkill": _pkill, "killall": _pkill, "killall5": _shutdown, "skill": _pkill, "taskkill": _pkill, "xkill": _pkill, "stop-process": _pkill, "fuser": _fuser,
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kexec"), _shutdown),
    **dict.fromkeys(("useradd", "adduser", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "passwd", "chpasswd", "visudo", "vipw", "chsh", "gpasswd", "dscl", "dseditgroup", "chage"), _accounts),
    "setcap": _setcap, "capsh": _capsh, **dict.fromkeys(("sysctl", "modprobe", "insmod", "rmmod", "kextload", "kmod"), _kernel),
    **dict.fromkeys(("iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "pfctl", "netsh"), _firewall), **dict.fromkeys(("ip", "ifconfig", "route", "nmcli", "networksetup"), _network),
    **dict.fromkeys(("setenforce", "aa-disable", "apparmor_parser", "auditctl", "csrutil", "spctl", "tccutil", "nvram", "wevtutil", "auditpol", "set-mppreference", "add-mppreference"), _security_off),
    "history": _history, "fc": _history, "journalctl": _journalctl, "security": _keychain, "defaults": _defaults, "reg": _registry, **dict.fromkeys(("vssadmin", "wmic", "bcdedit", "cipher", "net", "icacls", "takeown", "sc"), _windows),
    **dict.fromkeys(("screen", "tmux", "byobu"), _screen), "ssh-keygen": _keys, "ssh-add": _keys, "tcpdump": _capture, "tshark": _capture,
    **dict.fromkeys(("hydra", "john", "hashcat", "msfconsole", "msfvenom", "sqlmap", "nikto", "mimikatz", "responder", "gobuster", "ettercap", "arpspoof", "hping3", "aircrack-ng"), _attack),
    "tmutil": _tmutil, "pm2": _pm2, "supervisorctl": _pm2, "xdotool": _xdotool, "ydotool": _xdotool, **dict.fromkeys(("grub-install", "update-grub", "efibootmgr", "bless", "dracut", "mkinitcpio"), _boot), "loginctl": _loginctl,
}  # fmt: skip
