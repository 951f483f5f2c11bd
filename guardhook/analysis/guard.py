"""Commands and variables that switch the guard off, or call it in the harness's place."""

from __future__ import annotations

from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.call import Call

_OWN = frozenset(("guardhook", "guardhook-hook"))
# The launchers in <data>/bin are named after a dialect and a mode.
_LAUNCHER_ENDINGS = (".enforce", ".observe")
# Environment variables of harnesses that switch hooks off or put other settings in their place.
_SWITCHES = frozenset((
    "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_DISABLE_HOOKS", "DISABLE_HOOKS", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    "CLAUDE_CODE_MANAGED_SETTINGS_PATH", "GUARDHOOK_DIR", "GUARDHOOK_DISABLE", "GUARDHOOK_BYPASS", "QWEN_CODE_SYSTEM_SETTINGS_PATH", "CURSOR_CONFIG_DIR", "COPILOT_HOME", "GUARDHOOK_ROLLOUT_DIR", "GEMINI_CLI_HOME",
))  # fmt: skip
# Variables that make any program that starts run other code.
_LOADERS = frozenset(("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PYTHONPATH", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "MANPAGER", "BROWSER", "GIT_PROXY_COMMAND", "SSH_ASKPASS"))  # fmt: skip
_RUN_AS_CODE = frozenset(("PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "PAGER", "EDITOR", "VISUAL", "MANPAGER", "BROWSER", "GIT_PROXY_COMMAND", "SSH_ASKPASS"))  # fmt: skip
_PLAIN_TOOLS = frozenset(("cat", "less", "more", "vim", "vi", "nano", "true", ":", "emacs", "code", "nvim", "ssh", "echo", "head", "delta", "bat", "open", "xdg-open", "firefox", "chrome", "none", "chromium", "false", "git", "ed", "micro", "subl", "hx", "tail", "cp", "touch"))  # fmt: skip

# Words in settings given on a command line that switch hooks off.
SETTINGS = ("disableallhooks", "allowmanagedhooksonly", "features.hooks=false", "features.hooks = false", "features.codex_hooks=false", "hooks=false", '"hooks":{}', "hooksconfig.enabled=false", "bypass_hook_trust", "disableallhooks\":true", "hooks={}", "hooks=[]")  # fmt: skip


def environment(call: Call) -> None:
    """Assignments in front of a command, or exported: switches of harnesses, loaders, git's own variables."""
    for name, value in call.env.items():
        text = value.text if isinstance(value, Val) else HOLE
        if (name == "HISTFILE" and text in ("", "/dev/null")) or (name in ("HISTSIZE", "HISTFILESIZE") and text == "0"):
            call.emit("process", ("history",), detail="shell history")
        if name in _SWITCHES and not (
            text in ("", "0", "false") and name.startswith(("CLAUDE_CODE_S", "DISABLE", "CLAUDE_CODE_D"))
        ):
            flags = frozenset(("environment", "switch"))
            call.emit("guard_change", flags, detail=f"{name} changes whether or which hooks run", path="")
        elif name in _LOADERS and text and isinstance(value, Val):
            _loader(call, name, value)
        elif name.startswith("GIT_CONFIG_VALUE_") and isinstance(value, Val) and text.startswith("!"):
            call.code(Val(text[1:]), "git-alias", state=call.state.fork())
        elif name in ("HUSKY", "HUSKY_SKIP_HOOKS", "SKIP", "PRE_COMMIT_ALLOW_NO_CONFIG") and text not in (
            "",
            "1" if name == "HUSKY" else "",
        ):
            call.emit("git", ("hooks-bypass",), git="hooks", detail=f"{name}={text}")


def _loader(call: Call, name: str, value: Val) -> None:
    text = value.text
    if name in _RUN_AS_CODE:
        first = text.split()[0].rpartition("/")[2] if text.split() else ""
        if first not in _PLAIN_TOOLS:
            call.code(value, "environment", state=call.state.fork())
    elif name in ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"):
        call.emit("privilege", ("preload",), detail=f"{name}={value.shown}")
        place = call.place(Val(text.split(":")[0], value.taint))
        if walker_taint(call, place.text):
            call.emit("run_fetched", ("preload",), detail=place.path)
    elif name in ("BASH_ENV", "ENV", "PYTHONSTARTUP") and text:
        from guardhook.analysis.programs.shells import run_file

        if name != "ENV" or "/" in text:
            keep = call.state
            call.state = call.state.fork()
            run_file(call, value, [])
            call.state = keep
    elif name == "NODE_OPTIONS" and ("--require" in text or "-r " in text or "--import" in text):
        call.emit("run", ("preload",), detail=f"{name}={value.shown}")


def walker_taint(call: Call, path: str) -> bool:
    """Whether a file that this command wrote came from the network."""
    known = call.walker.files.get(path)
    return known is not None and "network" in known.taint


def command(call: Call, text: str) -> None:
    """A program with its arguments: guardhook itself, its launcher, processes and packages of that name."""
    name = call.name
    if name in _OWN or "guardhook" in name or (text.endswith(_LAUNCHER_ENDINGS) and "/" in text):
        _own(call, text)
        return
    if name in _MODULE_RUNNERS and "guardhook" in call.texts():
        texts = call.texts()
        at = texts.index("guardhook")
        if (at and texts[at - 1] == "-m") or name in ("uvx", "pipx", "uv", "npx", "rye", "poetry", "hatch"):
            inner = list(call.args[at + 1 :])
            if name in ("pip", "pipx", "uv") and {"uninstall", "remove", "install"} & set(texts[:at]):
                if {"uninstall", "remove"} & set(texts[:at]):
                    call.emit("guard_change", ("uninstall",), detail="removes guardhook")
                return
            _own(call, "guardhook", inner)
            return
    if name in _REMOVERS:
        texts = [t.lower() for t in call.texts()]
        if any(
            t.partition("=")[0].partition("==")[0].rpartition("/")[2] in _OWN for t in texts
        ) and _REMOVE_WORDS & set(texts):
            call.emit("guard_change", ("uninstall",), detail="removes guardhook")
    elif name in _KILLERS and (
        any("guardhook" in a.text or "guardhook" in a.raw for a in call.args)
        or any(t.rpartition("/")[2].endswith(_LAUNCHER_ENDINGS) for t in call.texts())
    ):
        call.emit("guard_change", ("kill",), detail="ends guardhook")


_MODULE_RUNNERS = frozenset(("python", "python3", "py", "uvx", "pipx", "uv", "npx", "poetry", "hatch", "rye", "pip", "python3.11", "python3.12", "python3.13", "python3.14"))  # fmt: skip
_REMOVERS = frozenset(("pip", "pip3", "pipx", "uv", "apt", "apt-get", "dpkg", "brew", "npm", "dnf", "yum", "rpm", "conda", "pacman", "apk", "zypper", "snap", "port", "nix-env", "poetry", "rye", "pdm", "winget", "choco", "scoop", "aptitude", "pnpm", "yarn", "python", "python3", "py", "bun"))  # fmt: skip
_REMOVE_WORDS = frozenset(("uninstall", "remove", "purge", "-r", "-e", "autoremove", "rm", "-rns", "-rs", "del", "erase", "--uninstall", "unlink", "-p", "--purge", "--remove", "disable", "mask", "stop"))  # fmt: skip
_KILLERS = frozenset(
    (
        "kill",
        "pkill",
        "killall",
        "skill",
        "xkill",
        "fuser",
        "systemctl",
        "launchctl",
        "taskkill",
        "stop-process",
        "service",
    )
)


def _own(call: Call, text: str, args: list[Val] | None = None) -> None:
    from guardhook.analysis import guardcommands

    by_hand = call.name == "guardhook-hook" or text.endswith(_LAUNCHER_ENDINGS)
    guardcommands.judge(call, call.args if args is None else args, by_hand=by_hand)


def settings_text(text: str) -> str:
    """The word in settings text that switches hooks off; "" when there is none."""
    squeezed = text.lower().replace(" ", "").replace("'", '"')
    for word in SETTINGS:
        if word.replace(" ", "") in squeezed:
            return word
    return ""
