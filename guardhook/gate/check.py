"""`guard check`: one step or one raw hook payload on stdin, a verdict as JSON on stdout, a line for a person on stderr.

Scripts gate themselves with it, so it fails closed as well: status 0 lets the script go on (allow, warn, an approved
review), status 2 stops it (deny, a review that nobody approved, anything that can't be judged).
"""

from __future__ import annotations

import posix
import sys
import time
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal

from guardhook.core import folders as folders_module
from guardhook.core import limits
from guardhook.core.event import Event
from guardhook.core.jsontext import PayloadError, dumps, loads, printable
from guardhook.core.verdict import Answer, Verdict
from guardhook.gate import hook as hook_module
from guardhook.gate.output import BLOCK_STATUS
from guardhook.gate.stdin import Deadline, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from guardhook.core.effect import Effect
    from guardhook.core.folders import Folders
    from guardhook.policy.compiled import Compiled

STEP_TYPES = frozenset(("thought", "tool_call", "llm_call", "retrieval", "output", "decision", "error", "guard_check"))
# The canonical event that a step of each type is judged as; only tool calls have effects.
_EVENT_OF = {"tool_call": "pre_tool", "llm_call": "model_request"}


class Result:
    """A verdict, and how a script is to be told."""

    __slots__ = ("event", "verdict")

    def __init__(self, verdict: Verdict, event: Event | None) -> None:
        self.verdict = verdict
        self.event = event


def read_payload() -> object:
    """The JSON value on stdin. Raises PayloadError or OSError."""

    def expired(signum: int, frame: object) -> None:
        raise Deadline

    signal(SIGALRM, expired)
    setitimer(ITIMER_REAL, limits.STDIN_ENFORCING)
    given = read_all(limits.PAYLOAD_ENFORCING)
    setitimer(ITIMER_REAL, 0)
    if given.oversized:
        raise PayloadError("oversized", f"the payload is larger than {limits.PAYLOAD_ENFORCING // 1048576} MiB")
    if given.timed_out and not given.data:
        raise PayloadError("timeout", "nothing came on stdin in time")
    return loads(given.data)


def event_of(value: object, dialect: str | None = None) -> Event:
    """The event that a step or a hook payload stands for. Raises PayloadError with what is wrong and where."""
    if not isinstance(value, dict):
        raise PayloadError("malformed", "the input is not a JSON object")
    if "step_type" in value or ("name" in value and "hook_event_name" not in value):
        return _step(value)
    from guardhook.dialects import table

    env = hook_module.recognition_env(table.RECOGNITION_ENV)
    chosen, why = table.choose(table.candidates(value, env), dialect)
    if chosen is None:
        raise PayloadError("unknown", f"neither a step (name, step_type) nor a known hook payload: {why}")
    event: Event = table.load(chosen).read(value, env, None)
    return event


def _step(value: dict[str, object]) -> Event:
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        raise PayloadError("malformed", "field `name`: a non-empty string is needed")
    step_type = value.get("step_type")
    if not isinstance(step_type, str) or step_type not in STEP_TYPES:
        raise PayloadError("malformed", f"field `step_type`: one of {', '.join(sorted(STEP_TYPES))} is needed")
    event = Event("script", "guard check", _EVENT_OF.get(step_type, "other"), value)
    event.step_type = step_type
    event.tool = name
    event.input = value.get("input", {})
    event.output = value.get("output")
    for field in ("session_id", "cwd"):
        given = value.get(field)
        if given is not None and not isinstance(given, str):
            raise PayloadError("malformed", f"field `{field}`: a string is needed")
    session, cwd = value.get("session_id"), value.get("cwd")
    event.session = session if isinstance(session, str) and session else None
    event.cwd = cwd if isinstance(cwd, str) and cwd else posix.getcwd()
    if step_type == "tool_call":
        from guardhook.dialects import tools

        tools.fill(event)
        # A script's own name for its shell step says nothing; a `command` in it is taken at its word.
        if event.kind == "other" and isinstance(event.input, dict):
            command = event.input.get("command")
            if isinstance(command, str) and command not in event.commands:
                event.commands.append(command)
    return event


def judge(folders: Folders, event: Event, *, allow_empty: bool) -> tuple[Verdict, list[Effect], Compiled | None]:
    """The verdict on an event; faults are verdicts too. The compiled set is None when there is none to be had."""
    from guardhook.gate import judge as judge_module
    from guardhook.gate import refresh
    from guardhook.gate.facts import facts_of
    from guardhook.policy import compiled

    def rebuild(project: str) -> Compiled | None:
        try:
            return refresh.refresh(folders, hook_module.PROGRAM, project)
        except refresh.RefreshError:
            return None

    try:
        try:
            base = compiled.load(folders)
        except compiled.Broken:
            raise
        except compiled.CompiledError:
            base = refresh.refresh(folders, hook_module.PROGRAM)
    except (refresh.RefreshError, compiled.Broken) as error:
        return judge_module.fault("policies", str(error)), [], None
    sets, root = judge_module.project_sets(folders, event, None, rebuild)
    # The hook lets events that are no tool call pass when there is no policy; a script asked for a verdict.
    if not allow_empty and not any(one.policies for one in (base, *sets)):
        return judge_module.fault("policies", "no policy is enabled, so nothing can be allowed"), [], base
    facts = facts_of(folders, root, event.cwd, hook_module.PROGRAM, {})
    verdict, effects = judge_module.decide(
        [base, *sets], event, facts, allow_empty=allow_empty, data_folder=folders.data
    )
    return verdict, effects, base


