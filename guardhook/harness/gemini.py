"""Gemini CLI: where its settings are, what is registered in them, and how to tell what the client makes of it.

Facts are those of Gemini CLI 0.61.0 on Linux unless a version is named.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardhook import __version__
from guardhook.core import limits
from guardhook.harness import clients, commandline, hooksfile, model
from guardhook.harness.errors import HarnessError
from guardhook.harness.files import Files
from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, FileEdit, Finding, Plan, Ran, Reader, Registration, Request, Undo

ID = "gemini"
TITLE = "Gemini CLI"

# BeforeTool is the one event that can stop a call. The model events (BeforeModel, AfterModel, BeforeToolSelection) carry the whole
# conversation each time, AfterModel once per streamed piece; PreCompress fires before every turn, compression or not.
# A session's start is not judged, but whoever is at the client may be told something then.
EVENTS: Mapping[str, str] = {
    "BeforeTool": "judged",
    "BeforeAgent": "prompt",
    "AfterTool": "observed",
    "AfterAgent": "closing",
    "SessionStart": "told",
    "SessionEnd": "closing",
    "Notification": "observed",
}
SINCE: Mapping[str, str] = {}

# Merged last into the hook's environment: what a repository's `.env` could otherwise plant in the `bash -c` that starts us.
# SHLVL: without it bash believes that it was started over a network and reads ~/.bashrc, whose output would spoil an answer.
NEUTRAL = {"BASH_ENV": "", "ENV": "", "SHLVL": "1", "LD_PRELOAD": ""}
LOADERS = (
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "SHELLOPTS",
    "PATH",
)
_ENABLED = ("hooksConfig", "enabled")
_NAME = re.compile(r"guardhook-[0-9a-f]{4}")


def places(machine: Machine, scope: str) -> list[str]:
    """The settings file first; for a user also the two files of our extension, the only hooks that run in untrusted folders."""
    if scope == "system":
        own = machine.env.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "")
        usual = machine.system(
            "/etc/gemini-cli/settings.json",
            "/Library/Application Support/GeminiCli/settings.json",
            r"C:\ProgramData\gemini-cli\settings.json",
        )
        return [own if os.path.isabs(own) else usual]
    if scope == "project":
        return [machine.join(machine.project, ".gemini", "settings.json")]
    return [machine.join(machine.home, ".gemini", "settings.json"), *_extension(machine)]


def _extension(machine: Machine) -> tuple[str, str]:
    folder = machine.join(machine.home, ".gemini", "extensions", "guardhook")
    return machine.join(folder, "hooks", "hooks.json"), machine.join(folder, "gemini-extension.json")


def ours(handler: object) -> bool:
    """Whether a handler starts one of our launchers."""
    return isinstance(handler, dict) and commandline.ours(ID, handler.get("command"))


def group(machine: Machine, request: Request, event: str, name: str) -> dict[str, Any]:
    """The entry for one event. Times are milliseconds here: a value meant as seconds would let every call through."""
    role = EVENTS[event]
    judged = role == "judged" or (role == "prompt" and request.prompts)
    seconds = model.CLOSING_SECONDS if role == "closing" else model.OBSERVING_SECONDS
    if judged and request.mode == model.ENFORCE:
        seconds = int(limits.REGISTERED_ENFORCING)
    launcher, mode = request.launcher(judged=judged or role == "told")
    handler: dict[str, Any] = {
        "type": "command",
        "name": name,
        "command": commandline.build(machine.platform, [launcher, *commandline.arguments(ID, launcher, mode, event)]),
        "timeout": seconds * 1000,
    }
    if not machine.windows:
        handler["env"] = dict(NEUTRAL)
    # One by one: in parallel, another hook could rewrite the call after we judged it.
    return {"sequential": True, "hooks": [handler]} if role == "judged" else {"hooks": [handler]}


def plan(machine: Machine, request: Request, read: Reader) -> Plan:
    for launcher in (request.launchers.enforce, request.launchers.observe):
        if "$" in launcher or (machine.windows and "%" in launcher):
            raise HarnessError(
                f"Gemini CLI expands variables in its settings, and the launcher's path has one: {launcher}",
                "choose another folder with --dir",
            )
    path = places(machine, request.scope)[0]
    data = read(path)
    made = Plan()
    _lint(path, data)
    name = _name(machine, request, read)
    groups = {event: group(machine, request, event, name) for event in EVENTS}
    settings: dict[tuple[str, ...], Any] = {}
    enabled = _section(path, data).get("enabled")
    if enabled is False:
        made.notes.append(
            f"{path}: `hooksConfig.enabled` becomes true; other hooks that were switched off with it run again"
        )
    # In the system file the line is what a repository can't overrule; elsewhere hooks are on unless somebody says otherwise.
    if request.scope == "system" or enabled is False:
        settings[_ENABLED] = True
    made.edits.append(hooksfile.register(path, data, groups, ours, settings))
    if request.scope == "user":
        hooks, manifest = _extension(machine)
        made.edits.append(_whole(hooks, read(hooks), {"hooks": {event: [one] for event, one in groups.items()}}))
        made.edits.append(_whole(manifest, read(manifest), {"name": "guardhook", "version": __version__}))
    if request.scope == "project":
        made.notes.append(f"{path} now names a program of this machine: keep it out of version control")
    return made


def _lint(path: str, data: bytes | None) -> None:
    """Comments are read; a comma before a bracket or a byte-order mark keeps the client from starting. Raises HarnessError."""
    hooksfile.refuse_extras(hooksfile.parse(path, data), path, TITLE, comments=True, bom=False)


def unplan(machine: Machine, scope: str, read: Reader, undo: Callable[[str], Undo]) -> Plan:
    path, *extension = places(machine, scope)
    made = Plan()
    data = read(path)
    if data is not None:
        edit = hooksfile.unregister(path, data, ours, undo(path))
        if edit.after != edit.before:
            made.edits.append(edit)
    if extension and _is_ours(extension[1], read(extension[1])):
        made.edits += [FileEdit(p, read(p), None, whole=True) for p in extension if read(p) is not None]
    return made


def _whole(path: str, data: bytes | None, value: Any) -> FileEdit:
    """One of the extension's files. Anything in it is ours, so it is written as a whole when it says something else."""
    text = (json.dumps(value, indent=2) + "\n").encode()
    if data is not None and json.dumps(_plain(path, data)) == json.dumps(value):
        text = data
    return FileEdit(path, data, text, whole=True)


