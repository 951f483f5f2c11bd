"""What of a store is made anew when files of the journal are rewritten: the sessions in question, and no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from store_rig import SESSION, Journal, event, everything

from guardhook.journal import generation, line
from guardhook.store import fold

OTHER = "another-session"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "gh")
    for session in (SESSION, OTHER):
        made.add(event("pre_tool", tool="Bash", given={"command": "ls"}, call="1", session=session))
    made.open().close()
    return made


def marked(journal: Journal) -> None:
    with journal.open() as store:
        store.connection.execute("UPDATE agent_trace_steps SET name = 'marked'")


def anew(journal: Journal) -> list[str]:
    with journal.open() as store:
        return sorted(
            str(t.session_id) for t in store.traces().items if any(s.name != "marked" for s in store.steps(t))
        )


def rewrite(journal: Journal, session: str = SESSION) -> None:
    """The same file with other words of the same length: only the generation tells."""
    path = journal.path(session=session)
    text = path.read_bytes().replace(b'"ls"', b'"id"')
    with path.open("r+b") as file:
        file.write(text)


def root(journal: Journal) -> str:
    return journal.folders.journal


def key(session: str) -> str:
    return line.key("claude-code", session)


def commands(journal: Journal) -> dict[str, object]:
    with journal.open() as store:
        return {str(t.session_id): next(store.steps(t)).input for t in store.traces().items}


def test_only_the_session_that_was_rewritten_is_folded_anew(journal: Journal) -> None:
    marked(journal)
    generation.Rewriting(root(journal)).of(key(SESSION))
    rewrite(journal)
    assert anew(journal) == [SESSION]
    assert commands(journal) == {SESSION: {"command": "id"}, OTHER: {"command": "ls"}}


def test_several_generations_at_once(journal: Journal) -> None:
    journal.add(event("pre_tool", tool="Bash", session="third"))
    marked(journal)
    for session in (SESSION, "third"):
        generation.Rewriting(root(journal)).of(key(session))
    rewrite(journal)
    assert generation.current(root(journal)) == 2
    assert anew(journal) == [SESSION, "third"]
    marked(journal)
    generation.Rewriting(root(journal)).of(key(OTHER))  # those of before are not in question any more
    assert anew(journal) == [OTHER]


def test_one_command_raises_the_generation_once_and_for_a_session_again_each_time(journal: Journal) -> None:
    work = generation.Rewriting(root(journal))
    work.of(key(SESSION))
    work.of(key(OTHER))
    assert generation.current(root(journal)) == 1
    work.of(key(SESSION))
    assert generation.current(root(journal)) == 2
    assert generation.renewed(root(journal), 0, 2) == {key(SESSION), key(OTHER)}
    assert generation.renewed(root(journal), 1, 2) == {key(SESSION)}


@pytest.mark.parametrize("log", [None, b"", b"1 \n", b"x\n", b"2 other\n", b"1 *\n", b"1 \xff\n", b"one other\n"])
def test_a_generation_that_nothing_is_told_of_may_be_any_session_s(journal: Journal, log: bytes | None) -> None:
    marked(journal)
    if log is not None:
        Path(root(journal), generation.LOG).write_bytes(log)
    Path(root(journal), generation.NUMBER).write_text("1\n")
    assert anew(journal) == sorted([SESSION, OTHER])


def test_a_line_of_the_log_that_was_cut_off_hides_no_other(journal: Journal) -> None:
    marked(journal)
    Path(root(journal), generation.LOG).write_bytes(b"1 claude-code-12")
    generation.Rewriting(root(journal)).of(key(SESSION))
    assert anew(journal) == [SESSION]


def test_a_log_that_grew_long_is_begun_anew(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_LOG_BYTES", 200)
    for _ in range(30):
        generation.Rewriting(root(journal)).of(key(OTHER))
    assert os.path.getsize(Path(root(journal), generation.LOG)) < 400
    assert anew(journal) == sorted([SESSION, OTHER])  # the store is older than the log
    marked(journal)
    generation.Rewriting(root(journal)).of(key(SESSION))
    assert anew(journal) == [SESSION]


def test_a_session_with_a_strange_name_counts_as_any(journal: Journal) -> None:
    generation.Rewriting(root(journal)).of("a b\nc")
    assert generation.renewed(root(journal), 0, 1) is None


@pytest.mark.parametrize("number", ["9" * 32, "-3", "", "x", "9223372036854775808"])
def test_a_number_that_is_none_is_nought(journal: Journal, number: str) -> None:
    Path(root(journal), generation.NUMBER).write_text(number)
    assert generation.current(root(journal)) == 0
    assert commands(journal) == {SESSION: {"command": "ls"}, OTHER: {"command": "ls"}}
    generation.Rewriting(root(journal)).of(key(SESSION))
    assert generation.current(root(journal)) == 1


def test_lines_that_were_another_file_s_count_when_that_one_is_gone(journal: Journal) -> None:
    """As in a store that is made anew."""
    name = fold.trace_id(key(SESSION))
    journal.add({"trace": name, "session": "told", "event": {"agent_name": "bot"}}, type="trace.start")
    with journal.open() as store:
        assert store.get(name).agent_name == "claude-code"
        assert [p.detail for p in store.problems()] == [f"the trace {name} belongs to another file"]
    generation.Rewriting(root(journal)).of(key(SESSION))
    journal.path().unlink()
    with journal.open() as store:
        assert store.get(name).agent_name == "bot" and not store.problems()
        kept = everything(store)
    (journal.base / "traces.db").unlink()
    with journal.open() as store:
        assert everything(store) == kept


def test_following_one_session_while_another_is_rewritten(journal: Journal) -> None:
    from guardhook.store.watch import Follower

    with journal.open() as store:
        follower = Follower(store, store.get(SESSION), root(journal))
        assert [s.step.step_number for s in follower.look()] == [1]
        store.connection.execute("UPDATE agent_trace_steps SET name = 'marked'")
        generation.Rewriting(root(journal)).of(key(OTHER))
        rewrite(journal, OTHER)
        journal.add(event("pre_tool", tool="Bash", given={"command": "new"}, call="2"))
        assert [s.step.step_number for s in follower.look()] == [2]
        assert [s.name for s in store.steps(follower.trace)] == ["marked", "Bash"]
    assert anew(journal) == sorted([SESSION, OTHER])  # SESSION has a new step
    assert commands(journal)[OTHER] == {"command": "id"}
