"""`guardhook guard test`: what the policies say to a step, a hook payload, a command or a whole recorded trace, without recording anything.

JSON of a trace: `{trace_id, steps, judged, unevaluable, unevaluable_by_reason, deny, require_review, warn, matches: [{step_number, name, call, action, policy, layer, reason}]}`.
"""

from __future__ import annotations

import os
import sys
import time

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail
from guardhook.core.event import Event
from guardhook.core.jsontext import printable


@click.command("test")
@click.argument("trace_id", metavar="[TRACE]", required=False)
@click.option("--file", "path", metavar="FILE", help="Read the step or payload from this file instead of stdin.")
@click.option("--command", "line", metavar="TEXT", help="A shell command to try, instead of a step or payload.")
@click.option("--cwd", metavar="DIR", help="Where the command would run (default: here).")
@click.option("--dialect", help="Read a raw hook payload as this dialect.")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the matches as JSON.")
def command(
    trace_id: str | None,
    path: str | None,
    line: str | None,
    cwd: str | None,
    dialect: str | None,
    directory: str | None,
    as_json: bool,
) -> None:
    """Try the policies on a call, or on all calls of a recorded trace.

    A call is a step or hook payload (stdin or --file), or with --command a shell command. Nothing is recorded. Status 1 when a DENY matched, 2 when there is nothing that can be judged.
    """
    if trace_id is not None:
        if any(option is not None for option in (path, line, cwd, dialect)):
            fail("a TRACE stands alone: --file, --command, --cwd and --dialect are about a single call", as_json=as_json)  # fmt: skip
        _trace(trace_id, directory, as_json)
        return
    from guardhook.gate import hook, roots
    from guardhook.policy import compile as compiler
    from guardhook.policy import compiled, match

    event = _command(line, cwd) if line is not None else _given(path, dialect, as_json)
    folders = resolve(directory)
    try:
        sets = [compiled.load_bytes(compiler.compile_main(folders).blob)]
        root = roots.find_root(event.cwd)
        if root is not None and os.path.lexists(f"{root}/{compiled.PROJECT_POLICIES}"):
            sets.append(compiled.load_bytes(compiler.compile_project(folders, root).blob))
    except compiled.Broken as error:
        fail(str(error), as_json=as_json)
    if event.undecidable:
        fail(f"this call can't be judged, an enforcing hook blocks it: {event.undecidable}", as_json=as_json)
    from guardhook.analysis import analyse
    from guardhook.gate.facts import facts_of

    try:
        effects = analyse(event, facts_of(folders, root, event.cwd, hook.PROGRAM, {}))
        verdict = match.judge(sets, event, effects, time.time())
    except Exception as error:  # status 1 means that a policy denied, so a fault must not end with it
        fail(f"policy evaluation failed: {type(error).__name__}: {error}; an enforcing hook blocks", as_json=as_json)
    counts = {a: sum(m.action == a for m in verdict.matches) for a in ("deny", "require_review", "warn", "allow")}
    if as_json:
        emit(
            {
                "ok": True,
                "action": verdict.action,
                "policy": verdict.policy,
                "reason": verdict.reason,
                "matches": [
                    {
                        "policy": m.policy,
                        "action": m.action,
                        "layer": m.layer,
                        "why": m.why,
                        "span": m.span,
                        "lookalike": m.lookalike,
                    }
                    for m in verdict.matches
                ],
                "counts": counts,
            }
        )
    else:
        for m in verdict.matches:
            click.echo(f"{m.action.upper():<15}{printable(m.policy, 60)}  {printable(m.why, 200)}")
        summary = ", ".join(f"{n} {a}" for a, n in counts.items() if n) or "no policy matched"
        click.echo(f"{summary}; verdict: {verdict.action}")
    if counts["deny"]:
        raise SystemExit(1)


def _command(line: str, cwd: str | None) -> Event:
    from guardhook.dialects import tools

    event = Event("claude-code", "PreToolUse", "pre_tool", {})
    event.tool = "Bash"
    event.input = {"command": line}
    event.cwd = os.path.abspath(cwd) if cwd else os.getcwd()
    tools.fill(event)
    return event


def _given(path: str | None, dialect: str | None, as_json: bool) -> Event:
    from guardhook.core.jsontext import PayloadError, loads
    from guardhook.gate.check import event_of

    try:
        if path is not None and path != "-":
            with open(path, "rb") as stream:
                data = stream.read()
        else:
            data = sys.stdin.buffer.read()
        return event_of(loads(data), dialect)
    except OSError as error:
        fail(f"{path or 'stdin'}: can't be read: {error.strerror}", as_json=as_json)
    except PayloadError as error:
        fail(f"{path or 'stdin'}: {error}", hints=["--command TEXT tries a shell command"], as_json=as_json)


def _trace(trace_id: str, directory: str | None, as_json: bool) -> None:
    """Judges a recorded trace by the policies as they are now."""
    from guardhook.commands import progress, reading
    from guardhook.store import backtest, rejudge

    folders = resolve(directory)
    with reading.opened(directory, as_json) as store:
        trace = store.get(trace_id)
        policies = backtest.compiled(folders)
        judged = 0
        missing = dict.fromkeys(backtest.REASONS, 0)
        counts = dict.fromkeys(("deny", "require_review", "warn"), 0)
        matches: list[dict[str, object]] = []
        bar = progress.Bar("judging", least=2, patience=progress.PATIENCE)
        for number, one in enumerate(rejudge.judge(store, folders, trace, policies)):
            if number % 64 == 0:
                bar(number, trace.step_count)
            if one.verdict is None:
                missing[one.missing or "failed"] += 1
                continue
            judged += 1
            verdict = one.verdict
            if verdict.action not in counts:
                continue
            counts[verdict.action] += 1
            row: dict[str, object] = {
                "step_number": one.step_number, "name": one.name, "call": one.call, "action": verdict.action,
                "policy": verdict.policy, "layer": verdict.layer, "reason": verdict.reason,
            }  # fmt: skip
            if as_json:
                matches.append(row)
            else:
                bar(trace.step_count, trace.step_count)
                with reading.heard():
                    _row(row)
        bar(trace.step_count, trace.step_count)
        lost = sum(missing.values())
        with reading.heard():
            if as_json:
                reading.print_json({
                    "trace_id": trace.id, "steps": judged + lost, "judged": judged, "unevaluable": lost, "unevaluable_by_reason": missing,
                    **counts, "matches": matches,
                })  # fmt: skip
            else:
                said = [f"{judged:,} of {judged + lost:,} step(s) judged", *(f"{n:,} {a.replace('_', ' ')}" for a, n in counts.items() if n)]  # fmt: skip
                if lost:
                    why = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in missing.items() if n)
                    said.append(f"{lost:,} unevaluable ({why})")
                click.echo(", ".join(said))
    if not judged:
        if as_json:
            raise SystemExit(2)
        fail("no step could be judged, so nothing can be said")
    if counts["deny"]:
        raise SystemExit(1)


def _row(row: dict[str, object]) -> None:
    from guardhook.commands import reading
    from guardhook.views.text import one_line

    number = "" if row["step_number"] is None else f"#{row['step_number']} "
    head = f"{number}{str(row['action']).upper()}  {row['policy'] or '(the gate itself)'}: {row['call'] or row['name'] or '?'}"
    click.echo(one_line(head, max(20, reading.width())))
