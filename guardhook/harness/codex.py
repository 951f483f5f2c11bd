"""Codex CLI: where its hooks are, what is registered in them, and how to tell what the client makes of it.

Facts are those of Codex CLI 0.171.0 on Linux unless a version is named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardhook.core import limits
from guardhook.harness import clients, codex_trust, commandline, hooksfile, hookstoml, model, tomllines
from guardhook.harness.errors import HarnessError
from guardhook.harness.files import Files
from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, FileEdit, Finding, Plan, Ran, Reader, Registration, Request, Undo

ID = "codex"
TITLE = "Codex CLI"

# Left out: PreModelRequest and PostModelRequest (one process per model call, and neither can stop anything), PostCompact.
EVENTS: Mapping[str, str] = {
    "PreToolUse": "judged",
    "PermissionRequest": "judged",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "observed",
    "SubagentStart": "observed",
    "SubagentStop": "closing",
    "Stop": "closing",
    "SessionStart": "observed",
    "SessionEnd": "closing",  # the client clamps its time limit to 3 seconds
    "Interrupt": "closing",
    "PreCompact": "observed",
}
SINCE: Mapping[str, str] = {}

_TOP = ("hooks", "description")  # any other key at the top of hooks.json drops the whole file
_PIN = {("features", "hooks"): True}  # in requirements.toml: what neither a flag nor a project can overrule
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")


def home(machine: Machine) -> str:
    return machine.folder("CODEX_HOME", ".codex")


def places(machine: Machine, scope: str) -> list[str]:
    """hooks.json and config.toml of a layer; the machine's requirements file has both roles."""
    if scope == "system":
        if machine.windows:
            raise HarnessError("the place of Codex's requirements file on Windows is not known", "use --scope user")
        return [machine.root + "/etc/codex/requirements.toml"]
    folder = home(machine) if scope == "user" else machine.join(machine.project, ".codex")
    return [machine.join(folder, "hooks.json"), machine.join(folder, "config.toml")]


def state_file(machine: Machine) -> str:
    """Where trust is kept, for every layer: a project can't trust itself."""
    return machine.join(home(machine), "config.toml")


def ours(handler: object) -> bool:
    """Whether a handler starts one of our launchers."""
    return isinstance(handler, dict) and commandline.ours(ID, handler.get("command"))


def group(machine: Machine, request: Request, event: str) -> dict[str, Any]:
    """The entry for one event: no matcher (every tool), whole seconds (a fraction breaks the file)."""
    role = EVENTS[event]
    judged = role == "judged" or (role == "prompt" and request.prompts)
    seconds = model.CLOSING_SECONDS if role == "closing" else model.OBSERVING_SECONDS
    if judged and request.mode == model.ENFORCE:
        seconds = int(limits.REGISTERED_ENFORCING)
    launcher, mode = request.launcher(judged=judged)
    command = commandline.build(machine.platform, [launcher, *commandline.arguments(ID, launcher, mode, event)])
    return {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}


def plan(machine: Machine, request: Request, read: Reader) -> Plan:
    groups = {event: group(machine, request, event) for event in EVENTS}
    made = Plan()
    if request.scope == "system":
        path = places(machine, "system")[0]
        if _table(hookstoml.parse(path, read(path)), "features").get("hooks") is False:
            raise HarnessError(
                f"{path}: `[features] hooks = false` switches hooks off on this machine",
                "take that line out first; it was written on purpose",
            )
        made.edits.append(hookstoml.register(path, read(path), groups, ours, _PIN))
        return made
    listing, config = places(machine, request.scope)
    chosen = _choose(listing, config, read, made.notes)
    other = config if chosen == listing else listing
    data = read(chosen)
    if chosen == listing:
        _lint(listing, data)
        made.edits.append(hooksfile.register(listing, data, groups, ours))
    else:
        made.edits.append(hookstoml.register(config, data, groups, ours))
    if (there := read(other)) is not None:
        edit = _without(other, there, Undo())
        made.edits += [edit] if edit.after != edit.before else []
    if request.scope == "project":
        made.notes.append(f"{chosen} now names a program of this machine: keep it out of version control")
    return made


def _choose(listing: str, config: str, read: Reader, notes: list[str]) -> str:
    """The file that has hooks already, since Codex warns about a layer with hooks in both; else hooks.json, a file of its own."""
    data = read(config)
    values = hookstoml.parse(config, data)
    in_config = any(not ours(h) for _, _, g in hookstoml.groups(values) for h in g["hooks"])
    standing = read(listing)
    in_listing = standing is not None and any(
        not ours(h.value) for h in hooksfile.handlers(hooksfile.parse(listing, standing), listing)
    )
    if not in_config or (in_listing and in_config):
        return listing
    if hookstoml.inline(values, (data or b"").decode("utf-8", "replace")):
        notes.append(
            f"{config} has its hooks in inline form; ours go to {listing}, and Codex will say that it found both"
        )
        return listing
    return config


