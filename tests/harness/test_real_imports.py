"""The clients' own session logs: imported as they really write them, and held against what reached the gate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from realclients.codex import CODE_MODE_MODEL, Codex
from realclients.driver import KINDS, PROMPT, RAN, Home, run
from realclients.install import Pin
from realclients.product import ROOT, Product

Homes = Callable[[Pin, str], Home]
LOGS = {
    "claude-code": ".claude/projects",
    "codex": ".codex/sessions",
    "gemini": ".gemini/tmp",
    "qwen-code": ".qwen/projects",
}
logged = pytest.mark.dialects(*LOGS)


def guardhook(home: Home, *words: object, status: int = 0) -> dict[str, Any]:
    """Runs a command of the source tree in a home; gives its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "guardhook", *map(str, words), "--json"], env={**home.environment(), "PYTHONPATH": str(ROOT)}, cwd=home.base,
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def logs(home: Home) -> Path:
    return home.path / LOGS[home.driver.dialect]


def shown(home: Home, trace: str) -> dict[str, Any]:
    return guardhook(home, "show", trace)


@logged
def test_with_guardhook_every_call_reaches_the_gate(row: Pin, homes: Homes, product: Product) -> None:
    home = homes(row, "covered")
    product.ensure_installed(home)
    for kind in KINDS:
        assert run(home, kind, "GH-PLAIN").ran
    assert not run(home, "shell", "GH-DENY").ran
    work = home.work()
    inner = home.driver.call("shell", work / "GH-PLAIN.marker")
    assert run(home, work=work, turns=home.driver.delegate("SUBTASK"), threads={"SUBTASK": [(inner,)]}).ran
    found = guardhook(home, "coverage", "--fail-under", "100")
    assert found["percent"] == 100 and found["never"] == 0 and found["ran_although_blocked"] == 0, found
    assert found["calls"] == found["judged"] and found["calls"] >= 5, found
    assert sum(s["agent_calls"] for s in found["sessions"]) >= 1, found
    assert not found["problems"]

    imported = guardhook(home, "import", logs(home))
    assert imported["ok"] and {f["status"] for f in imported["files"]} == {"imported"}, imported
    for file in imported["files"]:
        assert not file["records"]["malformed"] and not file["records"]["mended"], file
        (trace,) = file["traces"]
        assert trace["hook_trace"] is not None  # the same session, as hooks recorded it
        told = shown(home, trace["trace_id"])
        if not told["metadata"].get("thread_id"):
            assert PROMPT in json.dumps(told["input"]), told["input"]
        assert told["session_id"] == trace["session"] and told["status"] == "completed"
    denied = [
        step for file in imported["files"] for step in shown(home, file["traces"][0]["trace_id"])["steps"]
        if "GH-DENY files" in str(step["error"])
    ]  # fmt: skip
    assert len(denied) == 1
    if row.version != "2.1.197":  # whose transcripts hold the reason and nothing else
        assert denied[0]["metadata"]["blocked"] is True
    again = guardhook(home, "import", logs(home))
    assert {f["status"] for f in again["files"]} == {"unchanged"}


@logged
def test_without_hooks_no_call_does(row: Pin, homes: Homes) -> None:
    home = homes(row, "uncovered")
    home.driver.register(home, [])
    assert run(home, "shell", "GH-DENY").ran
    found = guardhook(home, "coverage", "--fail-under", "1", status=1)
    assert found["calls"] >= 1 and found["reached"] == 0, found
    (session,) = found["sessions"]
    assert session["hook_events"] == 0 and len(session["never"]) == session["calls"]
    file = guardhook(home, "import", logs(home))["files"][0]
    (step,) = [s for s in shown(home, file["traces"][0]["trace_id"])["steps"] if s["step_type"] == "tool_call"]
    assert step["error"] is None and step["ended_at"] and step["metadata"]["call"], step


@pytest.mark.dialects("codex")
def test_calls_inside_a_script_reach_the_gate(row: Pin, homes: Homes, product: Product) -> None:
    home = homes(row, "covered-scripts")
    product.ensure_installed(home)
    driver = home.driver
    assert isinstance(driver, Codex)
    for word, runs in (("GH-PLAIN", True), ("GH-DENY", False)):
        work = home.work()
        cell = driver.cell(f"printf %s '{RAN}' > '{work / word}.marker'")
        result = run(home, word=word, work=work, turns=[(cell,)], arguments=["-c", f'model="{CODE_MODE_MODEL}"'])
        assert result.ran is runs, result.story()
    found = guardhook(home, "coverage", "--fail-under", "100")
    # A call that was denied inside a script leaves nothing in the log but the script's own output.
    assert found["calls"] == found["reached"] == 1 and found["without_hook"] == 2, found
