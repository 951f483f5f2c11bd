"""gc: which sessions go, and that nothing else changes."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.gate import marks
from guardhook.journal import line, verify, write
from guardhook.store import Appender

DAY = 86_400.0


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(main, [*args, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def put(data: Path, name: str, age_days: float, steps: int = 1) -> Path:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot"})]
    lines += [("trace.step", {"step_number": n, "step_type": "thought", "name": "x"}) for n in range(1, steps + 1)]
    Appender(explicit(str(data))).put(name, lines, opens=True)
    (file,) = (data / "journal").glob(f"20*/{line.key('recorder', name)}.jsonl")
    at = time.time() - age_days * DAY
    os.utime(file, (at, at))
    return file


def traces(data: Path) -> set[str]:
    return {t["id"] for t in json.loads(run(data, "list", "--json").stdout)["items"]}


def report(data: Path, *args: str) -> dict[str, Any]:
    result = run(data, "gc", *args, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "gh"
    for name, age in (("trc_old", 100), ("trc_mid", 40), ("trc_new", 2), ("trc_now", 0)):
        put(found, name, age)
    return found


def test_old_sessions_go_whole_and_the_rest_stays_as_it_was(data: Path) -> None:
    assert traces(data) == {"trc_old", "trc_mid", "trc_new", "trc_now"}
    shown = run(data, "show", "trc_new", "--json").stdout
    for name in ("trc_old", "trc_new"):
        (data / marks.FOLDER).mkdir(exist_ok=True)
        (data / marks.FOLDER / line.key("recorder", name)).write_text("network\t/tmp/x\n")
    found = report(data, "--older-than", "30d")
    assert len(found["removed"]) == 2 and (found["kept"], found["skipped"]) == (2, 0)
    assert found["bytes_removed"] == sum(r["bytes"] for r in found["removed"]) > 0
    assert traces(data) == {"trc_new", "trc_now"} and run(data, "show", "trc_new", "--json").stdout == shown
    assert [p.name for p in (data / marks.FOLDER).iterdir()] == [line.key("recorder", "trc_new")]
    assert not verify.verify(str(data / "journal")).findings
    assert (data / "journal" / "generation").read_text() == "1\n"


def test_a_dry_run_changes_nothing(data: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in data.rglob("*") if p.is_file()}
    assert len(report(data, "--older-than", "30d", "--dry-run")["removed"]) == 2
    assert {p: p.stat().st_mtime_ns for p in data.rglob("*") if p.is_file()} == before


def test_by_size_the_oldest_go_first_and_those_of_the_last_day_never(data: Path) -> None:
    total = report(data, "--max-size", "1T")["bytes_before"]
    assert traces(data) == {"trc_old", "trc_mid", "trc_new", "trc_now"}
    report(data, "--max-size", str(total - 1))
    assert traces(data) == {"trc_mid", "trc_new", "trc_now"}
    found = report(data, "--max-size", "0")
    assert traces(data) == {"trc_now"} and found["skipped"] == 1


def test_a_removed_session_may_come_back(data: Path) -> None:
    report(data, "--older-than", "30d")
    put(data, "trc_old", 0, steps=2)
    assert json.loads(run(data, "show", "trc_old", "--json").stdout)["steps"][1]["step_number"] == 2
    assert not verify.verify(str(data / "journal")).findings


def test_a_session_that_is_being_written_stays(data: Path) -> None:
    head = data / "journal" / write.HEADS / line.key("recorder", "trc_old")
    with head.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = report(data, "--older-than", "90d")
    assert found["skipped"] == 1 and "trc_old" in traces(data)


def test_a_removal_that_was_cut_short_is_finished(data: Path) -> None:
    head = data / "journal" / write.HEADS / line.key("recorder", "trc_old")
    next((data / "journal").glob(f"20*/{head.name}.jsonl")).unlink()
    os.utime(head, (1, 1))
    report(data, "--older-than", "90d")
    assert not head.exists() and traces(data) == {"trc_mid", "trc_new", "trc_now"}


@pytest.mark.parametrize(
    "words", [[], ["--older-than", "soon"], ["--older-than", ""], ["--max-size", "big"], ["--max-size", "-1"]]
)
def test_mistakes_remove_nothing(data: Path, words: list[str]) -> None:
    assert run(data, "gc", *words).exit_code == 2 and run(data, "gc", *words, "--json").exit_code == 2
    assert len(traces(data)) == 4


def test_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert run(tmp_path / "gh", "gc", "--older-than", "1d").exit_code == 1 and not (tmp_path / "gh").exists()


def test_people_read_one_line(data: Path) -> None:
    assert run(data, "gc", "--older-than", "30d").stdout.startswith("2 session(s) removed, ")


def test_without_a_bound_the_configured_retention_holds(data: Path) -> None:
    refused = run(data, "gc")
    assert refused.exit_code == 2 and "config set capture.retention" in refused.stderr
    (data / "config.toml").write_text('[capture]\nretention = "30d"\n')
    assert (report(data, "--dry-run")["older_than"], len(report(data, "--dry-run")["removed"])) == ("30d", 2)
    assert len(report(data, "--older-than", "90d", "--dry-run")["removed"]) == 1  # what is said counts
    assert report(data, "--max-size", "1T")["removed"] == []
    report(data)
    assert traces(data) == {"trc_new", "trc_now"}


@pytest.mark.parametrize(
    ("text", "says"),
    [("retention = 'soon'", "capture.retention"), ("retention = 3", "--older-than"), ("retention = ", "config.toml")],
)
def test_a_retention_that_means_nothing_removes_nothing(data: Path, text: str, says: str) -> None:
    (data / "config.toml").write_text(f"[capture]\n{text}\n")
    result = run(data, "gc")
    assert result.exit_code == 2 and says in result.stderr and len(list((data / "journal").glob("20*/*"))) == 4