def _lint(path: str, data: bytes | None) -> None:
    """hooks.json by the client's rules: plain JSON, two keys at the top. Raises HarnessError for what drops the whole file."""
    document = hooksfile.parse(path, data)
    hooksfile.refuse_extras(document, path, TITLE, comments=False, bom=False)
    for child in document.root.children:
        if child.key not in _TOP:
            line, column = document.position(child.start)
            raise HarnessError(
                f"{path}:{line}:{column}: the key {child.key!r} makes Codex ignore this file, and every hook in it",
                "take it out first",
            )


def _without(path: str, data: bytes, undo: Undo) -> FileEdit:
    if path.endswith(".json"):
        return hooksfile.unregister(path, data, ours, undo)
    return hookstoml.unregister(path, data, ours, undo.previous)


def unplan(machine: Machine, scope: str, read: Reader, undo: Callable[[str], Undo]) -> Plan:
    """Takes our entries out, and their trust. Entries after ours move up; their trust moves with them."""
    edits: dict[str, FileEdit] = {}
    gone: set[str] = set()
    moved: dict[str, str] = {}
    for path in places(machine, scope):
        data = read(path)
        if data is None:
            continue
        edit = _without(path, data, undo(path))
        if edit.after != edit.before:
            edits[path] = edit
            before, after = _positions(path, data), _positions(path, edit.after)
            gone |= {codex_trust.key(path, *at) for at, handler in before if ours(handler)}
            left = [at for at, handler in before if not ours(handler)]
            moved |= {
                codex_trust.key(path, *a): codex_trust.key(path, *b)
                for a, (b, _) in zip(left, after, strict=True)
                if a != b
            }
    state = state_file(machine)
    if scope != "system" and gone:
        data = edits[state].after if state in edits else read(state)
        cleared = _forget(state, data, gone, moved) if data else data
        if cleared != data:
            edits.setdefault(state, FileEdit(state, read(state), cleared)).after = cleared
    return Plan(list(edits.values()))


def _positions(path: str, data: bytes | None) -> list[tuple[tuple[str, int, int], Any]]:
    """((event, group, handler), value) of every handler, in the order of the file."""
    if path.endswith(".json"):
        return [((h.event, h.group, h.index), h.value) for h in hooksfile.handlers(hooksfile.parse(path, data), path)]
    found = hookstoml.groups(hookstoml.parse(path, data))
    return [((event, n, index), handler) for event, n, g in found for index, handler in enumerate(g["hooks"])]


def _forget(path: str, data: bytes, gone: set[str], moved: Mapping[str, str]) -> bytes:
    state = _table(_table(hookstoml.parse(path, data), "hooks"), "state")
    if not state.keys() & (gone | moved.keys()):
        return data

    names: dict[str, str | None] = {**dict.fromkeys(gone), **moved}
    wanted = {names.get(k, k) or "": v for k, v in state.items() if names.get(k, k) is not None}
    after = tomllines.rename_tables(data, "hooks.state", names)
    if not wanted:
        after = tomllines.drop_empty_table(after, "hooks.state")
    return (
        after
        if _states(path, after) == wanted
        else hookstoml.edit(path, data, lambda document: _rewrite(document, names))
    )


def _states(path: str, data: bytes) -> Mapping[str, Any] | None:
    try:
        return _table(_table(hookstoml.parse(path, data), "hooks"), "state")
    except HarnessError:
        return None


def _rewrite(document: Any, names: Mapping[str, str | None]) -> None:
    table = document["hooks"]["state"]
    kept = {new: table[old].unwrap() for old, new in names.items() if old in table and new is not None}
    for name in [n for n in table if n in names]:
        del table[name]
    for name, value in kept.items():
        table[name] = value
    if not len(table):
        del document["hooks"]["state"]
        if not len(document["hooks"]):
            del document["hooks"]


def extra(machine: Machine, scope: str) -> list[str]:
    return [] if scope == "system" else [state_file(machine)]


