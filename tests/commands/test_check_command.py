"""check: what counts as a regression, and everything that must not pass for a green gate."""

from __future__ import annotations

import copy
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender

HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f<&]]>\ufffe"
Golden = list[dict[str, Any]]


def put(data: Path, name: str, *steps: dict[str, object], end: str | None = "completed", **start: object) -> None:
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": "bot", "input": {"q": 1, "r": 2}, **start})
    ]
    for number, more in enumerate(steps, 1):
        lines.append(("trace.step", {"step_number": number, "step_type": "tool_call", "name": "Bash", **more}))
    if end:
        lines.append(("trace.end", {"status": end}))
    Appender(explicit(str(data)), redaction="full").put(name, lines, opens=True)


class Rig:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.data = base / "gh"
        self.file = base / "golden.json"
        put(self.data, "trc_good", *STEPS)
        exported = self.run("export", "--format", "golden", "--all-projects", "--output", str(self.file))
        assert exported.exit_code == 0, exported.output
        self.golden: Golden = json.loads(self.file.read_text())

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(main, [*words, "--dir", str(self.data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})

    def check(self, *words: str, golden: object = None, everywhere: bool = True) -> Result:
        if golden is not None:
            self.file.write_text(json.dumps(golden))
        return self.run("check", "--golden", str(self.file), *(["--all-projects"] if everywhere else []), *words)

    def report(self, *words: str, status: int = 0, golden: object = None) -> dict[str, Any]:
        result = self.check("--json", *words, golden=golden)
        assert result.exit_code == status, result.output
        found = json.loads(result.stdout)
        assert isinstance(found, dict)
        return found


STEPS: list[dict[str, object]] = [
    {"input": {"command": "ls", "n": 1}},
    {"step_type": "llm_call", "name": "ask", "model": "m-1"},
    {"step_type": "output", "name": "say"},
]


def changed(number: int, **more: object) -> list[dict[str, object]]:
    steps = copy.deepcopy(STEPS)
    steps[number].update(more)
    return steps


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_the_same_run_passes_whatever_the_order_of_keys(rig: Rig) -> None:
    put(rig.data, "trc_same", *changed(0, input={"n": 1, "command": "ls"}), input={"r": 2, "q": 1})
    report = rig.report()
    assert list(report) == ["results", "passed", "failed", "unmatched", "uncovered", "uncompared", "ok"]
    assert (report["passed"], report["failed"], report["ok"]) == (2, 0, True)
    assert list(report["results"][0]) == ["trace_id", "agent_name", "matched", "passed", "divergences"]


@pytest.mark.parametrize(
    ("steps", "end", "wanted"),
    [
        (STEPS[:2], "completed", [("step_count", None, 3, 2)]),
        (changed(0, input={"command": "rm"}), "completed", [("tool_inputs", 1, {"command": "ls", "n": 1}, {"command": "rm"})]),
        (changed(0, name="Shell"), "completed", [("step_names", 1, "Bash", "Shell")]),
        (changed(2, error="broke"), "completed", [("step_errors", 3, False, True)]),
        (STEPS, "failed", [("status", None, "completed", "failed")]),
        (
            changed(0, step_type="thought"), "completed",
            [("step_types", 1, "tool_call", "thought"), ("tool_inputs", 1, {"command": "ls", "n": 1}, {"replaced_by_step_type": "thought"})],
        ),
    ],
)  # fmt: skip
def test_regressions(rig: Rig, steps: list[dict[str, object]], end: str, wanted: list[tuple[object, ...]]) -> None:
    put(rig.data, "trc_new", *steps, end=end)
    report = rig.report("--trace", "trc_new", status=1)
    found = [
        (d["field"], d.get("step_number"), d["golden"], d["candidate"]) for d in report["results"][0]["divergences"]
    ]
    assert found == wanted and report["failed"] == 1 and report["ok"] is False


def test_a_failure_that_is_gone_is_no_regression_and_model_is_opt_in(rig: Rig) -> None:
    put(rig.data, "trc_new", *changed(1, model="m-2"))
    golden = copy.deepcopy(rig.golden)
    golden[0]["steps_summary"][0]["failed"] = True
    del golden[0]["steps_summary"][1]["failed"]
    assert rig.report("--trace", "trc_new", golden=golden)["ok"] is True
    assert rig.report("--trace", "trc_new", "--fields", "model", status=1)["results"][0]["divergences"] == [
        {"field": "model", "step_number": 2, "golden": "m-1", "candidate": "m-2"}
    ]


def test_the_closest_baseline_counts_and_is_not_used_up(rig: Rig) -> None:
    other = copy.deepcopy(rig.golden[0])
    other["steps_summary"] = []
    put(rig.data, "trc_second", *STEPS)
    report = rig.report(golden=[other, rig.golden[0]])
    assert report["passed"] == 2 and report["uncovered"] == 0


def test_what_is_no_candidate(rig: Rig) -> None:
    put(rig.data, "trc_fork", parent_trace_id="trc_good", forked_from_step=1)
    put(rig.data, "trc_run", end=None)
    put(rig.data, "trc_blank", *STEPS, input={})
    report = rig.report()
    assert {(r["trace_id"], r["matched"]) for r in report["results"]} == {("trc_good", True), ("trc_blank", False)}
    assert rig.report("--trace", "trc_fork", status=1)["failed"] == 1  # named, it is one
    rig.report("--strict", status=1)


def test_strict_wants_every_baseline_exercised(rig: Rig) -> None:
    golden = [*rig.golden, {**rig.golden[0], "input": {}}]
    assert rig.report(golden=golden)["uncovered"] == 1
    assert rig.report("--strict", status=1)["ok"] is False


@pytest.mark.parametrize(
    ("words", "golden", "said"),
    [
        (["--agent", "b", "--agent-exact", "bot"], None, "contradict"), (["--agent", ""], None, "needs a value"), (["--since", ""], None, "needs a value"),
        (["--trace", ""], None, "needs a value"), (["--fields", " , "], None, "needs a value"), (["--fields", "steps"], None, "no field"),
        ([], [], "empty"), ([], {}, "list"), ([], [{"steps": []}], "format golden"), ([], [{"steps_summary": {}}], "steps_summary"),
        ([], [{"steps_summary": [], "metadata": {}}], "metadata.status"), ([], [{"steps_summary": [1], "metadata": {"status": "x"}}], "steps_summary"),
        ([], [{"steps_summary": [], "metadata": {"status": "x"}}], "no run has a baseline"), (["--agent", "nobody"], None, "no run matches"),
        (["--agent", "slow"], None, "still running"), (["--trace", "nope"], None, "no trace"),
    ],
)  # fmt: skip
def test_a_gate_that_can_not_tell_is_never_green(rig: Rig, words: list[str], golden: object, said: str) -> None:
    put(rig.data, "trc_slow", agent_name="slow", end=None)
    result = rig.check("--json", *words, golden=golden)
    assert result.exit_code == 2 and said in json.loads(result.stdout)["error"]
    junit = rig.base / "junit.xml"
    assert rig.check(*words, "--junit", str(junit)).exit_code == 2
    suite = ElementTree.parse(junit).getroot()[0]
    assert suite.get("errors") == "1"


def test_a_blank_name_of_a_junit_file_is_refused_and_no_file_is_made(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = rig.check("--junit", "  ")
    assert result.exit_code == 2 and "--junit" in result.output and sorted(tmp_path.iterdir()) == before


def test_files_and_stores_that_can_not_be_read(rig: Rig, tmp_path: Path) -> None:
    assert rig.run("check", "--json").exit_code == 2
    assert rig.run("check", "--golden", str(tmp_path / "none")).exit_code == 2
    rig.file.write_text('[{"a": NaN}]')
    assert rig.check().exit_code == 2
    rig.file.write_text(json.dumps(rig.golden))
    elsewhere = tmp_path / "other"
    result = CliRunner().invoke(main, ["check", "--golden", str(rig.file), "--json", "--dir", str(elsewhere)])
    assert result.exit_code == 2 and json.loads(result.stdout)["ok"] is False and not elsewhere.exists()


def test_allow_empty_and_the_current_project(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / ".git").mkdir(parents=True)
    monkeypatch.chdir(here)
    assert rig.check(everywhere=False).exit_code == 2
    assert rig.check("--allow-empty", everywhere=False).exit_code == 0
    put(rig.data, "trc_here", *STEPS, project=str(here))
    assert rig.check(everywhere=False).exit_code == 0


def test_a_named_field_must_be_exercised_unless_something_regressed(rig: Rig) -> None:
    golden = copy.deepcopy(rig.golden)
    for step in golden[0]["steps_summary"]:
        step.pop("model", None)
    assert rig.check("--fields", "model,status", golden=golden).exit_code == 2
    put(rig.data, "trc_bad", *STEPS, end="failed")
    report = rig.report("--fields", "model,status", status=1)
    assert report["failed"] == 1 and report["uncompared"] == 2


def test_people_read_one_line_per_divergence_and_ci_a_junit_file(rig: Rig) -> None:
    put(rig.data, "trc_bad", *changed(0, name=HOSTILE, input={"command": HOSTILE * 9}))
    put(rig.data, "trc_else", agent_name=HOSTILE)
    junit = rig.base / "junit.xml"
    result = rig.check("--junit", str(junit))
    assert result.exit_code == 1
    assert result.stdout.replace("\n", "").isprintable() and "✘ REGRESSED  trc_bad" in result.stdout
    assert "○ unmatched  trc_else" in result.stdout and "✔ pass  trc_good" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 passed, 1 regressed, 1 unmatched"
    assert "step_names @step 1: golden Bash → got" in result.stdout
    suite = ElementTree.parse(junit).getroot()[0]
    assert [suite.get(n) for n in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "1"]