def run(
    directory: str | None,
    dialect: str | None,
    *,
    allow_empty: bool,
    folders: Folders | None = None,
    ask: Callable[[str], bool | None] | None = None,
) -> int:
    """Reads, judges, records, prints; returns the exit status. ask(reason) asks a person: True, False, or None for no terminal."""
    event: Event | None = None
    base: Compiled | None = None
    effects: list[Effect] = []
    try:
        event = event_of(read_payload(), dialect)
        where = folders or folders_module.for_hook(directory, hook_module.PROGRAM)
        if directory is not None and not allow_empty:
            posix.stat(where.data)
        verdict, effects, base = judge(where, event, allow_empty=allow_empty)
    except PayloadError as error:
        verdict = _fault("payload", str(error))
    except OSError as error:
        verdict = _fault("internal", f"{error.strerror}: {error.filename}" if error.filename else str(error))
    except Exception as error:
        verdict = _fault("internal", f"policy evaluation failed: {type(error).__name__}")
    final, status = verdict.action, BLOCK_STATUS if verdict.action == "deny" else 0
    if verdict.mode == "observe":
        status = 0
    elif verdict.action == "require_review":
        final, status = _review(verdict, ask)
    lost = None if event is None else _record(folders, directory, event, verdict, effects, base, final, status)
    if lost and status == 0 and verdict.mode != "observe" and not allow_empty:
        # As the hook does: what leaves no trace does not happen.
        final, status = "deny", BLOCK_STATUS
        verdict.reason = f"this step can't be recorded ({lost}); --allow-empty lets it pass all the same"
    elif lost:
        print(f"guardhook: this verdict was not recorded ({lost})", file=sys.stderr)
    shown: dict[str, object] = {
        "action": final,
        "policy": verdict.policy,
        "reason": verdict.reason,
        "suggest": verdict.suggest or None,
        "span": verdict.span,
        "matched_action": verdict.action,
        "mode": verdict.mode,
        "set": verdict.set,
    }
    return _print(shown, final, status)


def _fault(cause: str, message: str) -> Verdict:
    verdict = Verdict("deny", message)
    verdict.cause = cause
    return verdict


def _review(verdict: Verdict, ask: Callable[[str], bool | None] | None) -> tuple[str, int]:
    approved = ask(verdict.reason) if ask is not None else None
    if approved:
        verdict.reason = f"approved by a person: {verdict.reason}"
        return "allow", 0
    why = "review required (no TTY, failed closed)" if approved is None else "review required (refused)"
    verdict.reason = f"{why}: {verdict.reason}"
    return "deny", BLOCK_STATUS


def _print(shown: dict[str, object], final: str, status: int) -> int:
    policy = f" by policy {printable(str(shown['policy']), 80)}" if shown["policy"] else ""
    words = {"deny": "denied", "warn": "warning", "allow": "allowed", "require_review": "review"}
    if status == 0:  # observing: the verdict is told and not carried out
        words.update(deny="not enforced: would be denied", require_review="not enforced: would need a review")
    reason = printable(str(shown["reason"] or ""), limits.REASON_CHARS)
    line = f"guardhook: {words[final]}{policy}" + (f": {reason}" if reason else "")
    try:
        if final != "allow" or reason:
            posix.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
        data = dumps(shown).encode() + b"\n"
        while data:
            data = data[posix.write(1, data) :]
    except OSError:
        return BLOCK_STATUS
    return status


def _record(
    folders: Folders | None,
    directory: str | None,
    event: Event,
    verdict: Verdict,
    effects: list[Effect],
    base: Compiled | None,
    final: str,
    status: int,
) -> str | None:
    """The verdict of a script's step is recorded like any other. Returns why it could not be, or None."""
    try:
        from guardhook.gate import record

        where = folders or folders_module.for_hook(directory, hook_module.PROGRAM)
        if directory is not None:
            posix.stat(where.data)  # a folder that was named and does not exist is not made
        answer = Answer(status, final.encode())
        data = record.data_of(event, verdict, answer, base, effects, no_input=False, behind_launcher=False)
        outcome = record.append(where.journal, event, None, data, limits.JOURNAL_LOCK_ENFORCING, time.time_ns(), base)
    except Exception as error:
        return type(error).__name__
    return printable(outcome.note or "no reason is known") if outcome.state == "nowhere" else None
