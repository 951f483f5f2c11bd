"""`guardhook account`: from the store and from files the same, what it shows, when it fails, and what is recorded when a session stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from archive_rig import Journal, asked, called, event, guardhook, happened, said_, session, shell, told, turn

from guardhook.archive import plain
from guardhook.archive.packing import pack_recording
from guardhook.rollout import render, runs
from guardhook.store import Appender


def trace_of(journal: Journal) -> str:
    return str(told(guardhook(journal, "list", "--json"))["items"][0]["id"])


def write(path: Path, value: object) -> str:
    path.write_bytes(plain.encode(value))
    return str(path)


def test_98_stored_archived_packed(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    trace = trace_of(journal)
    told(guardhook(journal, "archive", "save", trace, "--to", str(tmp_path / "plain"), "--json"))
    told(guardhook(journal, "archive", "save", trace, "--to", str(tmp_path / "packed"), "--packed", "--json"))
    told(guardhook(journal, "archive", "save", trace, "--to", str(tmp_path / "x.zip"), "--json"))
    (plain_file,) = (tmp_path / "plain").iterdir()
    (packed_file,) = (tmp_path / "packed").iterdir()
    rollout = tmp_path / "r.jsonl"
    rollout.write_bytes(guardhook(journal, "archive", "open", str(plain_file), "--events").stdout_bytes)
    for words in (("--json",), ("--standing", "--json"), ("--session", "--json"), ("--markdown",), ()):
        outputs = [guardhook(journal, "account", name, *words).stdout for name in (trace, str(plain_file), str(packed_file), str(tmp_path / "x.zip"), str(rollout))]  # fmt: skip
        assert outputs[0] and all(o == outputs[0] for o in outputs), words


def test_turns_of_a_run(journal: Journal) -> None:
    session(journal, end=False)
    journal.add(event("user_prompt", prompt="and more"), event("stop", last_assistant_message="no"))
    trace = trace_of(journal)
    assert told(guardhook(journal, "account", trace, "--json"))["run"]["turn"] == 2
    assert told(guardhook(journal, "account", trace, "--turn", "1", "--json"))["question"]["value"] == "tidy up the project"  # fmt: skip
    found = told(guardhook(journal, "account", trace, "--session", "--json"))
    assert [t["standing"] for t in found["turns"]] == ["not-sure", "not-assessed"] and found["standing"] == "not-sure"
    text = guardhook(journal, "account", trace, "--session").stdout
    assert "2 turns" in text and "--- turn 2 ---" in text
    for bad in ("0", "9", "x", "-1", "٣", ""):
        assert guardhook(journal, "account", trace, "--turn", bad).exit_code == 2


def test_declarations(journal: Journal, tmp_path: Path) -> None:
    name = write(tmp_path / "r.json", turn(asked(), shell("pytest", 1), called("s", output='{"hits":[]}'), said_()))
    report = tmp_path / "d.toml"
    report.write_text(
        '[[verify]]\nid = "t"\nlabel = "my tests"\nargv = ["pytest"]\n[[tools]]\nname = "s"\nrows_at = "hits"\n'
    )
    text = guardhook(journal, "account", name, "--declarations", str(report)).stdout
    assert "my tests ran and reported failure (exit code 1).  [app]" in text and "without saying what was searched" in text  # fmt: skip
    report.write_text(json.dumps({"verify": [{"id": "t", "glob": "py*"}]}))
    assert "t ran and reported failure" in guardhook(journal, "account", name, "--declarations", str(report)).stdout
    journal.base.mkdir(parents=True)
    (journal.base / "config.toml").write_text('[[account.verify]]\nid = "t"\nlabel = "our tests"\nargv = ["pytest"]\n')
    text = guardhook(journal, "account", name).stdout
    assert "our tests ran and reported failure (exit code 1).  [harness]" in text
    for bad in ("[[verify]]\nid = 3\n", "{", "[[", '{"verify": [{}]}'):
        report.write_text(bad)
        assert guardhook(journal, "account", name, "--declarations", str(report)).exit_code in (1, 2)
    (journal.base / "config.toml").write_text("[account]\nverify = 3\n")
    assert guardhook(journal, "account", name).exit_code == 2


def test_fail_on(journal: Journal, tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.json", turn(asked(), called("mcp__d__s", output=[]), said_()))
    warn = write(tmp_path / "warn.json", turn(asked(), shell("make", 2), said_()))
    good = write(tmp_path / "good.json", turn(asked(), called("mcp__d__s", output=[1]), said_()))
    for name, word, status in (
        (bad, "bad", 3), (bad, "warn", 3), (bad, "not-sure", 3), (warn, "warn", 3), (warn, "bad", 0), (warn, "not-sure", 3), (good, "warn", 0),
        (good, "not-sure", 0),
    ):  # fmt: skip
        assert guardhook(journal, "account", name, "--fail-on", word).exit_code == status, (name, word)
        assert guardhook(journal, "account", name, "--session", "--fail-on", word, "--json").exit_code == status
    assert guardhook(journal, "account", warn, "--standing", "--fail-on", "not-sure").exit_code == 3
    assert guardhook(journal, "account", warn, "--standing", "--fail-on", "bad").exit_code == 2


def test_show_and_paths(journal: Journal) -> None:
    session(journal)
    trace = trace_of(journal)
    assert guardhook(journal, "account", trace, "--show", "event:0:data/prompt").stdout == "tidy up the project\n"
    for pointer, why in (("event:0:data/session", "not-allowed"), ("event:999:data/prompt", "missing"), ("x", "missing")):  # fmt: skip
        result = guardhook(journal, "account", trace, "--show", pointer)
        assert result.exit_code == 1 and why in result.stderr
        assert told(guardhook(journal, "account", trace, "--show", pointer, "--json")) == {"withheld": why}
    assert "a.py" in guardhook(journal, "account", trace, "--json").stdout
    assert "a.py" not in guardhook(journal, "account", trace, "--json", "--paths", "hidden").stdout


def test_no_answer(journal: Journal, tmp_path: Path) -> None:
    name = write(tmp_path / "r.json", turn(asked()))
    assert told(guardhook(journal, "account", name, "--standing", "--json")) is None
    assert "no answer" in guardhook(journal, "account", name, "--standing").stdout
    assert "The record shows no answer." in guardhook(journal, "account", name).stdout


@pytest.mark.parametrize(
    "words",
    [("--standing", "--session"), ("--markdown", "--json"), ("--markdown", "--standing"), ("--session", "--turn", "1"), ("--show", "x", "--standing"),
     ("--paths", "some"), ("--fail-on", "good"), ("--nope",)],
)  # fmt: skip
def test_words_that_do_not_go_together(journal: Journal, words: tuple[str, ...]) -> None:
    session(journal)
    assert guardhook(journal, "account", trace_of(journal), *words).exit_code == 2


def test_files_that_are_none(journal: Journal, tmp_path: Path) -> None:
    for data in (b"", b"[]", b"{}", b'{"events":3}', b'{"format":"other"}', b"\xff", b"[" * 9999):
        (tmp_path / "x.json").write_bytes(data)
        result = guardhook(journal, "account", str(tmp_path / "x.json"))
        assert result.exit_code == 1 and "Traceback" not in result.output
    (tmp_path / "two").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "two" / f"{name}.json", happened())
    assert "holds 2 archives" in guardhook(journal, "account", str(tmp_path / "two") + "/").stderr
    big = write(tmp_path / "big.json", pack_recording(turn(asked("x" * 500), said_("x" * 500))))
    assert guardhook(journal, "account", big, "--max-bytes", "900").exit_code == 1
    assert guardhook(journal, "account", "nosuch").exit_code == 1


def test_hostile_text_never_reaches_the_terminal(journal: Journal, tmp_path: Path) -> None:
    evil = "\x1b]0;x\x07\u202e\x9b31m"
    name = write(tmp_path / "r.json", turn(asked(evil), called(f"T{evil}", error=evil), shell(evil), said_(evil)))
    for words in ((), ("--json",), ("--markdown",), ("--session",), ("--standing",), ("--show", "event:0:data/prompt")):
        shown = guardhook(journal, "account", name, *words).output
        assert not set("\x1b\x07\u202e\x9b") & set(shown), words


# --- recorded when a session stops -------------------------------------------------------------------------------------


def standings(journal: Journal, trace: str) -> list[dict[str, Any]]:
    found = told(guardhook(journal, "show", trace, "--json", "--evals"))["evals"]
    return sorted((e for e in found if e["evaluator_name"] == "standing"), key=lambda e: e["details"]["turn"])


def test_standing_is_recorded_when_a_session_stops(journal: Journal) -> None:
    session(journal)
    trace = trace_of(journal)
    assert standings(journal, trace) == []
    (journal.base / "config.toml").write_text("[archive]\nstanding = true\n")
    assert standings(journal, trace) == []  # it ended long before this was switched on
    journal.add(event("user_prompt", prompt="again"), event("pre_tool", tool="Bash", given={}, call="z"))
    assert len(standings(journal, trace)) == 0  # it runs
    journal.add(event("post_tool", tool="Bash", given={}, call="z", tool_response="x"), event("stop", last_assistant_message="ok"))  # fmt: skip
    first, second = standings(journal, trace)
    assert (first["details"]["turn"], second["details"]["turn"]) == (1, 2)
    assert second["details"]["standing"] == "not-assessed" and second["evaluator_type"] == "policy_check"
    same = told(guardhook(journal, "account", trace, "--turn", "1", "--standing", "--json"))
    assert {k: v for k, v in first["details"].items() if k not in ("run_id", "turn")} == {k: v for k, v in same.items() if k != "notBuilt"}  # fmt: skip
    assert first["passed"] is False and first["score"] == 0.0
    assert len(standings(journal, trace)) == 2
    journal.add(event("notification", notification_type="idle_prompt"))
    assert len(standings(journal, trace)) == 2
    (journal.base / "standing.json").unlink()
    assert len(standings(journal, trace)) == 2
    (journal.base / "traces.db").unlink()
    assert len(standings(journal, trace)) == 2  # from the journal


def test_standings_of_programs_are_not_recorded(journal: Journal) -> None:
    Appender(journal.folders).put("mine", [("trace.start", {"agent_name": "bot"}), ("trace.end", {})], opens=True, closes=True)  # fmt: skip
    (journal.base / "config.toml").write_text("[archive]\nstanding = true\n")
    assert standings(journal, "mine") == []


def test_a_broken_setting_stops_no_command(journal: Journal) -> None:
    session(journal)
    (journal.base / "config.toml").write_text("[archive]\nstanding = true\n[account]\nverify = 3\n")
    result = guardhook(journal, "list")
    assert result.exit_code == 0 and "standings could not be recorded" in result.stderr
    with journal.open() as store:
        assert len(list(render.render(journal.folders, runs.find_in(store, trace_of(journal))))) > 5
