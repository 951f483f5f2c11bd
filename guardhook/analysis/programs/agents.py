"""Coding agents started by an agent: the options that start them without hooks or without asking."""

from __future__ import annotations

from guardhook.analysis import guard
from guardhook.analysis.call import Call
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# Options that start the harness without the user's hooks.
_OFF = frozenset(
    (
        "--safe-mode",
        "--bare",
        "--simple",
        "--dangerously-bypass-hook-trust",
        "--ignore-user-config",
        "--no-hooks",
        "--disable-hooks",
        "--skip-hooks",
    )
)
_SOURCES = (
    "--setting-sources",
    "--settings",
    "--config",
    "-c",
    "--disable",
    "--enable",
    "--system-settings",
    "--managed-settings",
)
# Options that let it act without asking.
_UNATTENDED = frozenset(("--dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto", "--allow-all-tools", "-y", "--force", "--trust-all-tools", "--auto-approve", "--allow-all", "--no-sandbox"))  # fmt: skip


def _agent(call: Call) -> Val:
    texts = call.texts()
    if any(name in call.env for name in ("HOME", "XDG_CONFIG_HOME", "-i")):
        call.emit(
            "guard_change",
            ("switch", "environment"),
            detail=f"{call.name} with another home or environment reads other settings",
        )
    for index, text in enumerate(texts):
        name, equals, value = text.partition("=")
        following = texts[index + 1] if index + 1 < len(texts) else ""
        if name in _OFF or (
            name.startswith("--")
            and len(name) > 5
            and any(o.startswith(name) for o in ("--safe-mode", "--dangerously-bypass-hook-trust"))
        ):
            call.emit("guard_change", ("switch", "option"), detail=f"{call.name} {name}")
        elif name in _SOURCES:
            given = value if equals else following
            if name == "--disable" and given in ("hooks", "codex_hooks", "plugin_hooks"):
                call.emit("guard_change", ("switch", "option"), detail=f"{call.name} --disable {given}")
            elif name == "--setting-sources" and "user" not in given:
                call.emit("guard_change", ("switch", "option"), detail=f"{call.name} leaves the user's settings out")
            elif guard.settings_text(given) or (
                name in ("-c", "--config")
                and given.replace(" ", "").startswith(("hooks", "features.hooks", "features.codex_hooks"))
                and "true" not in given
            ):
                call.emit("guard_change", ("switch", "option"), detail=f"{call.name} {name} {given[:60]}")
        elif name in _UNATTENDED and call.name in (
            "claude",
            "codex",
            "gemini",
            "qwen",
            "copilot",
            "cursor-agent",
            "aider",
            "crush",
            "droid",
            "kiro-cli",
            "opencode",
            "goose-agent",
            "amp",
        ):
            if name in ("-y", "--force") and call.name not in ("gemini", "qwen", "cursor-agent"):
                continue
            call.emit("run", ("unattended-agent",), detail=f"{call.name} {name}")
    words = [t for t in texts if not t.startswith("-")]
    if (
        words[:1] == ["hooks"]
        and len(words) > 1
        and words[1] in ("disable", "remove", "uninstall", "off", "disable-all", "delete")
    ):
        call.emit("guard_change", ("switch", "command"), detail=f"{call.name} {' '.join(words[:2])}")
    if (
        words[:1] in (["extensions"], ["extension"], ["plugin"], ["plugins"])
        and len(words) > 1
        and words[1] in ("disable", "remove", "uninstall")
        and any("guardhook" in w for w in words)
    ):
        call.emit("guard_change", ("uninstall",), detail=f"{call.name} {' '.join(words[:3])}")
    if words[:2] in (["config", "set"], ["config", "unset"], ["settings", "set"], ["features", "disable"]) and (
        "hook" in " ".join(words[2:]).lower()
    ):
        call.emit("guard_change", ("switch", "command"), detail=f"{call.name} {' '.join(words)[:80]}")
    return UNKNOWN


def _own(call: Call) -> Val:
    return UNKNOWN


HANDLERS: dict[str, Handler] = {"": _agent, "guardhook": _own, "guardhook-hook": _own}
