"""demo: what it puts in, what it shows, and that --reset takes out exactly that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.journal import line, read, verify
from guardhook.store import Appender, Filter, demo, open_store
from guardhook.store.samples import SAMPLES


def run(data: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def answer(data: Path, *words: str) -> dict[str, Any]:
    result = run(data, *words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def items(data: Path) -> dict[str, dict[str, Any]]:
    return {t["id"]: t for t in answer(data, "list")["items"]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


def test_the_samples_show_every_kind_of_run(data: Path) -> None:
    loaded = answer(data, "demo", "--no-interactive")["loaded"]
    assert loaded == [s.id for s in SAMPLES]
    found = items(data)
    assert set(found) == set(loaded)
    assert sorted((t["status"], t["step_count"]) for t in found.values()) == [("completed", 8), ("completed", 10), ("failed", 7), ("failed", 8), ("timeout", 9)]  # fmt: skip
    assert all(t["tags"] == ["demo"] and t["metadata"]["demo"] for t in found.values())
    assert found["trc_demo-travel"]["session_id"] == "demo-session-travel"
    assert not verify.verify(str(data / "journal")).findings
    for name, trace in found.items():
        shown = answer(data, "show", name)
        assert trace["total_tokens"] == sum(s["tokens_used"] or 0 for s in shown["steps"])
        assert trace["total_duration_ms"] == sum(s["duration_ms"] for s in shown["steps"])
        links = [(s["step_number"], s[k]) for s in shown["steps"] for k in ("parent_step_number", "caused_by_step_number") if s[k]]  # fmt: skip
        assert all(to < number for number, to in links)
    assert len(answer(data, "why", "trc_demo-travel", "--step", "9")["chain"]) > 3
    assert [d["decided_by"] for d in answer(data, "decisions", "trc_demo-travel")["decisions"]] == ["agent", "agent", "user"]  # fmt: skip
    assert answer(data, "decisions", "trc_demo-admin")["decisions"][0]["chosen"] == "deny"


def test_they_are_always_recent(data: Path) -> None:
    demo.load(explicit(str(data)), now=1_800_000_000)
    with open_store(explicit(str(data)), now=1_800_000_000) as store:
        since = (1_800_000_000 - 4 * 86_400) * 1_000_000
        assert store.traces(Filter(since_us=since)).total == len(SAMPLES)
        ends = [t.started_at for t in store.iterate(sort="-started_at")]
    assert ends[0] == "2027-01-15T07:45:00.000Z"


def test_policies_are_shown_and_not_enforced(data: Path) -> None:
    before = json.loads(run(data, "guard", "list", "--json").stdout)["policies"]
    hits = answer(data, "demo")["hits"]
    assert {(h["policy"], h["action"]) for h in hits} == {("sample-no-delete", "deny"), ("sample-links-in-answers", "warn"), ("sample-long-generations", "warn")}  # fmt: skip
    assert {"trace_id": "trc_demo-admin", "step_number": 3, "name": "delete_folder", "policy": "sample-no-delete", "action": "deny"} in hits  # fmt: skip
    assert json.loads(run(data, "guard", "list", "--json").stdout)["policies"] == before
    assert not (data / "policies").exists() and run(data, "guard", "test", "trc_demo-admin").exit_code == 0
    people = run(data, "demo")
    assert "not in force" in people.stdout and "sample-no-delete" in people.stdout and "demo --reset" in people.stdout
    assert people.stdout.replace("\n", "").isprintable()


def test_a_second_time_adds_nothing_and_what_is_missing_comes_back(data: Path) -> None:
    run(data, "demo")
    assert answer(data, "demo")["loaded"] == [] and len(items(data)) == len(SAMPLES)
    assert "there already" in run(data, "demo").stdout
    (file,) = (data / "journal").glob(f"20*/{line.key('demo', 'trc_demo-coder')}.jsonl")
    file.unlink()
    (data / "journal" / "heads" / file.stem).unlink()
    assert answer(data, "demo")["loaded"] == ["trc_demo-coder"] and len(items(data)) == len(SAMPLES)


def test_reset_takes_out_only_what_demo_made(data: Path) -> None:
    folders = explicit(str(data))
    mine: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "mine", "tags": ["demo"], "metadata": {"demo": True}})]  # fmt: skip
    Appender(folders).put("trc_demo-mine", mine, opens=True)
    (data / "policies").mkdir()
    (data / "policies" / "mine.toml").write_text('[[policy]]\nname = "x"\naction = "deny"\nmatch = {program = "x"}\n')
    run(data, "demo")
    assert run(data, "fork", "trc_demo-coder", "--from-step", "2").exit_code == 0
    shown = run(data, "show", "trc_demo-mine", "--json").stdout
    files = {p for p in data.rglob("*") if p.is_file()}
    generation = read.generation(folders.journal)
    removed = answer(data, "demo", "--reset")
    assert set(removed["removed"]) == {s.id for s in SAMPLES} and removed["skipped"] == 0
    assert {i for i in items(data) if i.startswith("trc_demo")} == {"trc_demo-mine"} and len(items(data)) == 2
    assert run(data, "show", "trc_demo-mine", "--json").stdout == shown
    assert read.generation(folders.journal) == generation + 1
    gone = {p.name for p in files if not p.exists()}
    assert all(name.startswith("demo-") for name in gone) and (data / "policies" / "mine.toml").exists()
    assert run(data, "demo", "--reset").stdout == "there are no sample traces\n"
    assert len(answer(data, "demo")["loaded"]) == len(SAMPLES) and len(items(data)) == len(SAMPLES) + 2


def test_reset_where_nothing_was_recorded_creates_nothing(data: Path) -> None:
    assert answer(data, "demo", "--reset")["removed"] == [] and not data.exists()


@pytest.mark.parametrize("words", [["x"], ["--nope"]])
def test_mistakes(data: Path, words: list[str]) -> None:
    assert run(data, "demo", *words).exit_code == 2 and not data.exists()


def test_where_nothing_can_be_written(data: Path) -> None:
    data.mkdir()
    os.symlink("/nowhere", data / "journal")
    result = run(data, "demo", "--json")
    assert result.exit_code == 1 and not json.loads(result.stdout)["ok"]


def test_a_journal_that_can_not_be_read_is_told(data: Path) -> None:
    data.mkdir()
    (data / "elsewhere").mkdir()
    (data / "journal").symlink_to("elsewhere")  # never through a link
    for words in (["demo"], ["demo", "--reset"]):
        result = run(data, *words)
        assert result.exit_code == 1 and str(data / "journal") in result.stderr and "Error" not in result.stderr
