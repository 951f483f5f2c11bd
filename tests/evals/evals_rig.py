"""Recorded runs to evaluate, and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender

Fields = dict[str, object]
QUIET = {"GUARDHOOK_DIR": "", "COLUMNS": "100", "ANTHROPIC_API_KEY": "", "GOOGLE_API_KEY": "", "OPENAI_API_KEY": ""}


def step(type: str = "tool_call", name: str = "Bash", **more: object) -> Fields:
    return {"step_type": type, "name": name, **more}


def put(
    data: Path, name: str, *steps: Fields, end: Fields | None = None, ended: bool = True, fork_of: str | None = None, **start: object
) -> None:  # fmt: skip
    """Records a run as it is given: nothing is redacted."""
    begin: Fields = {"agent_name": "bot", "input": {"q": 1}, **start}
    kind = "trace.start" if fork_of is None else "fork.start"
    if fork_of is not None:
        begin |= {"parent_trace_id": fork_of, "forked_from_step": 1}
    lines: list[tuple[str, Fields]] = [(kind, begin)]
    for number, more in enumerate(steps, 1):
        lines.append(("trace.step", {"step_number": number, **more}))
    if ended:
        lines.append(("trace.end", {"status": "completed", **(end or {})}))
    Appender(explicit(str(data)), redaction="full").put(name, lines, opens=True)


def run(data: Path, *args: str, command: str = "eval", env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, [command, *args, "--dir", str(data)], env={**QUIET, **(env or {})})


def results(data: Path, *args: str, code: int | None = None, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The results of one run, as JSON."""
    done = run(data, *args, "--json", env=env)
    assert code is None or done.exit_code == code, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, list), done.output
    return found


def one(data: Path, *args: str, code: int | None = None, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The only result."""
    found = results(data, *args, code=code, env=env)
    assert len(found) == 1
    return found[0]


def scores(result: dict[str, Any]) -> dict[str, float]:
    return {c["name"]: c["score"] for c in result["details"]["criteria"]}


def refused(done: Result, code: int) -> dict[str, Any]:
    """The JSON of an error."""
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)
    assert found["ok"] is False and found["error"]
    assert isinstance(found, dict)
    return found
