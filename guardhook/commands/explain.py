"""`guardhook explain`: what a call would do and how it would be judged and answered. Looks only: runs nothing, records nothing.

JSON, version 1 (keys are only ever added):

    {"ok": true, "v": 1,
     "event": {"dialect", "native_event", "event", "tool", "kind", "cwd", "project"},
     "commands": [{"text", "shell", "parse": {"ok": true, "tree": NODE, "cut": bool} | {"ok": false, "error", "at"} | null}],
     "files": [{"op", "path"}], "urls": [str],
     "effects": [{"kind", "flags": [str], "program", "argv": [str], "path", "path_classes": [str], "host", "git", "detail", "via": [str],
                  "span": [start, end] | null, "excerpt": str | null, "lookalike": bool}],
     "matched": [{"policy", "action", "layer", "why", "reason", "suggest", "span", "lookalike", "effect": number | null}],
     "nearly": [{"policy", "action", "layer", "held": [str], "missing": str | null, "excused": "unless" | "exception" | null,
                 "effect": number | null}],
     "verdict": {"action", "policy", "layer", "reason", "suggest", "span", "mode", "cause", "degraded"} | null,
     "answers": [{"harness", "action", "policy", "exit", "stdout", "stderr"}],
     "notes": [str]}

NODE is {"type", "span", "text", "children": [NODE], …} with words, assignments, redirects, name, word, after and background where they apply.
Spans are character ranges of the command (of the first one where there are several: then effects have none). verdict is null for events
that are only recorded. The verdict is that of the dialect in event; `answers` judges the same call in the others' names.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail
from guardhook.core.event import JUDGED, Event

if TYPE_CHECKING:
    from guardhook.core.effect import Effect
    from guardhook.core.folders import Folders
    from guardhook.core.verdict import Answer, Verdict
    from guardhook.policy.compiled import Compiled
    from guardhook.policy.nearly import Near

# The harnesses whose answers are shown: those measured on real clients, and the one that stands for all others.
HARNESSES = ("claude-code", "codex", "gemini", "qwen-code", "other")
_SHELL_TOOL = {"gemini": "run_shell_command", "qwen-code": "run_shell_command"}
_NATIVE = {"pre_tool": "PreToolUse", "permission_request": "PermissionRequest", "user_prompt": "UserPromptSubmit"}
_NATIVE_GEMINI = {"pre_tool": "BeforeTool", "permission_request": "BeforeTool", "user_prompt": "BeforeAgent"}
# The field that the argument of `--tool NAME ARGUMENT` fills, by the tool's kind.
_MAIN_FIELD = {
    "shell": "command", "file_write": "file_path", "file_edit": "file_path", "file_read": "file_path", "search": "pattern",
    "web_fetch": "url", "subagent": "prompt",
}  # fmt: skip


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


@click.command("explain", context_settings={"ignore_unknown_options": False})
@click.argument("call", required=False, metavar="[COMMAND | ARGUMENT | -]")
@click.option("--cwd", metavar="DIR", help="Where the call would run (default: here).")
@click.option(
    "--tool", metavar="NAME", help="A tool other than the shell; ARGUMENT is then its path, address or pattern."
)
@click.option("--input", "given", metavar="JSON", help="The tool's whole input as a JSON object.")
@click.option("--dialect", metavar="ID", help="Judge in this dialect (default: claude-code, or the payload's own).")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    call: str | None,
    cwd: str | None,
    tool: str | None,
    given: str | None,
    dialect: str | None,
    directory: str | None,
    as_json: bool,
) -> None:
    """Show what a call would do and how it would be judged. Nothing is run and nothing is recorded.

    \b
    guardhook explain 'rm -rf build'
    guardhook explain --tool write_file ~/.ssh/config
    guardhook explain --tool mcp__db__query --input '{"sql": "drop table users"}'
    guardhook explain - < payload.json
    """
    from guardhook.dialects import table

    if dialect is not None and dialect not in table.MODULES:
        fail(f"there is no dialect {dialect!r}; use one of {', '.join(table.MODULES)}", as_json=as_json)
    if call == "-" and tool is None and given is None:
        event = _payload(dialect, cwd, as_json)
    else:
        event = _call(call, tool, given, dialect or "claude-code", cwd, as_json)
    found = explain(resolve(directory), event)
    if as_json:
        emit(as_data(found))
        return
    from guardhook.commands.explain_view import show

    show(found)


# --- the call ------------------------------------------------------------------------------------------------------


def _call(call: str | None, tool: str | None, given: str | None, dialect: str, cwd: str | None, as_json: bool) -> Event:
    from guardhook.dialects import names, tools

    event = Event(dialect, native_name(dialect, "pre_tool"), "pre_tool", {})
    event.tool = tool or _SHELL_TOOL.get(dialect, "Bash")
    event.cwd = os.path.abspath(os.path.expanduser(cwd)) if cwd else os.getcwd()
    if not event.tool.strip():
        fail("--tool: a name is needed", as_json=as_json)
    if given is not None:
        if call is not None:
            fail("--input holds the whole input: leave the argument out", as_json=as_json)
        if tool is None:
            fail("--input needs --tool NAME", as_json=as_json)
        event.input = _object(given, "--input", as_json)
    elif call is None:
        fail(
            "nothing to explain",
            hints=["give a command, `--tool NAME` with an argument or --input JSON, or - to read a payload from stdin"],
            as_json=as_json,
        )
    else:
        key = _MAIN_FIELD.get(names.kind_of(event.tool)) if tool is not None else "command"
        if key is None:
            fail(f"--tool {tool}: say what its input is with --input JSON", as_json=as_json)
        event.input = {key: call}
    tools.fill(event)
    return event


def _object(text: str, where: str, as_json: bool) -> dict[str, object]:
    from guardhook.core.jsontext import PayloadError, loads_text

    try:
        value = loads_text(text)
    except PayloadError as error:
        fail(f"{where}: {error}", hints=['for example {"file_path": "a.txt", "content": "x"}'], as_json=as_json)
    if not isinstance(value, dict):
        fail(f"{where}: a JSON object is needed", as_json=as_json)
    return value


def _payload(dialect: str | None, cwd: str | None, as_json: bool) -> Event:
    from guardhook.core import limits
    from guardhook.core.jsontext import PayloadError, loads
    from guardhook.gate.check import event_of

    try:
        data = sys.stdin.buffer.read(limits.PAYLOAD_ENFORCING + 1)
        if len(data) > limits.PAYLOAD_ENFORCING:
            raise PayloadError("oversized", f"larger than {limits.PAYLOAD_ENFORCING // 1048576} MiB")
        event = event_of(loads(data), dialect)
    except PayloadError as error:
        fail(f"stdin: {error}", hints=["- reads a hook payload or a step as JSON"], as_json=as_json)
    if cwd is not None:
        event.cwd = os.path.abspath(os.path.expanduser(cwd))
    return event


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
        copy.tool = _SHELL_TOOL.get(dialect, "Bash")
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
