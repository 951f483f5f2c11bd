"""What `guardhook explain` knows of one call: its effects, the verdict, what nearly matched, and what each harness would be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guardhook.core.event import JUDGED, Event

if TYPE_CHECKING:
    from guardhook.core.effect import Effect
    from guardhook.core.folders import Folders
    from guardhook.core.verdict import Answer, Verdict
    from guardhook.policy.compiled import Compiled
    from guardhook.policy.nearly import Near

# The harnesses whose answers are shown: those measured on real clients, and the one that stands for all others.
HARNESSES = ("claude-code", "codex", "gemini", "qwen-code", "other")
SHELL_TOOL = {"gemini": "run_shell_command", "qwen-code": "run_shell_command"}
_NATIVE = {"pre_tool": "PreToolUse", "permission_request": "PermissionRequest", "user_prompt": "UserPromptSubmit"}
_NATIVE_GEMINI = {"pre_tool": "BeforeTool", "permission_request": "BeforeTool", "user_prompt": "BeforeAgent"}


@dataclass
class Explained:
    """Everything that is known about one call."""

    event: Event
    project: str | None = None
    effects: list[Effect] = field(default_factory=list)
    verdict: Verdict | None = None
    near: list[Near] = field(default_factory=list)
    answers: list[tuple[str, Verdict | None, Answer]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self, number: int = 0) -> str:
        """A command as the analyser read it: its spans are ranges of this."""
        from guardhook.analysis.lower import clean

        return clean(self.event.commands[number]) if number < len(self.event.commands) else ""

    def excerpt(self, effect: Effect) -> str | None:
        """The part of the command that an effect comes from; None where that can't be said."""
        if effect.span is None or len(self.event.commands) != 1:
            return None
        return self.text()[effect.span[0] : effect.span[1]]

    def number(self, effect: object) -> int | None:
        """The place of an effect in the list."""
        return next((n for n, known in enumerate(self.effects) if known is effect), None)


def native_name(dialect: str, event: str) -> str:
    """What a harness calls a canonical event."""
    return (_NATIVE_GEMINI if dialect == "gemini" else _NATIVE).get(event, event)


def in_dialect(event: Event, dialect: str) -> Event:
    """The same call as another harness would report it."""
    copy = Event(dialect, native_name(dialect, event.event), event.event, event.payload)
    for name in Event.__slots__:
        if name not in ("dialect", "native_event", "event", "payload"):
            setattr(copy, name, getattr(event, name))
    if event.tool in ("Bash", "run_shell_command"):
        copy.tool = SHELL_TOOL.get(dialect, "Bash")
    copy.surface = None
    return copy


# --- judging -------------------------------------------------------------------------------------------------------


def explain(folders: Folders, event: Event) -> Explained:
    """Judges an event just as the hook would, without leaving a trace."""
    from guardhook.core.verdict import Verdict
    from guardhook.dialects import table
    from guardhook.policy import compiled

    found = Explained(event)
    sets: list[Compiled] = []
    broken = ""
    try:
        sets, found.project = _sets(folders, event)
    except compiled.CompiledError as error:
        broken = str(error)
        found.notes.append(f"every call is blocked until this is mended: {error}")
    if event.event in JUDGED:
        verdict, found.effects = _judge(folders, sets, event, found.project, broken)
        found.verdict = verdict
        if verdict.mode == "paused":
            found.notes.append("guardhook is paused: reviews and your own policies let calls pass")
        elif verdict.mode == "observe":
            found.notes.append("the preset is `observe`: verdicts are recorded and nothing is blocked")
        if sets:
            from guardhook.policy.nearly import nearly

            found.near = nearly(sets, event, found.effects, verdict.matches)
    else:
        found.notes.append(f"{event.event} events are recorded and never judged")
    for dialect in dict.fromkeys((*((event.dialect,) if event.dialect in table.MODULES else ()), *HARNESSES)):
        asked = event if dialect == event.dialect else in_dialect(event, dialect)
        said: Verdict | None
        if asked is event or found.verdict is None:
            said = found.verdict
        else:
            said = _judge(folders, sets, asked, found.project, broken)[0]
        answer = table.load(dialect).answer(asked, said if said is not None else Verdict("allow"))
        found.answers.append((dialect, said, answer))
    return found


