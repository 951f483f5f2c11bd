"""`guardhook guard test`: what the policies say to a step, a hook payload or a command, without recording anything."""

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
@click.option("--file", "path", metavar="FILE", help="Read the step or payload from this file instead of stdin.")
@click.option("--command", "line", metavar="TEXT", help="A shell command to try, instead of a step or payload.")
@click.option("--cwd", metavar="DIR", help="Where the command would run (default: here).")
@click.option("--dialect", help="Read a raw hook payload as this dialect.")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the matches as JSON.")
def command(
    path: str | None, line: str | None, cwd: str | None, dialect: str | None, directory: str | None, as_json: bool
) -> None:
    """Try the policies on a call.

    It is a step or hook payload (stdin or --file), or with --command a shell command. Nothing is recorded. Status 1 when a DENY matched, 2 when the input can't be judged.
    """
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