def _is_ours(manifest: str, data: bytes | None) -> bool:
    return data is not None and _plain(manifest, data).get("name") == "guardhook"


def _name(machine: Machine, request: Request, read: Reader) -> str:
    """The name of our entries: kept once chosen, hard to guess, because a repository can switch hooks off by their names."""
    disabled: set[str] = set()
    standing: list[str] = []
    for scope in model.SCOPES:
        path = places(machine, scope)[0]
        try:
            data = read(path)
            disabled |= _disabled(path, data)
            standing += [
                h.value["name"]
                for h in hooksfile.handlers(hooksfile.parse(path, data), path)
                if ours(h.value) and "name" in h.value
            ]
        except HarnessError:
            continue  # only the file that is written must be readable; `register` says so
    usable = [n for n in standing if isinstance(n, str) and _NAME.fullmatch(n) and n not in disabled]
    return usable[0] if usable else request.name or "guardhook-" + secrets.token_hex(2)


def extra(machine: Machine, scope: str) -> list[str]:
    return []


def finish(machine: Machine, request: Request, files: Files) -> list[Finding]:
    return []


def registrations(machine: Machine, scope: str, read: Reader) -> list[Registration]:
    found = []
    for path in places(machine, scope)[:2]:
        data = read(path)
        for one in hooksfile.handlers(hooksfile.parse(path, data), path) if data is not None else ():
            if not ours(one.value):
                continue
            parsed = commandline.parse(machine.platform, ID, one.value["command"])
            exact = (
                parsed is not None
                and one.value.get("type") == "command"
                and one.group_value.get("matcher", "") in ("", "*")
            )
            exact = exact and not (set(one.value.get("env") or {}) - set(NEUTRAL))
            found.append(model.registration(scope, path, one.event, parsed, exact, one.value, (one.group, one.index)))
    return found


def client(machine: Machine) -> Client | None:
    return clients.probe(machine, machine.which("gemini", "/opt/homebrew/bin/gemini", "/usr/local/bin/gemini"))


