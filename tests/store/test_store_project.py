"""Catching up: in any pieces, by any number of processes, over anything that a file may hold."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_rig import SESSION, Journal, event, everything, said

from guardhook.journal import line
from guardhook.store import Foreign, Locked, Missing, Newer, ReadOnly, open_store, project, schema

REPOSITORY = Path(__file__).resolve().parents[2]

_calls = st.sampled_from(["a", "b", "c", None])
_agents = st.sampled_from([None, None, "s1"])
_inputs = st.sampled_from([{"command": "ls"}, {"command": "pwd"}, {"command": "ls", "description": "d"}])
_verdicts = st.sampled_from([None, None, said("deny"), said("warn", exit=0), said("allow", None, "", exit=0)])
_events = st.one_of(
    st.builds(lambda c, a, i, v: event("pre_tool", tool="Bash", call=c, agent=a, given=i, verdict=v), _calls, _agents, _inputs, _verdicts),
    st.builds(lambda c, a, i: event("post_tool", tool="Bash", call=c, agent=a, given=i, tool_response="r"), _calls, _agents, _inputs),
    st.builds(lambda p: event("user_prompt", prompt=p), st.sampled_from(["one", "two", "ü\ud83d"])),
    st.builds(lambda a: event("subagent_start", agent=a, agent_type="t"), st.sampled_from(["s1", "s2"])),
    st.builds(lambda a: event("subagent_stop", agent=a), st.sampled_from(["s1", "s2"])),
    st.sampled_from([
        event("session_start"), event("stop", last_assistant_message="m"), event("session_end"), event("notification", message="n"),
        event("model_response", request_id="r", token_usage={"total_tokens": 5}),
        event("permission_request", tool="Bash", given={"command": "ls"}, verdict=said("deny")),
    ]),
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(_events, max_size=25), cuts=st.lists(st.integers(0, 25), max_size=4), batch=st.integers(1, 7))
def test_the_pieces_in_which_it_is_read_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, events, cuts, batch
) -> None:  # type: ignore[no-untyped-def]
    whole, pieces = (Journal(tmp_path_factory.mktemp("j")) for _ in range(2))
    steps = [0.3 if n % 3 else 1.5 for n in range(len(events))]
    for step, data in zip(steps, events, strict=True):
        whole.add(data, step=step)
    (pieces.base / "journal").mkdir(parents=True)
    for index, (step, data) in enumerate(zip(steps, events, strict=True)):
        if index in cuts:
            pieces.open().close()
        pieces.add(data, step=step)
    (whole.base / "journal").mkdir(parents=True, exist_ok=True)
    connection = schema.connect(f"{whole.base}/traces.db", create=True)
    project.catch_up(connection, whole.folders.journal, batch_lines=batch)
    connection.close()
    with whole.open() as one, pieces.open() as other:
        first = everything(one)
        assert first == everything(other)
        again = project.catch_up(one.connection, whole.folders.journal)
        assert (again.lines, everything(one)) == (0, first)
    os.unlink(f"{whole.base}/traces.db")
    with whole.open() as rebuilt:
        assert everything(rebuilt) == first


def calls(journal: Journal, *names: str) -> None:
    for name in names:
        journal.add(event("pre_tool", tool="Bash", given={"command": name}, call=name))


def test_several_processes_catch_up_at_once(journal: Journal) -> None:
    for session in range(8):
        for number in range(40):
            journal.add(event("pre_tool", tool="Bash", given={"n": number}, call=f"c{number}", session=f"s{session}"))
    code = (
        "import sys\nfrom guardhook.core.folders import explicit\nfrom guardhook.store import open_store\n"
        "with open_store(explicit(sys.argv[1])) as s: print(s.stats()['overall']['steps'])"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(journal.base)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    assert [p.communicate(timeout=60)[0].strip() for p in running] == ["320"] * 5


def test_a_killed_catch_up_leaves_nothing_half_done(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    calls(journal, "a", "b")
    from guardhook.store.tables import Tables

    real = Tables.flush

    def dies(self: Tables) -> None:
        real(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Tables, "flush", dies)
    with pytest.raises(KeyboardInterrupt):
        journal.open()
    monkeypatch.setattr(Tables, "flush", real)
    assert [s.input for s in journal.steps()] == [{"command": "a"}, {"command": "b"}]


def test_killed_processes_lose_and_double_nothing(journal: Journal) -> None:
    for number in range(600):
        journal.add(event("pre_tool", tool="Bash", given={"n": number}, call=f"c{number}"))
    code = (
        "import sys\nfrom guardhook.store import project, schema\n"
        "db = schema.connect(sys.argv[1] + '/traces.db', create=True)\nprint('open', flush=True)\n"
        "project.catch_up(db, sys.argv[1] + '/journal', batch_lines=10, progress=lambda *a: print('.', flush=True))"
    )
    for batches in (1, 7, 19):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(journal.base)], cwd=REPOSITORY, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        for _ in range(batches + 1):
            child.stdout.readline()
        child.kill()
        child.wait()
        child.stdout.close()
    assert [s.input for s in journal.steps()] == [{"n": number} for number in range(600)]


def test_a_catch_up_under_way_elsewhere_is_waited_for(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    calls(journal, "a")
    journal.open().close()
    calls(journal, "b")
    monkeypatch.setattr(schema.connect, "__kwdefaults__", {"busy_ms": 30})
    other = schema.connect(f"{journal.base}/traces.db", create=False)
    busy = schema.connect(f"{journal.base}/traces.db", create=False)
    other.execute("BEGIN IMMEDIATE")
    asked = []

    class Moving:
        """The other process commits a batch between two tries, and is done after three."""

        def execute(self, sql: str) -> object:
            if "cursors" in sql:
                asked.append(sql)
                other.execute("UPDATE cursors SET seq = seq + 1")
                other.execute("COMMIT")
                if len(asked) < 3:
                    found = busy.execute(sql)
                    other.execute("BEGIN IMMEDIATE")
                    return found
            return busy.execute(sql)

    project._begin(Moving())  # type: ignore[arg-type]
    assert len(asked) == 3
    busy.execute("ROLLBACK")
    other.close()
    busy.close()


def test_a_line_under_way_is_read_when_it_is_whole(journal: Journal) -> None:
    calls(journal, "a")
    whole = journal.bytes_of(event("pre_tool", tool="Bash", given={"command": "b"}, call="b"))
    with journal.path().open("ab") as file:
        file.write(whole[:50])
    assert len(journal.steps()) == 1
    with journal.path().open("ab") as file:
        file.write(whole[50:])
    assert len(journal.steps()) == 2


def test_bad_lines_are_told_with_file_and_line_and_the_rest_is_folded(journal: Journal) -> None:
    calls(journal, "a")
    again = journal.path().read_bytes()
    with journal.path().open("ab") as file:
        file.write(b'{"torn\n')
        file.write(journal.bytes_of({"reason": "torn", "bytes": 6}, type="gap"))
        file.write(again)
        file.write(b"null\n[1]\n\xff\xfe\n")
        file.write(b'{"ts":"2026-09-21T14:13:20.000000Z","seq":1e999,"type":"note","data":{}}\n')
        file.write(b'{"ts":"2026-09-21T14:13:20.000000Z","seq":77,"type":"strange.type","data":{}}\n')
        file.write(b"[" * 5000 + b"\n")
        file.write(journal.bytes_of(event("pre_tool", tool="Bash", call="late"), seq=50))
        file.write(journal.bytes_of({}, type="note", seq=78))
        file.write(journal.bytes_of(event("pre_tool", tool="Bash", call="z"), seq=79))
    with journal.open() as store:
        found = [(p.line, p.kind) for p in store.problems()]
        assert store.traces().items[0].step_count == 3
        assert all(p.file == f"{line.day(1_790_000_000_000_000_000)}/{journal.path().name}" for p in store.problems())
    assert found == [
        (2, "unreadable"), (3, "gap"), (4, "duplicate"), (5, "unreadable"), (6, "unreadable"), (7, "unreadable"),
        (8, "unreadable"), (9, "unknown"), (10, "unreadable"), (11, "reordered"),
    ]  # fmt: skip


def test_half_surrogates_and_long_numbers_are_no_obstacle(journal: Journal) -> None:
    journal.add(event("pre_tool", tool="Bash", call="a", given={"command": "x\ud83d", "n": 10**30, "ok": "😀"}))
    assert journal.steps()[0].input == {"command": "x\ufffd", "n": 10**30, "ok": "😀"}


def test_a_rewritten_file_is_folded_anew(journal: Journal) -> None:
    calls(journal, "a", "b")
    journal.steps()
    kept = journal.path().read_bytes().splitlines(keepends=True)[0]
    journal.path().unlink()
    journal.path().write_bytes(kept)
    assert [s.input for s in journal.steps()] == [{"command": "a"}]


def test_a_raised_generation_reads_everything_again(journal: Journal) -> None:
    calls(journal, "a", "b")
    journal.steps()
    text = journal.path().read_text().replace('"command":"b"', '"command":"X"')
    with journal.path().open("r+") as file:
        file.write(text)
    (journal.base / "journal" / "generation").write_text("1")
    assert [s.input for s in journal.steps()] == [{"command": "a"}, {"command": "X"}]


def test_a_file_that_is_gone_takes_its_trace_along(journal: Journal) -> None:
    calls(journal, "a")
    journal.add(event("pre_tool", tool="Bash", session="other"))
    journal.open().close()
    journal.path().unlink()
    with journal.open() as store:
        assert [t.session_id for t in store.traces().items] == ["other"]
        assert store.connection.execute("SELECT COUNT(*) FROM agent_trace_steps").fetchone() == (1,)


def test_files_with_names_that_are_no_text_hide_nothing(journal: Journal) -> None:
    calls(journal, "a")
    folder = os.fsencode(journal.path().parent)
    for name in (b"\xff.jsonl", b"\xed\xa0\x80.jsonl.gz", b"a\nb.jsonl"):
        with open(folder + b"/" + name, "wb") as file:
            file.write(journal.path().read_bytes())
    assert len(journal.steps()) == 1
    with journal.open() as store:
        assert store.traces().total == 1 and not store.problems()
    calls(journal, "b")
    assert len(journal.steps()) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "agent_traces SET state = '{'", "agent_traces SET state = NULL", "agent_traces SET state = X'FF'", "agent_trace_steps SET metadata = '{'",
        "agent_trace_steps SET metadata = '[]'",
    ],
)  # fmt: skip
def test_a_row_that_can_not_be_gone_on_from_makes_the_store_anew(journal: Journal, damage: str) -> None:
    """The event was passed over, and missing from then on."""
    calls(journal, "a")
    with journal.open() as store:
        store.connection.execute(f"UPDATE {damage}")
    journal.add(event("post_tool", tool="Bash", given={"command": "a"}, call="a", tool_response="late"))
    said: list[str] = []
    with journal.open(on_notice=said.append) as store:
        assert not store.problems()
        assert [s.output for s in store.steps(store.traces().items[0])] == ["late"]
    assert len(said) == 1 and "was damaged" in said[0]


def test_a_session_over_two_days_is_one_trace(journal: Journal) -> None:
    calls(journal, "a")
    second = journal.path(day="2026-12-24")
    second.parent.mkdir()
    second.write_bytes(
        journal.bytes_of(event("post_tool", tool="Bash", given={"command": "a"}, call="a", tool_response="late"))
    )
    (step,) = journal.steps()
    assert step.output == "late"


def test_nothing_recorded_is_said_and_nothing_is_created(tmp_path: Path) -> None:
    from guardhook.core.folders import explicit

    with pytest.raises(Missing):
        open_store(explicit(str(tmp_path / "no")))
    assert list(tmp_path.iterdir()) == []


def test_files_are_private(journal: Journal) -> None:
    calls(journal, "a")
    with journal.open():
        assert {f.name: oct(f.stat().st_mode & 0o777) for f in journal.base.glob("traces.db*")} == dict.fromkeys(
            ("traces.db", "traces.db-wal", "traces.db-shm"), "0o600"
        )
    os.chmod(f"{journal.base}/traces.db", 0o640)
    journal.open().close()
    assert os.stat(f"{journal.base}/traces.db").st_mode & 0o777 == 0o640


def test_a_damaged_store_is_kept_aside_and_rebuilt(journal: Journal) -> None:
    calls(journal, "a")
    journal.open().close()
    for name in ("traces.db-wal", "traces.db-shm"):
        (journal.base / name).unlink(missing_ok=True)
    (journal.base / "traces.db").write_bytes(b"this is no database" * 1000)
    told: list[str] = []
    with journal.open(on_notice=told.append) as store:
        assert store.traces().total == 1
    assert len(told) == 1 and "rebuilt" in told[0]
    assert len(list(journal.base.glob("traces.db.damaged-*"))) == 1


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE agent_trace_parts",
        "DROP TABLE cursors",
        "ALTER TABLE agent_trace_steps DROP COLUMN model",
        "DELETE FROM schema_version WHERE version > 1",  # the tables of version 2 are there already
        "DELETE FROM schema_version",
        "UPDATE schema_version SET version = 'later'",
        "UPDATE sources SET seen = 'no list'",
    ],
)
def test_a_store_whose_tables_are_not_its_versions_is_rebuilt(journal: Journal, harm: str) -> None:
    calls(journal, "a")
    with journal.open() as store:
        store.connection.execute(harm)
    calls(journal, "b")
    told: list[str] = []
    with journal.open(on_notice=told.append) as store:
        assert store.traces().items[0].step_count == 2
    assert len(told) == 1 and "rebuilt" in told[0]


def test_a_store_of_version_1_goes_on_where_it_was(journal: Journal) -> None:
    calls(journal, "a")
    with journal.open() as store:
        store.connection.executescript("DROP TABLE agent_trace_parts; DELETE FROM schema_version WHERE version = 2")
    calls(journal, "b")
    told: list[str] = []
    with journal.open(on_notice=told.append) as store:
        assert schema.version(store.connection) == schema.VERSION and told == []
        assert store.traces().items[0].step_count == 2


def test_where_the_store_can_not_be_written_the_journal_is_read_if_that_is_asked_for(journal: Journal) -> None:
    calls(journal, "a")
    (journal.base / "traces.db").mkdir()
    with pytest.raises(ReadOnly):
        journal.open()
    told: list[str] = []
    with journal.open(temporary=True, on_notice=told.append) as store:
        assert store.traces().total == 1
    assert len(told) == 1 and "can't be written" in told[0]
    assert sorted(p.name for p in journal.base.iterdir()) == ["journal", "traces.db"]


@pytest.mark.parametrize("ticket", [1 << 70, -(1 << 70), 1 << 63, 0])
def test_tickets_that_are_none_stop_no_other_line(journal: Journal, ticket: int) -> None:
    calls(journal, "a")
    data = event("pre_tool", tool="Bash", given={"command": "x"}, call="t")
    with journal.path().open("ab") as file:
        file.write(journal.bytes_of(data, seq=ticket))
    journal.seq.clear()
    journal.open().close()
    journal.seq[journal.path().stem] = 1_000
    calls(journal, "b")
    with journal.open() as store:
        assert store.traces().items[0].step_count == 2
        assert "unknown" in {p.kind for p in store.problems()}


def test_a_newer_store_is_refused_with_both_versions(journal: Journal) -> None:
    calls(journal, "a")
    with journal.open() as store:
        store.connection.execute("INSERT INTO schema_version (version) VALUES (99)")
    before = (journal.base / "traces.db").read_bytes()
    with pytest.raises(Newer, match=rf"99.*{schema.VERSION}"):
        journal.open()
    assert (journal.base / "traces.db").read_bytes() == before


def test_a_database_of_something_else_is_left_alone(journal: Journal) -> None:
    calls(journal, "a")
    db = sqlite3.connect(f"{journal.base}/traces.db")
    db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(Foreign):
        journal.open()


def test_a_locked_store_is_called_locked(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    calls(journal, "a")
    journal.open().close()
    calls(journal, "b")
    monkeypatch.setattr(schema.connect, "__kwdefaults__", {"busy_ms": 50})
    db = sqlite3.connect(f"{journal.base}/traces.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(Locked, match="locked"):
        journal.open()
    db.execute("ROLLBACK")
    db.close()
    assert len(journal.steps()) == 2


def test_links_in_the_journal_are_not_followed(journal: Journal) -> None:
    calls(journal, "a")
    elsewhere = journal.base / "elsewhere.jsonl"
    shutil.copy(journal.path(), elsewhere)
    link = journal.path().with_name("claude-code-link.jsonl")
    link.symlink_to(elsewhere)
    with journal.open() as store:
        assert store.traces().total == 1


_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["action", "policy", "command", "x", "total_tokens"]), below, max_size=3),
    max_leaves=6,
)  # fmt: skip
_types = st.sampled_from(
    ["hook.received", "hook.received", "trace.start", "trace.step", "trace.step_end", "trace.decision", "trace.snapshot", "trace.end", "eval.result", "gap", "note", "x"]
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(_types, st.dictionaries(st.sampled_from([
    "event", "call", "agent", "tool", "payload", "verdict", "redacted", "cut", "effects", "dialect", "run", "segment", "closes", "trace", "root", "session",
    "native_event", "kind", "canary",
]), _anything | st.sampled_from(["pre_tool", "post_tool", "user_prompt", "model_response", "subagent_stop", "t", "codex", "cline"]) | st.dictionaries(st.sampled_from([
    "agent_name", "step_number", "step_type", "name", "tokens_used", "status", "started_at", "metadata", "chosen", "evaluator_type", "evaluator_name", "score",
    "token_usage", "tool_input", "tool_response", "duration_ms", "prompt", "tool_calls", "llm_response",
]), _anything | st.sampled_from(["output", "rubric", "a", 1, 2]), max_size=8), max_size=12)), max_size=12))  # fmt: skip
def test_nothing_that_a_line_can_hold_stops_the_others(tmp_path_factory: pytest.TempPathFactory, lines) -> None:  # type: ignore[no-untyped-def]
    journal = Journal(tmp_path_factory.mktemp("hostile"))
    for number, (kind, data) in enumerate(lines, 1):
        path = journal.path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(line.build(journal.clock + number, number, kind, {}, line.dumps(data)[1:]))
    journal.seq[line.key("claude-code", SESSION)] = len(lines)
    journal.add(event("pre_tool", tool="Bash", given={"command": "last"}, call="last"))
    with journal.open() as store:
        first = everything(store)
        assert any(s.input == {"command": "last"} for t in store.iterate() for s in store.steps(t))
    (journal.base / "traces.db").unlink()
    with journal.open() as store:
        assert everything(store) == first


def test_a_file_with_two_names_is_told_once_however_often_it_is_met(journal: Journal) -> None:
    calls(journal, "a")
    journal.add(event("pre_tool", tool="Bash", session="other"))
    os.link(journal.path(session="other"), journal.base / "second-name")
    for _ in range(3):
        with journal.open() as store:
            assert store.traces().total == 1
            assert [(p.kind, p.file) for p in store.problems()] == [
                ("unreadable", f"{line.day(1_790_000_000_000_000_000)}/{journal.path(session='other').name}")
            ]
    (journal.base / "second-name").unlink()
    with journal.open() as store:
        assert store.traces().total == 2


def test_a_file_can_not_write_into_another_files_trace(journal: Journal) -> None:
    calls(journal, "a")
    name = journal.trace().id
    journal.add(
        {"session": "evil", "trace": name, "event": {"step_number": 9, "step_type": "output", "name": "forged"}},
        type="trace.step",
    )
    with journal.open() as store:
        assert store.get(name).step_count == 1
        assert [p.detail for p in store.problems()] == [f"the trace {name} belongs to another file"]


@given(st.lists(st.integers(1, 40), max_size=40))
def test_tickets_are_known_again_and_late_ones_told(tickets: list[int]) -> None:
    seen: list[list[int]] = []
    known: set[int] = set()
    for ticket in tickets:
        expected = "again" if ticket in known else "late" if known and ticket < max(known) else "new"
        assert project.mark(seen, ticket) == expected
        known.add(ticket)
        assert {n for low, high in seen for n in range(low, high + 1)} == known