def finish(machine: Machine, request: Request, files: Files) -> list[Finding]:
    """Has the client trust our hooks; where it can't be asked, stores computed hashes. System hooks need no trust."""
    if request.scope == "system":
        return []
    found = registrations(machine, request.scope, files.read)
    state = state_file(machine)
    before = hookstoml.parse(state, files.read(state))
    codex = client_path(machine)
    why = "no `codex` was found"
    if codex is not None:
        folder = machine.project if request.scope == "project" else None
        try:
            seen = codex_trust.trust(machine, codex, [(r.file, str(r.handler["command"])) for r in found], folder)
            return [_trusted(found, seen), *_untouched(files, state, before)]
        except HarnessError as error:
            why = error.message
        finally:
            files.forget(state)
    files.write(state, trust_offline(machine, found, files.read(state)))
    return [
        Finding(
            "trusted",
            None,
            f"{why}: the trust of our hooks was computed, not confirmed; run `guardhook doctor codex` once Codex is there",
        )
    ]


def _untouched(files: Files, state: str, before: dict[str, Any]) -> list[Finding]:
    """Whether the client changed anything but trust when it stored it."""
    files.forget(state)
    after = hookstoml.parse(state, files.read(state))
    for values in (before, after):
        hooks = values.get("hooks", {})
        hooks.pop("state", None)
        if not hooks:
            values.pop("hooks", None)
    return (
        []
        if before == after
        else [Finding("settings", None, f"Codex changed more than trust in {state} when it stored it")]
    )


def _trusted(found: Sequence[Registration], seen: Sequence[codex_trust.Listed]) -> Finding:
    """Whether the client will run every one of our entries."""
    mine = {(os.path.realpath(r.file), str(r.handler["command"])) for r in found}
    missing = mine - {(os.path.realpath(h.file), h.command) for h in seen}
    if missing:
        return Finding(
            "trusted",
            False,
            f"Codex lists {len(mine) - len(missing)} of our {len(mine)} hooks; it does not read the others",
        )
    bad = [h for h in seen if h.status not in ("trusted", "managed") or not h.enabled]
    if bad:
        names = ", ".join(f"{h.event} {h.status if h.enabled else 'disabled'}" for h in bad)
        return Finding(
            "trusted", False, f"Codex skips hooks that are not trusted: {names}; run `guardhook install codex` again"
        )
    return Finding("trusted", True, f"Codex trusts all {len(seen)} hooks")


def trust_offline(machine: Machine, found: Sequence[Registration], data: bytes | None) -> bytes:
    """config.toml with computed hashes for our entries: for machines on which the client can't be asked."""
    path = state_file(machine)
    state = _table(_table(hookstoml.parse(path, data), "hooks"), "state")
    want = {codex_trust.key(r.file, r.event, *r.position): codex_trust.computed_hash(r.event, r.handler) for r in found}
    want = {k: v for k, v in want.items() if _table(state, k).get("trusted_hash") != v}
    after = data or b""
    fresh = {k: v for k, v in want.items() if k not in state}

    def change(document: Any) -> None:
        for name in want.keys() - fresh.keys():
            document["hooks"]["state"][name]["trusted_hash"] = want[name]

    if want.keys() - fresh.keys():
        after = hookstoml.edit(path, after, change)
    if fresh:
        after = tomllines.append(
            after,
            "\n".join(
                f"[hooks.state.{tomllines.quoted(k)}]\ntrusted_hash = {tomllines.quoted(v)}" for k, v in fresh.items()
            ),
        )
    hookstoml.parse(path, after)
    return after


def registrations(machine: Machine, scope: str, read: Reader) -> list[Registration]:
    found = []
    for path in places(machine, scope):
        data = read(path)
        for (event, number, index), handler in _positions(path, data) if data is not None else ():
            if not ours(handler):
                continue
            parsed = commandline.parse(machine.platform, ID, handler["command"])
            # A handler marked `async` runs, but can't stop anything.
            exact = parsed is not None and handler.get("type") == "command" and handler.get("async", False) is False
            exact = exact and _matcher(path, data, event, number) in (None, "", "*")
            found.append(model.registration(scope, path, event, parsed, exact, handler, (number, index)))
    return found


def _matcher(path: str, data: bytes | None, event: str, number: int) -> object:
    values: Any = hooksfile.parse(path, data).root.plain() if path.endswith(".json") else hookstoml.parse(path, data)
    return values["hooks"][event][number].get("matcher")


def client_path(machine: Machine) -> str | None:
    return machine.which("codex", "/opt/homebrew/bin/codex", "/usr/local/bin/codex")


def client(machine: Machine) -> Client | None:
    return clients.probe(machine, client_path(machine))


