"""What follows from where a path lies: changing hook settings, starting at every login, becoming root."""

from __future__ import annotations

from guardhook.analysis.nodes import HOLE, STAR
from guardhook.analysis.paths import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.ground import Ground

_RC = frozenset((
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".bash_logout", ".kshrc", ".mkshrc", ".cshrc",
    ".tcshrc", ".login", ".xprofile", ".xinitrc", ".xsessionrc", ".inputrc", ".config/fish/config.fish", ".bash_aliases", ".pam_environment",
    ".config/powershell/profile.ps1", ".vimrc", ".emacs", ".pythonrc", ".config/nvim/init.lua", ".config/nvim/init.vim",
))  # fmt: skip
_RC_FOLDERS = (
    ".config/fish/conf.d/",
    ".bashrc.d/",
    ".zshrc.d/",
    ".config/environment.d/",
    ".oh-my-zsh/custom/",
    ".config/powershell/",
)
# (prefix, flag)
_STARTED = (
    ("/etc/cron", "cron"), ("/var/spool/cron", "cron"), ("/etc/anacrontab", "cron"), ("/etc/crontab", "cron"), ("/etc/systemd/", "systemd"), ("/lib/systemd/", "systemd"),
    ("/usr/lib/systemd/", "systemd"), ("/run/systemd/", "systemd"), ("/etc/init.d", "init"), ("/etc/rc.local", "init"), ("/etc/rc", "init"), ("/etc/inittab", "init"),
    ("/etc/profile", "shell-rc"), ("/etc/bash", "shell-rc"), ("/etc/zsh", "shell-rc"), ("/etc/environment", "shell-rc"), ("/etc/ld.so.preload", "preload"),
    ("/etc/ld.so.conf", "preload"), ("/Library/LaunchDaemons", "launchd"), ("/Library/LaunchAgents", "launchd"), ("/System/Library/Launch", "launchd"),
    ("/etc/xdg/autostart", "autostart"), ("/etc/udev/rules.d", "udev"), ("/etc/modules", "kernel-module"), ("/etc/modprobe.d", "kernel-module"),
    ("/etc/update-motd.d", "shell-rc"), ("/etc/pam.d", "pam"), ("/etc/ssh/sshd_config", "sshd"), ("/etc/apt/apt.conf.d", "apt"), ("/etc/at.", "cron"),
    ("/etc/NetworkManager/dispatcher.d", "network"), ("/etc/logrotate.d", "cron"), ("/etc/hosts", "hosts"), ("/etc/resolv.conf", "hosts"),
)  # fmt: skip
_STARTED_HOME = (
    (".config/systemd/user", "systemd"), (".local/share/systemd", "systemd"), ("Library/LaunchAgents", "launchd"), (".config/autostart", "autostart"),
    (".ssh/authorized_keys", "authorized-keys"), (".ssh/rc", "authorized-keys"), (".ssh/config", "ssh-config"), (".ssh/environment", "authorized-keys"),
    (".crontab", "cron"), (".config/git/hooks", "git-hook"), (".git-templates", "git-hook"), (".npmrc", "registry-config"), (".pip/pip.conf", "registry-config"),
    (".config/pip/pip.conf", "registry-config"), (".pypirc", "registry-config"), (".gitconfig", "git-config"), (".config/git/config", "git-config"), (".pydistutils.cfg", "registry-config"),
    (".cargo/config.toml", "registry-config"), (".docker/config.json", "registry-config"),
)  # fmt: skip
_PRIVILEGE = (("/etc/sudoers", "sudoers"), ("/etc/passwd", "accounts"), ("/etc/shadow", "accounts"), ("/etc/group", "accounts"), ("/etc/gshadow", "accounts"), ("/etc/polkit-1", "polkit"), ("/etc/doas.conf", "sudoers"), ("/etc/security", "pam"), ("/etc/pam.d", "pam"), ("/proc/sys/kernel", "kernel"), ("/sys/kernel", "kernel"), ("/sys/fs/cgroup", "cgroup"))  # fmt: skip


def note_write(walker: Ground, kind: str, place: Place, flags: frozenset[str], span: tuple[int, int] | None) -> None:
    """Emits write, delete, move, chmod … of a path, and the effects that follow from the place."""
    walker.emit(kind, path=place.path, path_classes=place.classes, flags=flags, span=span)
    if "guard" in place.classes and not ("guard-folder" in place.flags and kind == "write"):
        which = "guardhook's own files" if "guard-own" in flags else "the hook settings of a harness"
        named = {f for f in flags if f.startswith("guard-")}
        walker.emit(
            "guard_change",
            path=place.path,
            path_classes=place.classes,
            flags=frozenset((kind, "file", *named)),
            detail=f"{kind} of {which}",
            span=span,
        )
    if walker.inside == "container":
        return
    if kind in ("write", "move", "link"):
        where = persist_flag(place, walker.facts.home)
        if where:
            more = {where} | ({"append"} if "append" in flags else set())
            walker.emit(
                "persist",
                path=place.path,
                path_classes=place.classes,
                flags=frozenset(more),
                detail=place.path,
                span=span,
            )
    if kind == "write" and place.text == "/proc/sysrq-trigger":
        walker.emit("process", flags=frozenset(("shutdown",)), detail="the kernel's own restart", span=span)
    if kind in ("write", "move", "chmod", "chown", "delete"):
        for prefix, flag in _PRIVILEGE:
            if place.text.startswith(prefix):
                walker.emit(
                    "privilege", path=place.path, flags=frozenset((flag,)), detail=f"{kind} of {place.path}", span=span
                )
                break


def persist_flag(place: Place, home: str) -> str:
    """How something written to the place would be started or trusted later; "" when it wouldn't."""
    text = place.text
    if "git-hooks" in place.flags and not text.endswith(".sample"):
        return "git-hook"
    for prefix, flag in _STARTED:
        if text.startswith(prefix):
            return flag
    rest = ""
    if text.startswith(home + "/"):
        rest = text[len(home) + 1 :]
    elif text.startswith("/root/"):
        rest = text[6:]
    elif text.startswith(("/home/", "/Users/")) and text.count("/") > 2:
        rest = text.split("/", 3)[3]
    elif HOLE in text or STAR in text[:1]:
        rest = text.replace(HOLE, "").lstrip("/")
    if text.endswith((".pth", "/usercustomize.py", "/sitecustomize.py")) and "-packages/" in text:
        return "shell-rc"  # run by every start of that Python
    if not rest:
        return ""
    if rest in _RC or rest.startswith(_RC_FOLDERS):
        return "shell-rc"
    for prefix, flag in _STARTED_HOME:
        if rest == prefix or rest.startswith(prefix + "/") or (flag == "authorized-keys" and rest.startswith(prefix)):
            return flag
    return ""


def words() -> set[str]:
    """Last pieces of the paths that are started or trusted later."""
    found: set[str] = set()
    for name in (
        *_RC,
        *_RC_FOLDERS,
        *(p for p, _ in _STARTED),
        *(p for p, _ in _STARTED_HOME),
        *(p for p, _ in _PRIVILEGE),
    ):
        found.add(name.rstrip("/").rpartition("/")[2].lower())
    return found
