"""import of an agent-replay store: everything in it, whatever its version, and nothing of it changed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.intake import agent_replay
from guardhook.policy import load
from guardhook.store import Store, TraceRecorder, open_store

HOSTILE = "a\x1b[31m\x07\r\n\x9b\u202e"
TRACES = """
CREATE TABLE schema_version (version INTEGER NOT NULL, applied_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE agent_traces (
  id TEXT PRIMARY KEY, agent_name TEXT NOT NULL, agent_version TEXT, trigger TEXT NOT NULL DEFAULT 'manual', status TEXT NOT NULL DEFAULT 'running',
  input TEXT NOT NULL DEFAULT '{}', output TEXT, started_at TEXT NOT NULL DEFAULT (datetime('now')), ended_at TEXT, total_duration_ms INTEGER,
  total_tokens INTEGER, total_cost_usd REAL, error TEXT, tags TEXT NOT NULL DEFAULT '[]', metadata TEXT NOT NULL DEFAULT '{}',
  parent_trace_id TEXT REFERENCES agent_traces(id) ON DELETE SET NULL, forked_from_step INTEGER, created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE agent_trace_steps (
  id TEXT PRIMARY KEY, trace_id TEXT NOT NULL REFERENCES agent_traces(id) ON DELETE CASCADE, step_number INTEGER NOT NULL, step_type TEXT NOT NULL,
  name TEXT NOT NULL, input TEXT NOT NULL DEFAULT '{}', output TEXT, started_at TEXT NOT NULL DEFAULT (datetime('now')), ended_at TEXT,
  duration_ms INTEGER, tokens_used INTEGER, model TEXT, error TEXT, metadata TEXT NOT NULL DEFAULT '{}', UNIQUE(trace_id, step_number));
CREATE TABLE agent_trace_snapshots (
  id TEXT PRIMARY KEY, step_id TEXT NOT NULL REFERENCES agent_trace_steps(id), context_window TEXT DEFAULT '[]', environment TEXT DEFAULT '{}',
  tool_state TEXT DEFAULT '{}', token_count INTEGER DEFAULT 0);
CREATE TABLE agent_trace_evals (
  id TEXT PRIMARY KEY, trace_id TEXT NOT NULL REFERENCES agent_traces(id), evaluator_type TEXT, evaluator_name TEXT, score REAL NOT NULL,
  passed INTEGER NOT NULL, details TEXT DEFAULT '{}', evaluated_at TEXT);
CREATE TABLE guardrail_policies (
  id TEXT PRIMARY KEY, name TEXT UNIQUE NOT NULL, description TEXT, action TEXT, priority INTEGER DEFAULT 0, enabled INTEGER DEFAULT 1,
  match_pattern TEXT DEFAULT '{}', action_params TEXT, tags TEXT DEFAULT '[]', created_at TEXT, updated_at TEXT);
"""
SECOND = """
ALTER TABLE agent_traces ADD COLUMN session_id TEXT;
ALTER TABLE agent_trace_steps ADD COLUMN parent_step_number INTEGER;
ALTER TABLE agent_trace_steps ADD COLUMN caused_by_step_number INTEGER;
CREATE TABLE agent_trace_decisions (
  id TEXT PRIMARY KEY, step_id TEXT NOT NULL UNIQUE REFERENCES agent_trace_steps(id), options TEXT DEFAULT '[]', chosen TEXT NOT NULL,
  rationale TEXT, confidence REAL, decided_by TEXT NOT NULL DEFAULT 'agent');
"""
THIRD = """
CREATE INDEX idx_traces_otel ON agent_traces(json_extract(metadata, '$.otel_trace_id'));
CREATE INDEX idx_evals_at ON agent_trace_evals(evaluated_at);
"""
FOURTH = "CREATE INDEX idx_traces_day ON agent_traces(julianday(started_at), started_at);"
FIFTH = "CREATE INDEX idx_traces_instant ON agent_traces(INSTANT(started_at), started_at);"


class Made:
    """A store as agent-replay leaves it, filled by hand."""

    def __init__(self, folder: Path, version: int = 5) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "traces.db"
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.create_function("INSTANT", 1, str, deterministic=True)
        self.db.create_function("json_extract", 2, lambda *_: None, deterministic=True)  # takes what is no JSON, too
        self.db.executescript("".join((TRACES, SECOND, THIRD, FOURTH, FIFTH)[:version]))
        for number in range(1, version + 1):
            self.db.execute("INSERT INTO schema_version (version) VALUES (?)", (number,))

    def put(self, table: str, **values: object) -> None:
        values = {k: json.dumps(v) if isinstance(v, (dict, list)) else v for k, v in values.items()}
        names = ", ".join(values)
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values()))

    def trace(self, id: str, **values: object) -> None:
        self.put("agent_traces", id=id, **{"agent_name": "bot", "status": "completed", "started_at": "2026-01-01T00:00:00.000Z", **values})  # fmt: skip

    def step(self, trace: str, number: object, **values: object) -> None:
        self.put("agent_trace_steps", id=f"{trace}-{number}", trace_id=trace, step_number=number, **{"step_type": "tool_call", "name": "Bash", "started_at": "2026-01-01T00:00:01.000Z", **values})  # fmt: skip

    def policy(self, name: str, pattern: object, **values: object) -> None:
        self.put("guardrail_policies", id=f"pol_{name}", name=name, match_pattern=pattern, **{"action": "deny", **values})  # fmt: skip

    def done(self) -> Path:
        self.db.close()
        return self.path


def full(folder: Path, version: int = 5) -> Made:
    made = Made(folder, version)
    later: dict[str, Any] = {"session_id": "s1"} if version >= 2 else {}
    made.trace(
        "trc_one", agent_version="2", trigger="cron", status="failed", input="{}", output='"{\\"a\\":1}"', ended_at="2026-01-01T00:01:00.000Z",
        total_duration_ms=5, total_tokens=7, total_cost_usd=0.5, error="why", tags=["x"], metadata={"cwd": "/srv/p", "dialect": "codex"}, created_at="2026-02-01 00:00:00", **later,
    )  # fmt: skip
    made.step(
        "trc_one",
        1,
        input={"command": "ls"},
        output='"42"',
        ended_at="2026-01-01T00:00:02.000Z",
        duration_ms=9,
        tokens_used=3,
        model="m",
        metadata={"k": 1},
    )
    links: dict[str, Any] = {"parent_step_number": 1, "caused_by_step_number": 1} if version >= 2 else {}
    made.step("trc_one", 4, step_type="decision", name="choose", error="e", **links)
    if version >= 2:
        made.put(
            "agent_trace_decisions",
            id="d",
            step_id="trc_one-4",
            options=[{"option": "a", "score": 1}],
            chosen="a",
            rationale="r",
            confidence=0.5,
            decided_by="user",
        )
    made.put(
        "agent_trace_snapshots",
        id="s",
        step_id="trc_one-1",
        context_window="not json",
        environment={"e": 1},
        token_count=4,
    )
    made.put(
        "agent_trace_evals",
        id="evl_1",
        trace_id="trc_one",
        evaluator_type="rubric",
        evaluator_name="n",
        score=0.7,
        passed=1,
        details={"d": 1},
        evaluated_at="2026-03-01T00:00:00.000Z",
    )
    made.trace(
        "trc_two",
        parent_trace_id="trc_one",
        forked_from_step=4,
        status="running",
        tags="broken",
        metadata="broken",
        input="broken",
    )
    made.step("trc_two", 1, name=HOSTILE)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


def run(data: Path, path: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["import", str(path), *words, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "200"})  # fmt: skip


def told(data: Path, path: Path, *words: str) -> dict[str, Any]:
    result = run(data, path, *words, "--json")
    found = json.loads(result.stdout)["files"][0]
    assert isinstance(found, dict)
    return found


def opened(data: Path) -> Store:
    return open_store(explicit(str(data)))


def looks(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    return {
        p.name: (p.stat().st_ino, p.stat().st_mtime_ns, stat.S_IMODE(p.stat().st_mode), hashlib.sha256(p.read_bytes()).hexdigest())
        for p in folder.iterdir()
    }  # fmt: skip


# --- what comes over -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_everything_comes_over(data: Path, tmp_path: Path, version: int) -> None:
    path = full(tmp_path / "old", version).done()
    found = told(data, path)
    assert (found["format"], found["status"], found["error"]) == ("agent-replay", "imported", None)
    assert [t["trace_id"] for t in found["traces"]] == ["trc_one", "trc_two"]
    assert found["records"]["read"] == found["records"]["imported"] == (8 if version >= 2 else 7)
    with opened(data) as store:
        assert store.problems() == []
        one, two = store.get("trc_one"), store.get("trc_two")
        first, second = store.steps(one)
        assert (one.agent_name, one.agent_version, one.trigger, one.status, one.error) == (
            "bot",
            "2",
            "cron",
            "failed",
            "why",
        )
        assert (one.output, one.tags, one.session_id) == ('{"a":1}', ["x"], "s1" if version >= 2 else None)
        assert (one.started_at, one.ended_at, one.created_at) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z", "2026-02-01 00:00:00")  # fmt: skip
        assert (one.total_duration_ms, one.total_tokens, one.total_cost_usd) == (5, 7, 0.5)
        assert (one.metadata["cwd"], one.project, one.dialect) == ("/srv/p", "/srv/p", "codex")
        assert (first.input, first.output, first.duration_ms, first.tokens_used, first.model) == ({"command": "ls"}, "42", 9, 3, "m")  # fmt: skip
        assert (first.ended_at, first.metadata, second.ended_at, second.error) == ("2026-01-01T00:00:02.000Z", {"k": 1}, None, "e")  # fmt: skip
        if version >= 2:
            assert (second.parent_step_number, second.caused_by_step_number) == (1, 1)
            assert second.decision is not None
            assert (second.decision.chosen, second.decision.options, second.decision.decided_by) == ("a", [{"option": "a", "score": 1}], "user")  # fmt: skip
        (snapshot,) = store.snapshots(one)
        assert snapshot.as_dict() == {"context_window": "not json", "environment": {"e": 1}, "tool_state": {}, "token_count": 4}  # fmt: skip
        (evaluation,) = store.evaluations(one)
        assert (evaluation.score, evaluation.passed, evaluation.evaluator_name, evaluation.evaluated_at) == (0.7, True, "n", "2026-03-01T00:00:00.000Z")  # fmt: skip
        assert (two.parent_trace_id, two.forked_from_step, two.status) == ("trc_one", 4, "running")
        assert (two.input, two.tags, [s.name for s in store.steps(two)]) == ({}, [], [HOSTILE])


def test_again_and_replaced(data: Path, tmp_path: Path) -> None:
    made = full(tmp_path / "old")
    assert told(data, made.path)["status"] == "imported"
    assert told(data, made.path)["status"] == "unchanged"
    made.step("trc_two", 2)
    made.done()
    assert told(data, made.path)["status"] == "exists"
    assert told(data, made.path, "--replace")["status"] == "replaced"
    with opened(data) as store:
        assert store.get("trc_two").step_count == 2 and store.traces().total == 2


def test_a_store_with_nothing_but_policies(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    assert "nothing to import" in told(data, made.path)["error"]
    made.policy("p", {"name_contains": "x"})
    found = told(data, made.done())
    assert (found["status"], found["error"], len(found["notes"])) == ("imported", None, 1)


def test_a_trace_that_is_there_by_another_way_is_left_out(data: Path, tmp_path: Path) -> None:
    path = full(tmp_path / "old").done()
    (tmp_path / "one.json").write_text(json.dumps({"id": "trc_two", "agent_name": "mine"}))
    assert CliRunner().invoke(main, ["ingest", str(tmp_path / "one.json"), "--dir", str(data)]).exit_code == 0
    found = told(data, path)
    assert [t["status"] for t in found["traces"]] == ["imported", "exists"] and "`ingest`" in found["problems"][0][
        "reason"
    ]
    with opened(data) as store:
        assert (store.get("trc_two").agent_name, store.problems()) == ("mine", [])


def test_a_trace_without_steps_comes_over(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    made.trace("bare")
    assert told(data, made.done())["status"] == "imported"
    with opened(data) as store:
        assert store.get("bare").step_count == 0


def test_dry_run_makes_nothing(data: Path, tmp_path: Path) -> None:
    made = full(tmp_path / "old")
    made.policy("p", {"name_contains": "x"})
    found = told(data, made.done(), "--dry-run")
    assert found["status"] == "imported" and "would be written" in found["notes"][0] and not data.exists()


def test_rows_that_can_not_be_used_are_named(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    made.trace("ok", status="odd", trigger="odd", total_tokens="many", agent_name=5, tags=[1, "t"])
    for number, values in enumerate(
        [{"step_type": "odd"}, {"name": ""}, {"name": b"\xff"}, {"parent_step_number": 9, "tokens_used": -1}], 1
    ):
        made.step("ok", number, **values)
    made.step("ok", 0)
    made.step("gone", 1)
    made.put("agent_trace_decisions", id="d", step_id="ok-3", chosen="x", confidence=7)
    made.put("agent_trace_evals", id="e", trace_id="ok", evaluator_type="odd", evaluator_name="n", score=1, passed=1)
    made.trace("bad\x1b")
    found = told(data, made.done())
    assert found["status"] == "imported"
    reasons = " | ".join(p["reason"] for p in found["problems"])
    for word in ("odd", "no name", "no step number", "belong to no trace", "confidence", "evaluation", "id that can't"):
        assert word in reasons
    with opened(data) as store:
        trace = store.get("ok")
        assert (trace.status, trace.trigger, trace.agent_name, trace.tags, store.problems()) == ("failed", "manual", "5", ["t"], [])  # fmt: skip
        assert [s.step_number for s in store.steps(trace)] == [3, 4]


def test_a_store_of_many_steps_streams(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    made.db.execute("BEGIN")
    made.trace("big")
    for number in range(1, 5001):
        made.step("big", number)
    made.db.execute("COMMIT")
    assert told(data, made.done())["traces"][0]["steps"] == 5000


# --- the store stays as it is ------------------------------------------------------------------------------------------------


def test_nothing_beside_the_store_is_made_or_changed(data: Path, tmp_path: Path) -> None:
    path = full(tmp_path / "old").done()
    os.chmod(path, 0o440)
    os.chmod(path.parent, 0o550)
    before = looks(path.parent)
    assert told(data, path)["status"] == "imported"
    assert looks(path.parent) == before
    os.chmod(path.parent, 0o750)


@pytest.mark.parametrize("mode", ["wal", "wal-open"])
def test_what_waits_in_the_write_ahead_log_comes_over(data: Path, tmp_path: Path, mode: str) -> None:
    made = Made(tmp_path / "old")
    made.db.execute("PRAGMA journal_mode=WAL")
    made.db.execute("PRAGMA wal_autocheckpoint=0")
    made.trace("late")
    made.step("late", 1)
    if mode == "wal":  # as a killed process leaves it
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("traces.db", "traces.db-wal"):
            (copy / name).write_bytes((tmp_path / "old" / name).read_bytes())
        made.done()
    folder = tmp_path / ("copy" if mode == "wal" else "old")
    before = looks(folder)
    assert "traces.db-wal" in before
    found = told(data, folder / "traces.db")
    assert (found["status"], found["traces"][0]["steps"]) == ("imported", 1)
    assert looks(folder) == before


def test_a_transaction_under_way_is_no_obstacle(data: Path, tmp_path: Path) -> None:
    made = full(tmp_path / "old")
    made.db.execute("PRAGMA journal_mode=WAL")
    made.trace("third")
    made.db.execute("BEGIN EXCLUSIVE")
    made.trace("unfinished")
    assert [t["trace_id"] for t in told(data, made.path)["traces"]] == ["trc_one", "trc_two", "third"]


# --- what is refused ---------------------------------------------------------------------------------------------------------


def test_a_newer_store_is_refused(data: Path, tmp_path: Path) -> None:
    found = told(data, full(tmp_path / "old", 6).done())
    assert found["status"] == "failed" and "6" in found["error"] and "(5)" in found["error"]
    assert not (data / "journal" / "imports").exists() or not list((data / "journal" / "imports").glob("*.jsonl"))


def test_damage_is_told(data: Path, tmp_path: Path) -> None:
    made = full(tmp_path / "old")
    for number in range(10, 400):
        made.step("trc_one", number, output=json.dumps("x" * 200))
    path = made.done()
    whole = path.read_bytes()
    for name, content in (
        ("cut", whole[: len(whole) // 2]),
        ("garbled", whole[:8192] + os.urandom(len(whole) - 8192)),
        ("head only", whole[:100]),
    ):
        path.write_bytes(content)
        result = run(data, path)
        assert result.exit_code == 1 and "damaged" in result.stderr + result.stdout, (name, result.output)
    with opened(data) if (data / "journal").exists() else open_none() as store:
        assert store is None or store.traces().total == 0


class open_none:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def test_other_databases_are_told_apart(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    TraceRecorder(explicit(str(folder))).start_trace("x")
    opened(folder).close()
    assert "guardhook" in told(data, folder / "traces.db")["error"]
    other = tmp_path / "other" / "traces.db"
    other.parent.mkdir()
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    assert "no table agent_traces" in told(data, other)["error"]
    with sqlite3.connect(other) as db:
        db.executescript(
            "CREATE VIEW agent_traces AS SELECT 1 AS id; CREATE TABLE agent_trace_steps (x); CREATE TABLE schema_version (version)"
        )
    assert "no ordinary table" in told(data, other)["error"]


@pytest.mark.parametrize("name", ["Agent_Trace_Evals", "SCHEMA_VERSION", "guardrail_Policies"])
def test_a_view_in_other_letters_is_not_read(data: Path, tmp_path: Path, name: str) -> None:
    """SQLite takes both for the same name, and this view has no end."""
    made = full(tmp_path / "old")
    made.db.execute(f"DROP TABLE {name}")
    made.db.execute(
        f"CREATE VIEW {name} AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'i' AS id, x AS trace_id, x AS version FROM n"
    )
    assert "no ordinary table" in told(data, made.done())["error"]


def test_numbers_without_end_are_none(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    made.trace("t", total_cost_usd=float("inf"), total_duration_ms=float("-inf"))
    made.step("t", 1, duration_ms=float("inf"), tokens_used=1e300, input='{"a": 1e999, "b": [NaN]}')
    made.put("agent_trace_decisions", id="d", step_id="t-1", chosen="x", confidence=float("inf"))
    made.put("agent_trace_snapshots", id="n", step_id="t-1", token_count=float("inf"))
    made.put("agent_trace_evals", id="e", trace_id="t", evaluator_type="rubric", evaluator_name="n", score=float("inf"), passed=1)  # fmt: skip
    told(data, made.done())
    with open_store(explicit(str(data))) as store:
        (trace,) = store.traces().items
        (step,) = store.steps(trace)
        assert (trace.total_cost_usd, trace.total_duration_ms, step.duration_ms) == (None, None, None)
        assert step.decision is not None and step.decision.confidence is None and store.problems() == []


def test_detection() -> None:
    magic = b"SQLite format 3\0"
    assert agent_replay.detect("/x/traces.db", magic) and agent_replay.detect(
        "/x/y.sqlite", magic + b"...CREATE TABLE agent_traces ("
    )
    assert not agent_replay.detect("/x/y.sqlite", magic) and not agent_replay.detect("/x/traces.db", b"{}")


# --- policies -------------------------------------------------------------------------------------------------------------


def test_policies_become_a_file_that_loads_and_is_off(data: Path, tmp_path: Path) -> None:
    made = full(tmp_path / "old")
    made.policy("no-rm", {"step_type": "tool_call", "input_contains": 'rm -rf "/"'}, description="d", priority=7)
    made.policy("number", {"input_contains": 123}, action="warn", enabled=0)
    made.policy("regex", {"name_regex": r"^(get|list)_\w$"}, action="require_review")
    made.policy("typo", {"name_contain": "x"})
    made.policy("empty", {})
    made.policy("no json", "{")
    made.policy("object", {"input_contains": {"a": 1}})
    made.policy("slow", {"name_regex": "["})
    made.policy("odd", {"name_contains": "x"}, action="explode")
    made.policy("long" * 10_000, {})
    made.policy(HOSTILE, {"name_contains": "x"})
    path = made.done()
    found = told(data, path)
    notes = found["notes"]
    assert notes[0].startswith("3 policies were written to ") and "switched off (2 of them were on)" in notes[0]
    assert len(notes) == 9 and max(map(len, notes)) < 400 and all("was not taken" in n for n in notes[1:])
    file = data / "policies" / "agent-replay.toml"
    assert str(file) in notes[0] and stat.S_IMODE(file.stat().st_mode) == 0o600
    loaded = load.load(explicit(str(data)), 0)
    assert loaded.errors == []
    own = {f.policy.name: f.policy for f in loaded.policies if f.layer == "user"}
    assert {n: (p.action, p.priority, p.enabled, p.match.given()) for n, p in own.items()} == {
        "no-rm": ("deny", 7, False, {"step_type": "tool_call", "input_contains": 'rm -rf "/"'}),
        "number": ("warn", 0, False, {"input_contains": "123"}),
        "regex": ("require_review", 0, False, {"name_regex": r"^(get|list)_\w$"}),
    }
    assert file.read_text().count("# it was on") == 2
    result = run(data.parent / "second", path)
    assert "was not taken" in result.stdout and "\x1b" not in result.output and "\x9b" not in result.output


def test_policies_of_the_user_stay(data: Path, tmp_path: Path) -> None:
    made = Made(tmp_path / "old")
    made.trace("t")
    made.policy("p", {"name_contains": "x"})
    told(data, made.path)
    file = data / "policies" / "agent-replay.toml"
    CliRunner().invoke(main, ["guard", "enable", "p", "--dir", str(data)])
    mine = file.read_text()
    assert "enabled = true" in mine
    made.policy("q", {"name_contains": "y"})
    notes = told(data, made.path, "--replace")["notes"]
    assert "1 policies were written" in notes[0] and "'p': there is one of this name already" in notes[1]
    assert file.read_text().startswith(mine.rstrip()) and "q" in file.read_text()
    (data / "policies" / "mine.toml").write_text("[[policy]\n")
    made.policy("r", {"name_contains": "y"})
    notes = told(data, made.done(), "--replace")["notes"]
    assert len(notes) == 1 and "no policy was taken" in notes[0] and "mine.toml" in notes[0]


def test_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = full(tmp_path / "old").done()
    words = [
        sys.executable,
        "-m",
        "guardhook",
        "import",
        "--format",
        "agent-replay",
        str(path),
        "--dir",
        str(tmp_path / "gh"),
    ]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0 and b"trc_one" in done.stdout and done.stderr == b""
