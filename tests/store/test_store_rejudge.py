"""guard test TRACE: a recorded trace under today's policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from store_rig import Journal, event, said

from guardhook.commands import main
from guardhook.journal import line
from guardhook.store import Appender, open_store, rejudge
from guardhook.store.backtest import compiled

HOSTILE = "a\x1b[31m\x07\x9b2J\u202e\nb"
PACK = """
[[policy]]
name = "no-frobnicate"
action = "ACTION"
reason = "Frobnicating is slow."
match = { program = "frobnicate" }

[[policy]]
name = "no-delete"
action = "deny"
match = { step_type = "tool_call", name_contains = "delete" }

[[policy]]
name = "long-answers"
action = "warn"
match = { step_type = "output", output_contains = "lorem" }
"""


def bash(command: str, call: str | None, **more: object) -> dict[str, object]:
    return event("pre_tool", tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def run(journal: Journal, *words: str) -> Result:
    return CliRunner().invoke(
        main, ["guard", "test", *words, "--dir", str(journal.base)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"}
    )


def report(journal: Journal, trace: str, status: int = 0) -> dict[str, Any]:
    result = run(journal, trace, "--json")
    assert result.exit_code == status, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def pack(base: Path, action: str = "deny") -> None:
    (base / "policies").mkdir(parents=True, exist_ok=True)
    (base / "policies" / "mine.toml").write_text(PACK.replace("ACTION", action))


def test_a_recorded_call_that_would_be_denied_today(journal: Journal) -> None:
    journal.add(bash("ls", "1"), bash("frobnicate -f", "2"), bash("frobnicate -f", "2"), bash("ls -l", "3", verdict=said("deny")))  # fmt: skip
    trace = journal.trace().id
    assert report(journal, trace)["deny"] == 0  # what was said then does not count
    pack(journal.base)
    before = sorted(p.name for p in journal.base.iterdir())
    found = report(journal, trace, status=1)
    assert (found["trace_id"], found["steps"], found["judged"], found["deny"]) == (trace, 3, 3, 1)
    (match,) = found["matches"]
    assert (match["step_number"], match["policy"], match["call"]) == (2, "no-frobnicate", "frobnicate -f")
    people = run(journal, trace)
    assert people.exit_code == 1 and "#2 DENY  no-frobnicate: frobnicate -f" in people.stdout
    assert sorted(p.name for p in journal.base.iterdir()) == before  # nothing is recorded


@pytest.mark.parametrize("action", ["require_review", "warn"])
def test_only_a_denial_fails(journal: Journal, action: str) -> None:
    journal.add(bash("frobnicate", "1"))
    pack(journal.base, action)
    assert report(journal, journal.trace().id)[action] == 1


def test_what_was_not_recorded_as_it_was_is_counted_and_never_guessed(journal: Journal) -> None:
    pack(journal.base)
    journal.add(
        bash("frobnicate", "1", line_data={"redacted": ["/tool_input/command"]}), bash("frobnicate", "2", line_data={"cut": ["/tool_input/command"]}),
        bash("frobnicate", "3", line_data={"payload": {}}), bash("frobnicate", "4", line_data={"payload": {"hook_event_name": "Stop"}, "native_event": "Stop"}), bash("ls", "5"),
    )  # fmt: skip
    found = report(journal, journal.trace().id)
    assert (found["judged"], found["unevaluable"]) == (1, 4)
    reasons = {k: v for k, v in found["unevaluable_by_reason"].items() if v}
    assert reasons == {"redacted": 1, "cut": 1, "stripped": 1, "unreadable": 1}
    assert "4 unevaluable (1 redacted, 1 cut, 1 stripped, 1 unreadable)" in run(journal, found["trace_id"]).stdout


def test_where_nothing_can_be_judged_it_is_no_success(journal: Journal) -> None:
    journal.add(bash("ls", "1", line_data={"redacted": ["/x"]}))
    trace = journal.trace().id
    assert run(journal, trace).exit_code == 2 and report(journal, trace, status=2)["judged"] == 0


def put(journal: Journal, name: str, *steps: dict[str, object], **start: object) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot", **start})]
    lines += [("trace.step", {"step_number": n, "step_type": "tool_call", "name": "x", **s}) for n, s in enumerate(steps, 1)]  # fmt: skip
    Appender(journal.folders).put(name, lines, opens=True)


def test_steps_of_recorded_traces_are_judged_as_steps(journal: Journal) -> None:
    pack(journal.base)
    put(
        journal, "trc_rec", {"name": "delete_user"}, {"name": "Bash", "input": {"command": "cd /tmp && frobnicate"}},
        {"step_type": "thought", "name": "delete_user"}, {"step_type": "output", "name": "answer", "output": "lorem ipsum"},
        {"step_type": "guard_check", "name": "delete"}, {"name": "delete", "input": {"key": "sk-ant-api03-" + "a1B2" * 24}},
    )  # fmt: skip
    found = report(journal, "trc_rec", status=1)
    assert [(m["step_number"], m["policy"]) for m in found["matches"]] == [(1, "no-delete"), (2, "no-frobnicate"), (4, "long-answers")]  # fmt: skip
    assert (found["judged"], found["unevaluable_by_reason"]["redacted"]) == (4, 1)


def test_a_step_that_was_cut_is_unevaluable(journal: Journal) -> None:
    name = line.key("recorder", "trc_rec")
    put(journal, "trc_rec", {"name": "fine"}, {"name": "delete", "input": {"text": "x"}})
    (path,) = (journal.base / "journal").glob(f"20*/{name}.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    value = json.loads(lines[2])
    value["data"]["cut"] = ["/input/text"]
    path.write_text("".join([*lines[:2], json.dumps(value) + "\n"]))
    pack(journal.base)
    assert report(journal, "trc_rec")["unevaluable_by_reason"]["cut"] == 1


def test_hostile_text_is_shown_escaped(journal: Journal) -> None:
    pack(journal.base)
    journal.add(bash(f"frobnicate '{HOSTILE}'", "1"))
    result = run(journal, journal.trace().id)
    assert result.exit_code == 1 and result.stdout.replace("\n", "").isprintable()
    assert all(len(row) <= 80 for row in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "status"),
    [(["nope"], 1), (["x", "--command", "ls"], 2), (["x", "--cwd", "/"], 2), (["a", "b"], 2), (["trc"], 2)],
)
def test_mistakes(journal: Journal, words: list[str], status: int) -> None:
    for name in ("trc_a", "trc_b", "x"):
        put(journal, name, {})
    assert run(journal, *words).exit_code == status and run(journal, *words, "--json").exit_code == status


def test_where_nothing_was_recorded(journal: Journal) -> None:
    assert run(journal, "x").exit_code == 1 and not journal.base.exists()


def test_broken_policies_are_told(journal: Journal) -> None:
    journal.add(bash("ls", "1"))
    (journal.base / "policies").mkdir()
    (journal.base / "policies" / "bad.toml").write_text("[[policy]\n")
    result = run(journal, journal.trace().id)
    assert result.exit_code == 2 and "bad.toml" in result.stderr


def test_from_python(journal: Journal) -> None:
    pack(journal.base)
    journal.add(bash("frobnicate", None))
    with open_store(journal.folders) as store:
        (one,) = rejudge.judge(store, journal.folders, store.traces().items[0], compiled(journal.folders))
    assert one.verdict is not None and (one.step_number, one.verdict.action) == (1, "deny")