def findings(machine: Machine, found: Sequence[Registration], client: Client | None, read: Reader) -> list[Finding]:
    out: list[Finding] = []
    managed = any(r.scope == "system" for r in found)
    pinned = False
    for scope in ("system", "user", "project"):
        for path in places(machine, scope) if not (scope == "system" and machine.windows) else ():
            try:
                data = read(path)
                if path.endswith(".json"):
                    _lint(path, data)
                    continue
                values = hookstoml.parse(path, data)
            except HarnessError as error:
                out.append(Finding("settings", False, error.message))
                continue
            features = _table(values, "features")
            if scope == "system":
                pinned = features.get("hooks") is True
                if values.get("allow_managed_hooks_only") is True and found and not managed:
                    out.append(
                        Finding(
                            "off switch",
                            False,
                            f"{path} says `allow_managed_hooks_only`: hooks outside of it don't run",
                        )
                    )
                if managed and not pinned:
                    out.append(
                        Finding(
                            "off switch",
                            False,
                            f"{path} does not pin `[features] hooks = true`: a flag or a project switches its hooks off",
                        )
                    )
            elif (features.get("hooks") is False or features.get("codex_hooks") is False) and not (managed and pinned):
                out.append(Finding("off switch", False, f"{path} switches hooks off under [features]"))
    return out + _trust_findings(machine, [r for r in found if r.scope != "system"], client, read)


def _trust_findings(
    machine: Machine, found: Sequence[Registration], client: Client | None, read: Reader
) -> list[Finding]:
    if not found:
        return []
    mine = {(os.path.realpath(r.file), str(r.handler["command"])) for r in found}
    if client is not None:
        folder = machine.project if any(r.scope == "project" for r in found) else None
        try:
            seen = [
                h
                for h in codex_trust.listed(machine, client.path, folder)
                if (os.path.realpath(h.file), h.command) in mine
            ]
        except HarnessError as error:
            return [Finding("trusted", False, error.message)]
        return [_trusted(found, seen)]
    state = _table(_table(hookstoml.parse(state_file(machine), read(state_file(machine))), "hooks"), "state")
    for r in found:
        entry = _table(state, codex_trust.key(r.file, r.event, *r.position))
        if entry.get("trusted_hash") != codex_trust.computed_hash(r.event, r.handler) or entry.get("enabled") is False:
            return [
                Finding(
                    "trusted", False, f"no valid trust is stored for {r.event}, and the client isn't here to be asked"
                )
            ]
    return [Finding("trusted", None, "trust was computed, not confirmed: the client isn't here to be asked")]


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = values.get(name)
    return inner if isinstance(inner, dict) else {}


def invocation(machine: Machine, registration: Registration) -> tuple[list[str], dict[str, str]]:
    """The person's own shell runs the command text; an unknown shell means bash."""
    command = str(registration.handler["command"])
    env = {"CODEX_HOME": home(machine)}
    if machine.windows:
        return ["powershell", "-NoProfile", "-Command", command], env
    shell = machine.env.get("SHELL", "")
    known = os.path.basename(shell) in _SHELLS and os.path.isabs(shell)
    return [shell if known else machine.which("bash") or "/bin/sh", "-c", command], env


def canary(event: str, command: str, folder: str) -> dict[str, object] | None:
    if event not in ("PreToolUse", "PermissionRequest"):
        return None
    session = "00000000-0000-7000-8000-000000000000"
    payload: dict[str, object] = {
        "session_id": session,
        "turn_id": session,
        "transcript_path": f"{folder}/.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{session}.jsonl",
        "cwd": folder,
        "hook_event_name": event,
        "model": "canary",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }
    if event == "PreToolUse":
        payload["tool_use_id"] = "call_canary"
    return payload


def blocked(event: str, ran: Ran) -> bool:
    """Exit 2 with something on stderr; or, at exit 0, one strict JSON object with a reason."""
    if ran.code == 2:
        return bool(ran.stderr.strip())
    if ran.code != 0:
        return False
    try:
        answer = json.loads(ran.stdout)
        inner = answer.get("hookSpecificOutput", {})
        if event == "PermissionRequest":
            return bool(inner["decision"]["behavior"] == "deny" and answer.keys() == {"hookSpecificOutput"})
        if answer.keys() == {"decision", "reason"}:
            return bool(answer["decision"] == "block" and answer["reason"].strip())
        strict = answer.keys() == {"hookSpecificOutput"} and inner.keys() == {
            "hookEventName",
            "permissionDecision",
            "permissionDecisionReason",
        }
        return bool(strict and inner["permissionDecision"] == "deny" and inner["permissionDecisionReason"].strip())
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