def _sets(folders: Folders, event: Event) -> tuple[list[Compiled], str | None]:
    """What judges the event: from the compiled files where they are current, else compiled in memory. Raises CompiledError."""
    from guardhook.gate import judge
    from guardhook.journal import write
    from guardhook.policy import compiled

    def project(root: str) -> Compiled | None:
        from guardhook.policy import compile as compiler

        try:
            return compiled.load_bytes(compiler.compile_project(folders, root).blob)
        except compiled.CompiledError:
            return None

    try:
        base = compiled.load(folders)
    except compiled.Broken:
        raise
    except compiled.CompiledError:
        from guardhook.policy import compile as compiler

        base = compiled.load_bytes(compiler.compile_main(folders).blob)
    head = write.peek(folders.journal, event.dialect, event.session, event.cwd) if event.session else None
    pinned = head.root if head is not None else None
    more, current = judge.project_sets(folders, event, pinned, project)
    return [base, *more], pinned or current


def _judge(
    folders: Folders, sets: list[Compiled], event: Event, root: str | None, broken: str
) -> tuple[Verdict, list[Effect]]:
    from guardhook.gate import hook, judge
    from guardhook.gate.facts import facts_of

    facts = facts_of(folders, root, event.cwd, hook.PROGRAM, {})
    verdict, effects = judge.decide(sets, event, facts, allow_empty=bool(broken), data_folder=folders.data)
    if broken:
        verdict = judge.fault("policies", broken)
    if not effects and event.event in judge.TOOL_EVENTS:
        from guardhook.analysis import analyse

        effects = analyse(event, facts)  # the gate needs none where nothing could match, a person wants to see them
    return verdict, effects


# --- as JSON -------------------------------------------------------------------------------------------------------


def as_data(found: Explained) -> dict[str, Any]:
    """The documented JSON."""
    event, verdict = found.event, found.verdict
    return {
        "ok": True,
        "v": 1,
        "event": {
            "dialect": event.dialect,
            "native_event": event.native_event,
            "event": event.event,
            "tool": event.tool,
            "kind": event.kind,
            "cwd": event.cwd,
            "project": found.project,
        },
        "commands": [
            {"text": text, "shell": event.shell, "parse": parsed(found, number)}
            for number, text in enumerate(event.commands)
        ],
        "files": [{"op": target.op, "path": target.path} for target in event.files],
        "urls": list(event.urls),
        "effects": [
            {
                "kind": effect.kind,
                "flags": sorted(effect.flags),
                "program": effect.program,
                "argv": list(effect.argv),
                "path": effect.path,
                "path_classes": sorted(effect.path_classes),
                "host": effect.host,
                "git": effect.git,
                "detail": effect.detail,
                "via": list(effect.via),
                "span": list(effect.span) if effect.span is not None else None,
                "excerpt": found.excerpt(effect),
                "lookalike": effect.lookalike,
            }
            for effect in found.effects
        ],
        "matched": [
            {
                "policy": m.policy,
                "action": m.action,
                "layer": m.layer,
                "why": m.why,
                "reason": m.reason,
                "suggest": m.suggest or None,
                "span": m.span,
                "lookalike": m.lookalike,
                "effect": found.number(m.effect),
            }
            for m in (verdict.matches if verdict is not None else ())
        ],
        "nearly": [
            {
                "policy": n.policy,
                "action": n.action,
                "layer": n.layer,
                "held": n.held,
                "missing": n.missing or None,
                "excused": n.excused or None,
                "effect": found.number(n.effect),
            }
            for n in found.near
        ],
        "verdict": None
        if verdict is None
        else {
            "action": verdict.action,
            "policy": verdict.policy,
            "layer": verdict.layer,
            "reason": verdict.reason,
            "suggest": verdict.suggest or None,
            "span": verdict.span,
            "mode": verdict.mode,
            "cause": verdict.cause,
            "degraded": verdict.degraded,
        },
        "answers": [
            {
                "harness": harness,
                "action": said.action if said is not None else None,
                "policy": said.policy if said is not None else None,
                "exit": answer.exit,
                "stdout": answer.stdout.decode("utf-8", "replace"),
                "stderr": answer.stderr.decode("utf-8", "replace"),
            }
            for harness, said, answer in found.answers
        ],
        "notes": found.notes,
    }


def parsed(found: Explained, number: int) -> dict[str, Any] | None:
    """The parse tree of a command; None for languages whose analyser makes no tree."""
    if found.event.shell != "sh":
        return None
    from guardhook.commands.explain_tree import parse

    return parse(found.text(number))
