"""Installing and uninstalling: from a harness's plan to files on disk, with a way back."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field

from guardhook.core.folders import Folders
from guardhook.core.jsontext import printable
from guardhook.harness import record
from guardhook.harness.errors import HarnessError
from guardhook.harness.files import Files, digest
from guardhook.harness.machine import Machine
from guardhook.harness.model import FileEdit, Finding, Harness, Request, Undo


@dataclass
class Outcome:
    """What was done, or with dry_run what would be. files: path -> changed, made, removed, unchanged."""

    files: dict[str, str] = field(default_factory=dict)
    backups: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    diff: str = ""


def files_of(machine: Machine, scope: str) -> Files:
    """The files of a scope. A folder that the person names in a variable counts as home."""
    homes = [machine.env[v] for v in ("CLAUDE_CONFIG_DIR", "CODEX_HOME") if os.path.isabs(machine.env.get(v, ""))]
    return Files(machine, scope, homes)


def install(module: Harness, machine: Machine, folders: Folders, request: Request, *, dry_run: bool = False) -> Outcome:
    """Registers a harness. Raises HarnessError; a file that could not be edited safely is left as it was."""
    files = files_of(machine, request.scope)
    plan = module.plan(machine, request, files.read)
    out = Outcome(notes=list(plan.notes))
    for edit in plan.edits:
        files.resolve(edit.path)  # refused before anything is written
    out.diff = diff(plan.edits)
    out.files = {edit.path: _word(edit) for edit in plan.edits}
    if dry_run:
        return out
    originals = _originals(module, machine, folders, request.scope, files, [e.path for e in plan.edits])
    made: dict[str, list[str]] = {}
    for edit in plan.edits:
        if edit.after != edit.before:
            made[edit.path] = files.write(edit.path, edit.after)
            _remember(module, request.scope, folders, edit, originals[edit.path], made[edit.path], out)
    for path in module.extra(machine, request.scope):
        originals.setdefault(path, _originals(module, machine, folders, request.scope, files, [path])[path])
    before = {path: files.read(path) for path in originals}
    out.findings = module.finish(machine, request, files)
    for path, data in before.items():
        files.forget(path)
        now = files.read(path)
        if now != data:
            edit = next((e for e in plan.edits if e.path == path), FileEdit(path, data, now))
            edit.after = now
            out.files[path] = "changed" if data is not None else "made"
            _remember(module, request.scope, folders, edit, originals[path], made.get(path, []), out)
    found = dict.fromkeys(r.file for r in module.registrations(machine, request.scope, files.read))
    record.register(folders, module.ID, request.scope, list(found), project=machine.project)
    return out


def uninstall(module: Harness, machine: Machine, folders: Folders, scope: str, *, dry_run: bool = False) -> Outcome:
    """Takes a harness's registration of one scope out. Files that nobody touched since get their former bytes back. Raises HarnessError."""
    files = files_of(machine, scope)
    out = Outcome()
    edits = {e.path: e for e in module.unplan(machine, scope, files.read, lambda path: _undo(folders, path)).edits}
    kept: dict[str, record.Record] = {}
    places, extra = module.places(machine, scope), module.extra(machine, scope)
    # Trust of other scopes and projects is kept in the same file: then its former bytes would take that away too.
    others = any(r[0] == module.ID and r[2] not in places for r in record.registrations(folders))
    here = list(dict.fromkeys([*places, *extra]))
    for path in here:
        remembered = record.load(folders, path)
        if remembered is None or (remembered.scope != scope and path not in edits):
            continue
        kept[path] = remembered
        data = files.read(path)
        if remembered.untouched(data) and remembered.scope == scope and not (others and path in extra):
            edits[path] = FileEdit(path, data, remembered.before)
        elif data is not None and data == remembered.before:
            edits.pop(path, None)
    for edit in edits.values():
        files.resolve(edit.path)
    out.diff = diff(list(edits.values()))
    out.files = {e.path: _word(e) for e in edits.values() if e.after != e.before}
    if dry_run:
        return out
    for path, edit in edits.items():
        if edit.after != edit.before:
            files.write(path, edit.after)
        exact = path in kept and edit.after == kept[path].before
        if path in kept and not exact and kept[path].before is not None:
            out.notes.append(f"{path} was edited by others since: only our entries were taken out")
    for path, remembered in reversed(kept.items()):
        if remembered.scope == scope and not (others and path in extra):
            record.forget(folders, path)
            _remove_folders(remembered.folders)
    record.register(folders, module.ID, scope, [], project=machine.project)
    return out


def diff(edits: list[FileEdit]) -> str:
    """A unified diff of all edits, fit for a terminal."""
    lines: list[str] = []
    for edit in edits:
        before, after = (_lines(data) for data in (edit.before, edit.after))
        old = edit.path if edit.before is not None else "/dev/null"
        new = edit.path if edit.after is not None else "/dev/null"
        lines += difflib.unified_diff(before, after, old, new, lineterm="")
    return "".join(printable(line, 2000) + "\n" for line in lines)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").replace("\r\n", "\n").splitlines()


def _word(edit: FileEdit) -> str:
    if edit.after == edit.before:
        return "unchanged"
    return "made" if edit.before is None else "removed" if edit.after is None else "changed"


def _undo(folders: Folders, path: str) -> Undo:
    remembered = record.load(folders, path)
    return remembered.undo() if remembered else Undo()


def _originals(
    module: Harness, machine: Machine, folders: Folders, scope: str, files: Files, paths: list[str]
) -> dict[str, bytes | None]:
    """How each file would be without us: its former bytes when nobody else wrote since, else what is there less our entries."""
    stripped = {e.path: e.after for e in module.unplan(machine, scope, files.read, lambda p: _undo(folders, p)).edits}
    out: dict[str, bytes | None] = {}
    for path in paths:
        data = files.read(path)
        remembered = record.load(folders, path)
        out[path] = remembered.before if remembered and remembered.untouched(data) else stripped.get(path, data)
    return out


def _remember(
    module: Harness, scope: str, folders: Folders, edit: FileEdit, original: bytes | None, made: list[str], out: Outcome
) -> None:
    old = record.load(folders, edit.path)
    new = record.Record(
        module.ID, scope, edit.path, original, digest(edit.after) or "", list(edit.created), list(edit.previous), made
    )
    if old is not None:
        new.created = list(dict.fromkeys([*old.created, *new.created]))
        new.folders = list(dict.fromkeys([*old.folders, *new.folders]))
        theirs = {where: value for where, _, value in old.previous}
        new.previous = [(w, ours, theirs.pop(w, value)) for w, ours, value in new.previous]
        new.previous += [row for row in old.previous if row[0] in theirs]
    backup = record.save(folders, new)
    if backup and backup not in out.backups:
        out.backups.append(backup)


def _remove_folders(made: list[str]) -> None:
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            return  # something else lives there now


__all__ = ["HarnessError", "Outcome", "diff", "files_of", "install", "uninstall"]
