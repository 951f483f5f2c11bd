"""Many runs under one bar: which count, what the averages are, and that nothing empty is ever green."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.commands.commands_rig import REAL, at_terminal, environment
from tests.evals.evals_rig import put, refused, run, step


def report(data: Path, *args: str, code: int) -> dict[str, Any]:
    done = run(data, *args, "--json")
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    put(tmp_path, "good1", step(output=1), agent_name="alpha", tags=["nightly"], session_id="s-1")
    put(tmp_path, "good2", step(output=1), agent_name="alpha", project="/work/one")
    put(
        tmp_path,
        "leaky",
        step(output=1),
        end={"output": "jo@example.com"},
        agent_name="beta",
        project="/work/one/below",
    )
    put(
        tmp_path,
        "old",
        step(output=1),
        agent_name="beta",
        started_at="2001-01-01T00:00:00Z",
        end={"ended_at": "2001-01-01T00:00:01Z"},
    )
    put(tmp_path, "running", step(output=1), ended=False, agent_name="alpha")
    put(tmp_path, "forked", step(output=1), agent_name="alpha", fork_of="good1")
    return tmp_path


S = ("--preset", "safety-check")


def test_averages_against_a_bar(data: Path) -> None:
    found = report(data, "--agent", "a", *S, "--fail-under", "0.9", code=0)
    assert list(found) == ["traces", "left_out", "fail_under", "evaluators", "results", "errors", "stopped", "ok"]
    assert (found["traces"], found["left_out"], found["fail_under"], found["ok"]) == (4, 2, 0.9, True)
    assert found["evaluators"] == [{
        "evaluator_name": "safety-check", "passed": 3, "failed": 1, "skipped": 0, "errors": 0, "average": 0.925, "lowest": 0.7, "worst_trace_id": "leaky",
    }]  # fmt: skip
    assert {(r["trace_id"], r["score"], r["passed"]) for r in found["results"]} == {
        ("good1", 1, True), ("good2", 1, True), ("leaky", 0.7, False), ("old", 1, True),
    }  # fmt: skip
    assert [r["details"]["criteria"][1]["name"] for r in found["results"] if "details" in r] == ["no_pii_in_output"]
    assert report(data, "--agent", "a", *S, "--fail-under", "0.93", code=1)["ok"] is False
    assert report(data, "--agent", "a", *S, "--fail-under", "0.925", code=0)["ok"] is True


def test_without_a_bar_every_result_has_to_pass(data: Path) -> None:
    assert report(data, "--agent", "a", *S, code=1)["ok"] is False
    assert report(data, "--agent", "alpha", *S, code=0)["ok"] is True


def test_a_weak_evaluator_does_not_hide_behind_others(tmp_path: Path) -> None:
    put(tmp_path, "t", step(output=1), end={"output": "jo@example.com"})
    found = report(tmp_path, "--agent", "bot", "--fail-under", "0.8", code=1)
    assert [(e["evaluator_name"], e["average"]) for e in found["evaluators"]] == [
        ("hallucination-check", 1.0), ("safety-check", 0.7), ("completeness-check", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "traces"),
    [
        (["--agent", "ALPHA"], {"good1", "good2"}), (["--tag", "nightly"], {"good1"}), (["--session", "s-"], {"good1"}), (["--project", "/work/one"], {"good2", "leaky"}),
        (["--since", "7d"], {"good1", "good2", "leaky"}), (["--since", "7d", "--agent", "beta"], {"leaky"}), (["--status", "completed", "--agent", "beta"], {"leaky", "old"}),
        (["--status", "running"], {"running"}),
    ],
)  # fmt: skip
def test_the_filters_of_list(data: Path, words: list[str], traces: set[str]) -> None:
    found = report(data, *words, *S, "--fail-under", "0", code=0)
    assert {r["trace_id"] for r in found["results"]} == traces


@pytest.mark.parametrize(
    "words", [["--agent", "nobody"], ["--tag", "x"], ["--status", "failed"], ["--since", "2099-01-01"]]
)
def test_nothing_that_fits_is_an_error(data: Path, words: list[str]) -> None:
    for more in ([], ["--fail-under", "0"]):
        assert "nothing to evaluate" in refused(run(data, *words, *more, "--json"), 2)["error"]


def test_only_forks_and_running_ones(tmp_path: Path) -> None:
    put(tmp_path, "running", step(output=1), ended=False)
    put(tmp_path, "forked", step(output=1), fork_of="x")
    assert "still running, or forks" in refused(run(tmp_path, "--agent", "bot", "--json"), 2)["error"]


def test_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert run(tmp_path / "gh", "--agent", "bot").exit_code == 1 and not (tmp_path / "gh").exists()


def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("guardhook.evals.rubric.SEARCH_SECONDS", 0.05)
    path = tmp_path / "slow.json"
    path.write_text(
        json.dumps({"name": "slow", "criteria": [{"name": "c", "pattern": "a*a*a*a*a*a*a*b$", "expected": False}]})
    )
    return str(path)


def test_when_every_evaluator_failed_it_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = slow(tmp_path, monkeypatch)
    put(tmp_path, "one", step(output="a" * 5000 + "bc"))
    put(tmp_path, "two", step(output="a" * 5000 + "bc"))
    told = refused(run(tmp_path, "--agent", "bot", "--rubric", path, "--fail-under", "0", "--json"), 1)
    assert len(told["hints"]) == 1 and "too long" in told["hints"][0]
    put(tmp_path, "fine", step(output="b"))
    found = report(tmp_path, "--agent", "bot", "--rubric", path, "--fail-under", "0", code=1)
    assert (found["ok"], found["evaluators"][0]["errors"], found["evaluators"][0]["passed"]) == (False, 2, 1)
    assert {e["trace_id"] for e in found["errors"]} == {"one", "two"}


def test_a_bar_needs_something_that_was_scored(tmp_path: Path) -> None:
    put(tmp_path, "t", step("output", "answer", output=1))
    words = ("--agent", "bot", "--preset", "safety-record")
    assert report(tmp_path, *words, code=0)["evaluators"][0]["skipped"] == 1
    assert report(tmp_path, *words, "--fail-under", "0.5", code=1)["ok"] is False


def test_the_table_for_people(data: Path) -> None:
    put(data, "evil", step("tool_call", "delete\x1b[31m", output=1), agent_name="alpha\r\n\x9b2J")
    done = run(data, "--agent", "alpha", "--fail-under", "0.95")
    assert done.exit_code == 1 and done.stdout.replace("\n", "").isprintable()
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Evaluator", "Passed", "Failed", "Skipped", "Errors", "Average", "Lowest"]
    assert lines[2].split() == ["✘", "safety-check", "2", "1", "0", "0", "86.7%", "60%", "evil"]
    assert lines[-1] == "3 runs (2 left out: forks, or still running); below 95%: safety-check 86.7%"
    assert done.stderr == ""


def test_progress_on_a_terminal_only(data: Path, tmp_path: Path) -> None:
    # stdout and stderr of this rig are pipes: no bar may reach them, nor the screen.
    done = at_terminal(["eval", "--agent", "alpha", "--dir", str(data)], environment(tmp_path), code=REAL)
    assert done.status == 0 and "evaluating" not in done.stdout + done.stderr + done.screen


def test_progress_on_a_terminal(data: Path, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    words = [sys.executable, "-c", REAL, "eval", "--agent", "alpha", "--dir", str(data)]
    done = subprocess.run(words, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=slave, check=False)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0 and "evaluating [" in shown and "0/2" in shown and shown.endswith("\r\x1b[K")


@pytest.mark.parametrize("bar", ["", " ", "nan", "-0.1", "80", "0,8"])
def test_a_bar_that_is_none(data: Path, bar: str) -> None:
    """`--fail-under "$BAR"` with BAR unset was a bar of 0, which everything reaches."""
    assert "--fail-under" in refused(run(data, "--agent", "a", *S, "--fail-under", bar, "--json"), 2)["error"]


def test_junit(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    assert run(data, "--agent", "a", *S, "--junit", str(path)).exit_code == 1
    suite = ET.parse(path).getroot()[0]
    cases = {(c.get("classname"), c.get("name")): [e.tag for e in c] for c in suite}
    assert cases["safety-check", "beta leaky"] == ["failure"] and cases["safety-check", "alpha good1"] == []
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")
    failure = suite.find(".//testcase[@name='beta leaky']/failure")
    assert (
        failure is not None and failure.get("message") == "score 70%, threshold 80%" and "e-mail" in str(failure.text)
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--agent", "a", "--fail-under", "0.9"), 0), (("--agent", "a", "--fail-under", "0.95"), 1), (("--agent", "a"), 1), (("leaky",), 1), (("good1",), 0), (("nope",), 1),
        (("good1", "--preset", "zz"), 2), (("good1", "--rubric", "missing.yaml"), 2), (("--agent", "a", "--ai"), 1), (("--agent", "nobody"), 2), ((), 2),
    ],
)  # fmt: skip
def test_the_junit_file_says_no_when_the_status_does(data: Path, tmp_path: Path, words: tuple[str, ...], code: int) -> None:  # fmt: skip
    """With a bar, single results that did not pass were failures though the status was 0; usage errors left an older file as it was."""
    path = tmp_path / "out.xml"
    path.write_text("<older/>")
    assert run(data, *words, *S, "--junit", str(path)).exit_code == code
    suite = ET.parse(path).getroot()[0]
    assert ((suite.get("failures"), suite.get("errors")) != ("0", "0")) == bool(code)
    if "0.9" in words:
        assert "e-mail" in str(suite.findtext(".//testcase[@name='beta leaky']/system-out"))


def test_junit_of_a_run_that_was_interrupted(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.xml"
    monkeypatch.setattr("guardhook.evals.running.Keeper.keep", _interrupted)
    assert run(data, "--agent", "a", *S, "--junit", str(path)).exit_code == 1
    assert ET.parse(path).getroot()[0].find(".//error[@message='interrupted']") is not None


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_junit_tells_of_runs_that_could_not_be_evaluated(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    assert run(data, "--agent", "nobody", "--junit", str(path)).exit_code == 2
    error = ET.parse(path).getroot().find(".//error")
    assert error is not None and "nothing to evaluate" in str(error.get("message"))
    assert run(data, "good1", "--junit", str(tmp_path / "no" / "x.xml")).exit_code == 2
    assert run(data, "good1", "--junit", str(path)).exit_code == 0 and len(ET.parse(path).getroot()[0]) == 3
