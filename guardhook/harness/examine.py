"""What `doctor` finds out about one harness: by reading its settings, and by running the very command that is registered."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from guardhook.core import limits
from guardhook.core.folders import Folders
from guardhook.harness import clients, liveness, model, program
from guardhook.harness.apply import files_of
from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, Finding, Harness, Ran, Registration

DENY = "guardhook-canary --deny"  # denied by the gate itself, whatever the policies say (guardhook.gate.judge)
PASS = "true"
_SECONDS = limits.REGISTERED_ENFORCING


@dataclass
class Report:
    """One harness. ok is False when a finding is."""

    harness: str
    title: str
    client: Client | None
    registered: list[Registration]
    findings: list[Finding] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    answers: list[dict[str, str]] = field(
        default_factory=list
    )  # how verdicts are answered, and what the client makes of it

    @property
    def ok(self) -> bool:
        return all(f.ok is not False for f in self.findings)

    @property
    def present(self) -> bool:
        """Whether there is anything to examine."""
        return self.client is not None or bool(self.registered)

    def plain(self) -> dict[str, object]:
        where: dict[tuple[str, str, str], list[str]] = {}
        for r in self.registered:
            where.setdefault((r.scope, r.file, r.mode), []).append(r.event)
        return {
            "harness": self.harness,
            "ok": self.ok,
            "client": None if self.client is None else {"path": self.client.path, "version": self.client.version},
            "registered": [{"scope": s, "file": f, "mode": m, "events": events} for (s, f, m), events in where.items()],
            "findings": [f.plain() for f in self.findings],
            "open": self.open,
            "answers": self.answers,
        }


def examine(module: Harness, machine: Machine, folders: Folders, shared: Folders, *, asked: bool = True) -> Report:
    """Examines one harness. shared are the folders of a system-wide installation. Changes nothing that the harness reads.

    asked says whether this harness was named: then it is a fault that it is not registered.
    """
    found: list[Registration] = []
    broken: list[Finding] = []
    reads = {scope: files_of(machine, scope) for scope in model.SCOPES}
    for scope, files in reads.items():
        try:
            found += module.registrations(machine, scope, files.read)
        except HarnessError as error:
            broken.append(Finding("settings", False, error.message))
    # In the home folder, user and project scope may be the same file.
    users = {r.file for r in found if r.scope == "user"}
    found = [r for r in found if r.scope != "project" or r.file not in users]
    report = Report(module.ID, module.TITLE, module.client(machine), found, open=stays_open(module.ID))
    report.answers = answers(module.ID)
    if not report.present and not asked:
        return report
    report.findings.append(_client(report.client))
    report.findings += _registered(module, found, asked, report.client)
    try:
        told = module.findings(machine, found, report.client, reads["user"].read)
    except HarnessError as error:
        told = [Finding("settings", False, error.message)]
    seen = {f.detail for f in told}
    report.findings += [*[f for f in broken if f.detail not in seen], *told]
    if found:
        ours = _launchers(module, found, folders, shared, report.findings)
        _run(module, machine, [r for r in found if id(r) in ours], report.findings)
        report.findings += [liveness.finding(folders, module.ID), *_honesty(machine, found)]
    return report


def _client(client: Client | None) -> Finding:
    if client is None:
        return Finding("client", None, "not found on PATH, nor where it usually is")
    return Finding("client", True, f"{client.path}, version {client.version or 'unknown'}")


def _registered(module: Harness, found: list[Registration], asked: bool, client: Client | None) -> list[Finding]:
    if not found:
        return [Finding("registered", False if asked else None, f"not registered; run `guardhook install {module.ID}`")]
    out = []
    for scope in dict.fromkeys(r.scope for r in found):
        mine = [r for r in found if r.scope == scope]
        expected = clients.known(module.EVENTS, module.SINCE, client)
        missing = [e for e in expected if not any(r.event == e for r in mine)]
        where = ", ".join(dict.fromkeys(r.file for r in mine))
        mode = "enforcing" if any(r.mode == "enforce" for r in mine) else "capture only"
        if missing:
            out.append(Finding("registered", False, f"{scope} ({where}): {', '.join(missing)} missing; install again"))
        else:
            out.append(Finding("registered", True, f"{scope}, {mode} ({where})"))
        weak = [r.event for r in mine if r.mode == "observe" and module.EVENTS.get(r.event) == "judged"]
        if weak and mode == "enforcing":
            out.append(Finding("registered", False, f"{scope}: {', '.join(weak)} only observed; install again"))
    if not any(r.mode == "enforce" for r in found):
        out.append(Finding("mode", None, "capture only: everything is recorded, nothing is ever stopped"))
    scopes = list(dict.fromkeys(r.scope for r in found))
    if len(scopes) > 1:
        out.append(
            Finding(
                "registered",
                None,
                f"registered in {len(scopes)} scopes ({', '.join(scopes)}): every call is judged that many times",
            )
        )
    return out


def _launchers(
    module: Harness, found: list[Registration], folders: Folders, shared: Folders, findings: list[Finding]
) -> set[int]:
    """The registrations (by id) that are exactly an intact launcher of ours; everything else is only told, never run."""
    good: set[int] = set()
    bases: dict[str, Folders] = {}
    wrong: list[str] = []
    for r in found:
        base = next(
            (f for f in (shared, folders) if r.exact and r.launcher == program.launcher_path(f, module.ID, r.mode)),
            None,
        )
        if base is None or r.argument not in (r.event, None):
            command = r.handler.get("command")
            wrong.append(
                f"{r.file}: {r.event} runs {command!r}, which is not exactly this installation's launcher; not run"
            )
        else:
            bases[base.data] = base
            good.add(id(r))
    findings += [Finding("launcher", False, text) for text in wrong]
    for base in bases.values():
        problems = program.verify(base)
        findings += [Finding("launcher", False, problem) for problem in problems]
        if problems:
            good -= {id(r) for r in found if r.launcher.startswith(base.data.rstrip("/\\") + os.sep)}
        elif not wrong:
            findings.append(Finding("launcher", True, f"exactly ours, unchanged ({base.data})"))
        if not problems and program.outdated(base, shared=base is shared):
            text = (
                f"hooks run another version than this program; `guardhook install {module.ID}` brings them up to date"
            )
            findings.append(Finding("launcher", None, text))
    if any(_is_script(r.launcher) for r in found if id(r) in good):
        findings.append(
            Finding(
                "launcher",
                None,
                "the weaker form (a shell script): its shell can be influenced before it starts; install a C compiler and install again",
            )
        )
    return good


def _is_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _run(module: Harness, machine: Machine, good: list[Registration], findings: list[Finding]) -> None:
    """The canaries. One registration per event and scope; observing ones must stay silent whatever comes."""
    denies: list[str] = []
    passes: list[str] = []
    hidden: list[str] = []
    with tempfile.TemporaryDirectory(prefix="guardhook-canary-") as folder:
        asked: set[tuple[str, str, str]] = set()
        for r in good:
            # One command that stands in two files (Gemini's settings and extension) is asked once.
            if (same := (r.scope, r.event, r.launcher)) in asked:
                continue
            asked.add(same)
            harmful, harmless = (module.canary(r.event, c, folder) for c in (DENY, PASS))
            if harmful is None or harmless is None:
                continue
            what = f"{r.scope} {r.event}"
            ran = _ask(module, machine, r, harmful, folder)
            if r.mode == "enforce":
                _tell(findings, denies, module.blocked(r.event, ran), "answers deny", what, ran)
            else:
                _tell(findings, passes, _silent(ran), "stays silent", what, ran)
                continue
            ran = _ask(module, machine, r, harmless, folder)
            _tell(findings, passes, _silent(ran), "stays silent", what, ran)
            ran = _ask(module, machine, r, harmless, folder, hide=True)
            _tell(
                findings, hidden, module.blocked(r.event, ran), "fails closed", what + " without the hook program", ran
            )
    for check, done in (("answers deny", denies), ("stays silent", passes), ("fails closed", hidden)):
        if done:
            findings.append(Finding(check, True, ", ".join(done)))


def _tell(findings: list[Finding], done: list[str], ok: bool, check: str, what: str, ran: Ran) -> None:
    if ok:
        done.append(what)
        return
    end = "no end within the time limit" if ran.code is None else f"exit {ran.code}"
    said = (ran.stderr or ran.stdout).decode("utf-8", "replace").strip()[:300]
    findings.append(Finding(check, False, f"{what}: {end}" + (f", said: {said}" if said else ", said nothing")))


def _silent(ran: Ran) -> bool:
    return ran.code == 0 and not ran.stdout.strip()


def _ask(
    module: Harness,
    machine: Machine,
    r: Registration,
    payload: Mapping[str, object],
    folder: str,
    *,
    hide: bool = False,
) -> Ran:
    """Runs the registered command as the client does, with a payload; hide runs a copy of the launcher that has no program beside it."""
    argv, added = module.invocation(machine, r)
    if hide:
        # A copy in a place of its own: the live one is never broken, not even for a moment.
        scratch = tempfile.mkdtemp(prefix="hidden-", dir=folder)
        copy = os.path.join(scratch, "bin", os.path.basename(r.launcher))
        os.mkdir(os.path.dirname(copy))
        shutil.copy(r.launcher, copy)
        argv = [copy, *([r.argument] if r.argument else [])]
    body = json.dumps({**payload, "canary": True}).encode()
    work = tempfile.mkdtemp(prefix=secrets.token_hex(2), dir=folder)
    try:
        return clients.run(argv, {**machine.env, **added}, body, folder=work, seconds=_SECONDS)
    except OSError as error:
        return Ran(127, b"", str(error.strerror).encode())


def _honesty(machine: Machine, found: list[Registration]) -> list[Finding]:
    if any(r.scope == "system" for r in found) or not any(r.mode == "enforce" for r in found):
        return []
    return [
        Finding(
            "scope",
            None,
            "user and project scope resist accidents and casual tampering; an agent that runs as you and means to can undo them: "
            "only `--scope system` (root) resists that",
        )
    ]


def stays_open(dialect: str) -> list[str]:
    """What no registration closes in this harness, as its dialect states it."""
    from guardhook.dialects import table

    try:
        return list(table.load(dialect).limits().open)
    except (KeyError, ImportError):
        return []


def answers(dialect: str) -> list[dict[str, str]]:
    """The dialect's table of answers: what a verdict becomes there, what the client does then, and on which versions that was seen."""
    from guardhook.dialects import table

    try:
        rows = table.load(dialect).limits().matrix
    except (KeyError, ImportError):
        return []
    return [dict(zip(("event", "verdict", "answer", "outcome", "measured"), row, strict=True)) for row in rows]
