"""What real clients print about themselves, piped into `guardhook record`: every line is understood, and the trace says what happened."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from realclients.driver import Home, Result, run
from realclients.install import Pin

from guardhook.core.folders import explicit
from guardhook.store import Step, Trace, open_store

ROOT = Path(__file__).resolve().parents[2]
FORMATS = {"codex": "codex-exec", "gemini": "gemini-stream", "claude-code": "claude-stream", "qwen-code": "qwen-stream"}
SHELLS = {
    "codex": "command_execution",
    "gemini": "run_shell_command",
    "claude-code": "Bash",
    "qwen-code": "run_shell_command",
}
DENY = "input=$(cat); case \"$input\" in *GH-DENY*) echo 'no GH-DENY here' >&2; exit 2;; esac; exit 0\n"
Homes = Callable[[Pin, str], Home]
streaming = pytest.mark.dialects(*FORMATS)


class Recorded:
    """A session of a client whose stream went through a pipe into `record`."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch, *, lost: bool = False, **session: Any) -> None:
        driver = home.driver
        folder = home.base / "recorded" / uuid.uuid4().hex[:10]
        told = folder.with_suffix(".json")
        folder.parent.mkdir(exist_ok=True)
        record = [
            sys.executable,
            "-m",
            "guardhook",
            "record",
            "--format",
            FORMATS[driver.dialect],
            "--dir",
            str(folder),
            "--json",
        ]
        pipe = f"PYTHONPATH={shlex.quote(str(ROOT))} {shlex.join(record)} > {shlex.quote(str(told))}"
        command = driver.command

        def piped(*given: Any) -> tuple[list[str], dict[str, str]]:
            words, extra = command(*given)
            more = ["--json"] if driver.dialect == "codex" else []
            if lost:  # the model's address leads nowhere
                words = [w.replace('/v1"', '/v1?nothing="') for w in words]
            return ["sh", "-c", f'"$@" | {pipe}', "sh", *words, *more], extra

        with monkeypatch.context() as patch:
            patch.setattr(driver, "command", piped)
            self.result: Result = run(home, **session)
        assert told.exists() and told.read_text(), self.result.story()
        self.told = json.loads(told.read_text())
        with open_store(explicit(str(folder))) as store:
            (found,) = store.traces().items
            self.trace: Trace = found
            self.steps: list[Step] = list(store.steps(found))

    def shells(self, dialect: str) -> list[Step]:
        return [s for s in self.steps if SHELLS[dialect] in (s.name, s.metadata.get("item_type"))]


@streaming
def test_a_session(row: Pin, plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recorded(plain, monkeypatch)
    assert found.result.ran, found.result.story()
    assert (found.told["warnings"], found.told["warnings_by_kind"]) == (0, {}), found.told
    trace = found.trace
    assert (trace.agent_name, trace.status, trace.error) == (row.dialect, "completed", None)
    assert trace.session_id and trace.total_tokens and trace.effective_duration_ms
    (shell,) = found.shells(row.dialect)
    assert "GH-PLAIN.marker" in json.dumps(shell.input) and shell.error is None and shell.duration_ms is not None
    assert any(s.step_type == "output" for s in found.steps) and isinstance(trace.output, dict) and trace.output["text"]
    if row.dialect != "codex":  # whose stream names no model
        assert shell.model
    if row.dialect == "claude-code":
        assert trace.total_cost_usd and trace.project == str(found.result.work) and trace.agent_version


@streaming
@pytest.mark.parametrize("kind", ["write", "mcp"])
def test_other_tools(row: Pin, plain: Home, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    found = Recorded(plain, monkeypatch, kind=kind)
    assert found.result.ran and found.told["warnings"] == 0, found.told
    (call,) = [s for s in found.steps if s.step_type == "tool_call"]
    assert "GH-PLAIN.marker" in json.dumps([call.input, call.output]) and call.error is None and call.ended_at


@streaming
def test_a_denied_call(row: Pin, stand_in: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recorded(stand_in(DENY), monkeypatch, word="GH-DENY")
    assert not found.result.ran and found.told["warnings"] == 0, found.result.story()
    assert found.trace.status == "completed"
    if row.dialect == "codex":  # whose stream has nothing of a call that a hook denied
        assert found.shells(row.dialect) == []
        return
    (shell,) = found.shells(row.dialect)
    assert shell.error and "GH-DENY" in shell.error and shell.metadata["blocked"] is True
    assert shell.decision is not None and (shell.decision.chosen, shell.decision.decided_by) == ("deny", "policy")


@streaming
def test_a_failing_command(row: Pin, plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recorded(plain, monkeypatch, turns=[(plain.driver.shell("echo before; exit 3"),)])
    assert found.told["warnings"] == 0
    (shell,) = found.shells(row.dialect)
    assert "before" in json.dumps(shell.output) and found.trace.status == "completed"
    if row.dialect != "gemini":  # which calls a command that ran a success, whatever its status
        assert shell.error and "3" in shell.error


@streaming
def test_a_sub_agent(row: Pin, plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    work = plain.work()
    call = plain.driver.call("shell", work / "GH-PLAIN.marker")
    found = Recorded(
        plain, monkeypatch, work=work, turns=plain.driver.delegate("SUBTASK"), threads={"SUBTASK": [(call,)]}
    )
    assert found.result.ran and found.told["warnings"] == 0, found.result.story()
    started = [s for s in found.steps if "SUBTASK" in json.dumps(s.input) and s.step_type == "tool_call"]
    assert started, [s.name for s in found.steps]
    if row.dialect == "claude-code":  # the others' streams do not tell what a sub-agent does
        (shell,) = [s for s in found.shells(row.dialect) if "GH-PLAIN" in json.dumps(s.input)]
        anchor = next(s for s in found.steps if s.step_number == shell.parent_step_number)
        assert anchor.name == "subagent:general-purpose" and anchor.parent_step_number == started[0].step_number


@pytest.mark.dialects("codex")
def test_a_run_that_fails(plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recorded(plain, monkeypatch, lost=True)
    assert found.told["warnings"] == 0
    assert found.trace.status == "failed" and found.trace.error
