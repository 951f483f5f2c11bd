"""Claude Code: where its settings are, what is registered in them, and how to tell what the client makes of it.

Facts are those of clients 2.1.197 and 2.1.332 (native Linux builds) unless a version is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardhook.core import limits
from guardhook.harness import clients, commandline, hooksfile, model
from guardhook.harness.errors import HarnessError
from guardhook.harness.files import Files
from guardhook.harness.jsonc import Document
from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, FileEdit, Finding, Plan, Ran, Reader, Registration, Request, Undo

ID = "claude-code"
TITLE = "Claude Code"

# Judged: the events before something happens whose answer the client obeys. PreSkillShellCommand (2.1.330 on; older clients pass
# over unknown names since 2.1.101) is the only event for a shell line inside a skill. ConfigChange keeps a session from
# reloading settings without us. A prompt is judged only when a policy asks for it: blocking one erases what the person typed.
# Told: nothing is judged, but the person at the client may be told something.
# Watched: what tells how a call or a session went. Left out on purpose: PostToolBatch (the same results a second time),
# MessageDisplay (one process per piece of streamed text), PostCompact (the conversation once more), InstructionsLoaded and
# FileChanged (nothing an agent did); WorktreeCreate must never be registered, it replaces the client's own worktrees.
EVENTS: Mapping[str, str] = {
    "PreToolUse": "judged",
    "PermissionRequest": "judged",
    "PreSkillShellCommand": "judged",
    "ConfigChange": "judged",
    "UserPromptSubmit": "prompt",
    "UserPromptExpansion": "prompt",
    "PostToolUse": "observed",
    "PostToolUseFailure": "observed",
    "PermissionDenied": "observed",
    "SubagentStart": "observed",
    "SubagentStop": "closing",
    "Stop": "closing",
    "StopFailure": "closing",
    "SessionStart": "told",
    "SessionEnd": "closing",
    "PreCompact": "observed",
    "Notification": "observed",
}

ON_FAILURE = "2.1.295"  # `onFailure` exists from here; older clients ignore the key
ARGS = "2.1.139"  # `args` exists from here; older clients drop it and hand `command` to a shell
SKILL_SHELL = "2.1.330"
# Older clients pass over the name, but at a terminal they warn of it before every session and offer to take it out (2.1.197).
SINCE: Mapping[str, str] = {"PreSkillShellCommand": SKILL_SHELL}
# A malformed entry under one of these drops the whole settings file, permission rules too (2.1.332).
_STRICT = ("PreToolUse", "PermissionRequest")
_TYPES = ("command", "http", "mcp_tool", "prompt", "agent")


def places(machine: Machine, scope: str) -> list[str]:
    """The file to write first. Project scope uses the personal file: a launcher path means nothing on a colleague's machine."""
    if scope == "system":
        return [
            machine.system(
                "/etc/claude-code/managed-settings.json",
                "/Library/Application Support/ClaudeCode/managed-settings.json",
                r"C:\Program Files\ClaudeCode\managed-settings.json",
            )
        ]
    if scope == "project":
        folder = machine.join(machine.project, ".claude")
        return [machine.join(folder, "settings.local.json"), machine.join(folder, "settings.json")]
    return [machine.join(machine.folder("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")]


def ours(handler: object) -> bool:
    """Whether a handler starts one of our launchers."""
    if not isinstance(handler, dict):
        return False
    return commandline.ours(ID, handler.get("command"), handler.get("args"))


def group(request: Request, event: str) -> dict[str, Any]:
    """The entry for one event: the exec form, so that no shell and no prefix variable of a project stands in between."""
    role = EVENTS[event]
    judged = role == "judged" or (role == "prompt" and request.prompts)
    launcher, mode = request.launcher(judged=judged or role == "told")
    args = commandline.arguments(ID, launcher, mode, event)
    handler: dict[str, Any] = {"type": "command", "command": launcher, "args": args}
    if judged and request.mode == model.ENFORCE:
        handler["timeout"] = int(limits.REGISTERED_ENFORCING)
        handler["onFailure"] = "block"
    else:
        handler["timeout"] = model.CLOSING_SECONDS if role == "closing" else model.OBSERVING_SECONDS
    return {"hooks": [handler]}


def plan(machine: Machine, request: Request, read: Reader) -> Plan:
    first, *others = places(machine, request.scope)
    groups = {event: group(request, event) for event in clients.known(EVENTS, SINCE, client(machine))}
    made = Plan()
    lint(first, read(first))
    made.edits.append(hooksfile.register(first, read(first), groups, ours))
    for path in others:
        made.edits += _without(path, read(path), Undo())
    for path in (first, *others):
        if _value(path, read(path)).get("disableAllHooks") is True:
            made.notes.append(f"{path} says `disableAllHooks: true`: no hook runs until that line is gone")
    if request.scope == "project":
        made.notes.append(f"{first} is personal: keep it out of version control")
    return made


def unplan(machine: Machine, scope: str, read: Reader, undo: Callable[[str], Undo]) -> Plan:
    return Plan([edit for path in places(machine, scope) for edit in _without(path, read(path), undo(path))])


def _without(path: str, data: bytes | None, undo: Undo) -> list[FileEdit]:
    if data is None:
        return []
    edit = hooksfile.unregister(path, data, ours, undo)
    return [edit] if edit.after != edit.before else []


def extra(machine: Machine, scope: str) -> list[str]:
    return []


def finish(machine: Machine, request: Request, files: Files) -> list[Finding]:
    return []


def registrations(machine: Machine, scope: str, read: Reader) -> list[Registration]:
    found = []
    for path in places(machine, scope):
        data = read(path)
        for one in hooksfile.handlers(hooksfile.parse(path, data), path) if data is not None else ():
            if not ours(one.value):
                continue
            command, args = one.value["command"], one.value.get("args")
            if isinstance(args, list):
                parsed = commandline.read(ID, [command, *map(str, args)])
            else:
                parsed = commandline.parse(machine.platform, ID, command)
            exact = parsed is not None and one.value.get("type") == "command" and not one.group_value.get("matcher")
            exact = exact and not ({"async", "if", "shell"} & one.value.keys())
            found.append(model.registration(scope, path, one.event, parsed, exact, one.value, (one.group, one.index)))
    return found


def lint(path: str, data: bytes | None) -> list[str]:
    """Reads a settings file by the client's own rules. Raises HarnessError for what makes it drop the whole file.

    Returns what makes it drop single entries.
    """
    document = hooksfile.parse(path, data)
    hooksfile.refuse_extras(document, path, TITLE, comments=False, bom=True)
    hooks = hooksfile.hooks_node(document, path)
    dropped = []
    for event in hooks.children if hooks else ():
        for problem, node in _problems(event.node):
            where = hooksfile.place(document, path, node)
            if event.key in _STRICT:
                raise HarnessError(
                    f"{where}: {problem} in hooks.{event.key}: Claude Code ignores a settings file with this in it, and every hook of it",
                    "put this entry right or take it out, then run the command again",
                )
            dropped.append(f"{where}: {problem} in hooks.{event.key}: Claude Code ignores this entry")
    return dropped


def _problems(event: Any) -> list[tuple[str, Any]]:
    if event.kind != "array":
        return [("not a list", event)]
    found: list[tuple[str, Any]] = []
    for child in event.children:
        inner = child.node.get("hooks") if child.node.kind == "object" else None
        if inner is None or inner.kind != "array":
            found.append(("an entry without a `hooks` list", child.node))
            continue
        matcher = child.node.get("matcher")
        if matcher is not None and not isinstance(matcher.scalar, str):
            found.append(("a `matcher` that is not a text", matcher))
        found += [(problem, one.node) for one in inner.children if (problem := _handler_problem(one.node.plain()))]
    return found


def _handler_problem(value: Any) -> str | None:
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        return f"a handler whose `type` is not one of {', '.join(_TYPES)}"
    if value["type"] == "command" and not isinstance(value.get("command"), str):
        return "a handler without a `command`"
    timeout = value.get("timeout", 1)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        return "a `timeout` that is not a number above 0"
    if value.get("onFailure", "block") not in ("block", "continue"):
        return "an `onFailure` that is neither `block` nor `continue`"
    return None


def client(machine: Machine) -> Client | None:
    usual = [
        machine.join(machine.home, *parts) for parts in ((".local", "bin", "claude"), (".claude", "local", "claude"))
    ]
    return clients.probe(machine, machine.which("claude", *usual, "/opt/homebrew/bin/claude", "/usr/local/bin/claude"))


def findings(machine: Machine, found: Sequence[Registration], client: Client | None, read: Reader) -> list[Finding]:
    out = _version_findings(found, client)
    managed = any(r.scope == "system" for r in found)
    for scope in model.SCOPES:
        for path in places(machine, scope):
            try:
                values = _value(path, read(path))
                dropped = lint(path, read(path))
            except HarnessError as error:
                out.append(Finding("settings", False, error.message))
                continue
            out += [Finding("settings", None, text) for text in dropped]
            # Managed hooks outlive this switch in every other file (2.1.49 on).
            if values.get("disableAllHooks") is True and (scope == "system" or not managed):
                out.append(Finding("off switch", False, f"{path} says `disableAllHooks: true`: no hook of ours runs"))
            if scope == "system" and values.get("allowManagedHooksOnly") is True and found and not managed:
                out.append(
                    Finding("off switch", False, f"{path} says `allowManagedHooksOnly`: hooks outside of it don't run")
                )
            env = values.get("env")
            if isinstance(env, dict) and env.get("CLAUDE_CODE_SIMPLE") and scope != "system":
                out.append(
                    Finding(
                        "off switch", False, f"{path} sets CLAUDE_CODE_SIMPLE: older clients then run without hooks"
                    )
                )
    if machine.env.get("CLAUDE_CODE_SIMPLE") and not managed:
        out.append(
            Finding(
                "off switch",
                False,
                "CLAUDE_CODE_SIMPLE is set in this environment: Claude Code started here runs no user hooks",
            )
        )
    return out


def _version_findings(found: Sequence[Registration], client: Client | None) -> list[Finding]:
    version = client.version if client else None
    out = []
    if clients.older(version, ON_FAILURE):
        out.append(
            Finding(
                "version",
                None,
                f"Claude Code {version} has no `onFailure` (from {ON_FAILURE} on): if it kills the launcher itself, the call goes through",
            )
        )
    if clients.older(version, SKILL_SHELL):
        out.append(
            Finding(
                "version",
                None,
                f"Claude Code {version} runs shell lines of skills unasked (asked from {SKILL_SHELL} on)",
            )
        )
    for path in sorted({r.launcher for r in found}):
        if clients.older(version, ARGS) and re.search(r"[^\w./:@%+,=-]", path):
            out.append(
                Finding(
                    "version",
                    False,
                    f"Claude Code {version} gives the path to a shell, which can't run {path}: update the client",
                )
            )
    return out


def _value(path: str, data: bytes | None) -> dict[str, Any]:
    document: Document = hooksfile.parse(path, data)
    value = document.root.plain()
    return value if isinstance(value, dict) else {}


def invocation(machine: Machine, registration: Registration) -> tuple[list[str], dict[str, str]]:
    argv = [registration.launcher, *map(str, registration.handler.get("args") or ())]
    return argv, {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": machine.cwd, "CLAUDE_CODE_ENTRYPOINT": "cli"}


def canary(event: str, command: str, folder: str) -> dict[str, object] | None:
    if event not in ("PreToolUse", "PermissionRequest", "PreSkillShellCommand"):
        return None
    session = "00000000-0000-4000-8000-000000000000"
    payload: dict[str, object] = {
        "session_id": session,
        "transcript_path": f"{folder}/.claude/projects/canary/{session}.jsonl",
        "cwd": folder,
        "prompt_id": session,
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }
    if event != "PermissionRequest":
        payload["tool_use_id"] = "toolu_canary"
    if event == "PreSkillShellCommand":
        payload |= {"command_name": "canary", "command_source": "user", "invoked_by": "user"}
    return payload


def blocked(event: str, ran: Ran) -> bool:
    """JSON counts at any exit status; exit 2 blocks a call, but is no answer to a permission request."""
    answer: Any = None
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        pass
    inner = answer.get("hookSpecificOutput") if isinstance(answer, dict) else None
    inner = inner if isinstance(inner, dict) and isinstance(inner.get("hookEventName"), str) else {}
    if ran.code is None:
        return False
    if event == "PermissionRequest":
        decision = inner.get("decision")
        return isinstance(decision, dict) and decision.get("behavior") == "deny" and inner["hookEventName"] == event
    if ran.code == 2:
        return True
    return inner.get("permissionDecision") == "deny" and inner["hookEventName"] in (event, "PreToolUse")