def findings(machine: Machine, found: Sequence[Registration], client: Client | None, read: Reader) -> list[Finding]:
    out: list[Finding] = []
    names = {str(r.handler.get("name", "")) for r in found}
    on: dict[str, object] = {}
    for scope in ("user", "project", "system"):  # the later one wins
        path = places(machine, scope)[0]
        try:
            data = read(path)
            _lint(path, data)
            hooksfile.hooks_node(hooksfile.parse(path, data), path)
            on[path] = _section(path, data).get("enabled")
            disabled = _disabled(path, data)
        except HarnessError as error:
            out.append(Finding("settings", False, error.message))
            continue
        if disabled & (names | {str(r.handler.get("command")) for r in found}):
            out.append(
                Finding("off switch", False, f"{path} lists our hook in `hooksConfig.disabled`: it does not run")
            )
    # Of entries with one name and command the first runs: user, project, system. A repository's copy may have a time limit of 1 ms.
    managed = {_key(r): r.handler for r in found if r.scope == "system"}
    for copy in found:
        if copy.scope == "project" and copy.handler != managed.get(_key(copy), copy.handler):
            out.append(
                Finding(
                    "off switch",
                    False,
                    f"{copy.file} repeats our entry with other values, and its copy is the one that runs",
                )
            )
    said = [(path, value) for path, value in on.items() if isinstance(value, bool)]
    if said and said[-1][1] is False:
        out.append(Finding("off switch", False, f"{said[-1][0]} says `hooksConfig.enabled: false`: no hook runs"))
    if found and not machine.windows and machine.which("bash") is None:
        out.append(Finding("shell", False, "Gemini CLI runs hooks through `bash`, and there is none on PATH"))
    if found and not any(r.file == _extension(machine)[0] for r in found):
        out.append(
            Finding(
                "untrusted folders",
                None,
                "settings hooks don't run in folders that are not trusted; `guardhook install gemini` (user scope) adds the extension that does",
            )
        )
    return out + _dotenv(machine)


def _key(registration: Registration) -> tuple[str, str, str]:
    return registration.event, str(registration.handler.get("name")), str(registration.handler.get("command"))


def _dotenv(machine: Machine) -> list[Finding]:
    """Loader variables in the files that the client reads into its environment, which reaches the shell that starts us."""
    out = []
    for folder in dict.fromkeys((machine.cwd, machine.project)):
        for path in (machine.join(folder, ".env"), machine.join(folder, ".gemini", ".env")):
            try:
                with open(path, "rb") as file:
                    text = file.read(256 * 1024).decode("utf-8", "replace")
            except OSError:
                continue
            names = re.findall(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=", text, re.M)
            planted = sorted(set(names) & set(LOADERS))
            if planted:
                out.append(
                    Finding(
                        "environment", False, f"{path} sets {', '.join(planted)}, which Gemini CLI hands to every hook"
                    )
                )
    return out


def _plain(path: str, data: bytes | None) -> dict[str, Any]:
    value = hooksfile.parse(path, data).root.plain()
    return value if isinstance(value, dict) else {}


def _section(path: str, data: bytes | None) -> dict[str, Any]:
    section = _plain(path, data).get("hooksConfig")
    return section if isinstance(section, dict) else {}


def _disabled(path: str, data: bytes | None) -> set[str]:
    listed = _section(path, data).get("disabled")
    return {x for x in listed if isinstance(x, str)} if isinstance(listed, list) else set()


def invocation(machine: Machine, registration: Registration) -> tuple[list[str], dict[str, str]]:
    command = str(registration.handler["command"])
    env = {
        "GEMINI_SESSION_ID": _SESSION,
        "GEMINI_CWD": machine.cwd,
        "GEMINI_PROJECT_DIR": machine.cwd,
        "CLAUDE_PROJECT_DIR": machine.cwd,
    }
    env |= {str(k): str(v) for k, v in (registration.handler.get("env") or {}).items()}
    shell = ["powershell", "-NoProfile", "-Command"] if machine.windows else [machine.which("bash") or "bash", "-c"]
    return [*shell, command], env


_SESSION = "00000000-0000-4000-8000-000000000000"


def canary(event: str, command: str, folder: str) -> dict[str, object] | None:
    if event != "BeforeTool":
        return None
    return {
        "session_id": _SESSION,
        "transcript_path": f"{folder}/.gemini/tmp/canary/chats/session-2026-01-01T00-00-00000000.jsonl",
        "cwd": folder,
        "hook_event_name": event,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": command},
    }


def blocked(event: str, ran: Ran) -> bool:
    """JSON with a decision counts at any exit status; other text counts from status 2 on; a signal counts as success."""
    out, err = ran.stdout.strip(), ran.stderr.strip()
    if ran.code is None:
        return False
    for text in (out, err if not out else b""):
        try:
            answer = json.loads(text.decode("utf-8", "replace"))
        except ValueError:
            continue
        return isinstance(answer, dict) and (
            answer.get("decision") in ("deny", "block") or answer.get("continue") is False
        )
    return ran.code >= 2 and bool(out or err)
