"""backtest: recorded calls under other policies, through the command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from store_rig import START, Journal, event, said

from guardhook.commands import main
from guardhook.store.backtest import change
from guardhook.store.instants import iso_ms

HOSTILE = "a\x1b[31m\x07\x9b2J\u202e\nb"
PACK = """
[[policy]]
name = "no-frobnicate"
action = "ACTION"
reason = "Frobnicating is slow."
match = { program = "frobnicate" }
"""


def bash(command: str, call: str, **more: object) -> dict[str, object]:
    return event("pre_tool", tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def run(journal: Journal, *words: str) -> Result:
    return CliRunner().invoke(
        main, ["backtest", "--since", "2020-01-01", *words, "--dir", str(journal.base)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"}
    )  # fmt: skip


def report(journal: Journal, *words: str, status: int = 0) -> dict[str, Any]:
    result = run(journal, "--json", *words)
    assert result.exit_code == status, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def pack(folder: Path, action: str = "deny") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.toml").write_text(PACK.replace("ACTION", action))
    return str(folder)


def test_what_a_pack_would_have_denied_with_the_sessions(journal: Journal, tmp_path: Path) -> None:
    journal.add(
        bash("ls", "1"), bash("frobnicate -f", "2"), bash("frobnicate", "2"), bash("frobnicate x", "3", session="other")
    )
    before = sorted(p.name for p in journal.base.iterdir())
    found = report(journal, "--policies", pack(tmp_path / "pack"))
    assert (found["against"], found["calls"], found["judged"], found["sessions"]) == ("policies", 3, 3, 2)
    assert (found["newly_denied"], found["newly_allowed"], found["unchanged"]) == (2, 0, 1)
    (policy,) = found["policies"]
    assert policy["policy"] == "no-frobnicate" and [s["calls"] for s in policy["sessions"]] == [1, 1]
    assert {c["call"] for c in found["changes"]} == {"frobnicate -f", "frobnicate x"}
    assert found["changes"][0]["reason"] == "Frobnicating is slow." and found["changes_omitted"] == 0
    assert report(journal, "--policies", pack(tmp_path / "pack"), "--limit", "1")["changes_omitted"] == 1
    assert sorted(p.name for p in journal.base.iterdir()) == before  # reading leaves nothing


def test_what_would_have_been_allowed_again(journal: Journal, tmp_path: Path) -> None:
    pack(journal.base / "policies")
    journal.add(bash("frobnicate", "1"))
    other = tmp_path / "other"
    pack(other, "warn")
    found = report(journal, "--policies", str(other))
    assert found["newly_allowed"] == 1 and found["policies"][0]["policy"] == "no-frobnicate"
    pack(other, "require_review")
    assert report(journal, "--policies", str(other))["eased"] == 1
    report(journal, "--policies", str(other), "--fail-on", "looser", status=1)
    report(journal, "--policies", str(other), "--fail-on", "stricter")


def test_without_policies_today_is_compared_with_what_was_said_then(journal: Journal) -> None:
    pack(journal.base / "policies")
    journal.add(
        bash("frobnicate", "1"),
        bash("frobnicate", "2", verdict=said("deny")),
        bash("ls", "3", verdict=said("deny", "old-rule")),
    )
    found = report(journal)
    assert (found["against"], found["newly_denied"], found["newly_allowed"], found["unchanged"]) == (
        "recorded",
        1,
        1,
        1,
    )
    assert {p["policy"] for p in found["policies"]} == {"no-frobnicate", "old-rule"}
    report(journal, "--fail-on", "stricter", status=1)


def test_what_is_not_there_any_more_is_never_guessed(journal: Journal, tmp_path: Path) -> None:
    for name, own in (
        ("redacted", {"redacted": ["/tool_input/command"]}), ("cut", {"cut": ["/tool_input/command"]}), ("stripped", {"stripped": ["tool_input"]}),
    ):  # fmt: skip
        journal.add(bash("frobnicate", name, line_data=own))
    journal.add(
        bash("frobnicate", "odd", dialect="unheard-of"), bash("frobnicate", "canary", line_data={"canary": True})
    )
    found = report(journal, "--policies", pack(tmp_path / "pack"))
    assert found["calls"] == found["unevaluable"] == 4 and found["judged"] == found["newly_denied"] == 0
    assert {k: n for k, n in found["unevaluable_by_reason"].items() if n} == {
        "redacted": 1,
        "cut": 1,
        "stripped": 1,
        "unreadable": 1,
    }
    report(journal, "--fail-on", "stricter", status=2)  # nothing was judged: not green


def test_since_and_project_narrow(journal: Journal, tmp_path: Path) -> None:
    journal.add(bash("frobnicate", "1"))
    words = ["--policies", pack(tmp_path / "pack")]
    assert report(journal, *words, "--since", "2036-01-01")["calls"] == 0
    assert report(journal, *words, "--project", str(tmp_path))["calls"] == 0
    assert report(journal, *words, "--project", "/home/user/project")["calls"] == 1


def test_since_counts_calls_of_runs_that_began_before(journal: Journal, tmp_path: Path) -> None:
    """A run stays in the file of the day on which it began."""
    journal.add(bash("frobnicate", "1"))
    journal.add(bash("frobnicate", "2"), step=3 * 86_400)
    words = ["--policies", pack(tmp_path / "pack"), "--since", iso_ms(journal.clock // 1000 - 3_600_000_000)]
    os.utime(journal.path(), (journal.clock / 1e9, journal.clock / 1e9))
    assert report(journal, *words)["calls"] == 1
    os.utime(journal.path(), (START / 1e9, START / 1e9))  # nothing was written since that day: the file is not read
    assert report(journal, *words)["calls"] == 0


def test_files_that_can_not_be_read_are_told_and_fail_a_gate(journal: Journal, tmp_path: Path) -> None:
    words = ["--policies", pack(tmp_path / "pack")]
    journal.add(bash("frobnicate", "1"), bash("frobnicate", "2", session="other"))
    (path := journal.path()).unlink()
    path.symlink_to("/etc/passwd")
    found = report(journal, *words)
    assert (found["calls"], found["newly_denied"]) == (1, 1)
    assert len(found["unread"]) == 1 and found["unread"][0].startswith(f"{path.parent.name}/{path.stem}: ")
    assert "left out: journal/" in run(journal, *words).stderr
    report(journal, *words, "--fail-on", "looser", status=2)


def test_the_user_database_is_asked_once_for_all_calls(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for every call whose policies want to know the home folder, about a millisecond each."""
    import pwd

    asked: list[int] = []
    real = pwd.getpwuid

    def counted(number: int) -> pwd.struct_passwd:
        asked.append(number)
        return real(number)

    for number in range(20):
        journal.add(bash(f"rm -rf ~/x{number}", str(number)))
    monkeypatch.setattr(pwd, "getpwuid", counted)
    assert report(journal, "--policies", pack(tmp_path / "pack"))["judged"] == 20
    assert len(asked) < 10  # once here, and whatever finding the folders asks


def test_strict_can_be_tried(journal: Journal) -> None:
    journal.add(bash("ls", "1"))
    assert report(journal, "--preset", "strict")["judged"] == 1


def test_people_read_a_few_lines_and_no_control_characters(journal: Journal, tmp_path: Path) -> None:
    journal.add(*(bash(f"frobnicate {n} 'a\r\n\tb'", str(n)) for n in range(5)))
    journal.add(bash("ls", "r", line_data={"redacted": ["/tool_input"]}))
    result = run(journal, "--policies", pack(tmp_path / "pack"))
    assert result.exit_code == 0 and result.stdout.replace("\n", "").isprintable()
    assert "5 newly denied, 0 newly allowed." in result.stdout and "1 unevaluable (1 redacted)" in result.stdout
    assert "no-frobnicate: 5 newly denied, in 1 session, on 1 day" in result.stdout and "and 2 more" in result.stdout
    assert "  Frobnicating is slow." in result.stdout
    journal.add(bash("ls", "h", verdict=said("deny", HOSTILE)))
    recorded = run(journal)
    assert recorded.stdout.replace("\n", "").isprintable() and "a\\x1b" in recorded.stdout


def test_what_it_would_have_been_like_is_said_in_a_line(journal: Journal, tmp_path: Path) -> None:
    journal.add(*(bash("frobnicate", f"f{n}") for n in range(5)), *(bash("ls", f"l{n}") for n in range(15)))
    tried = ["--policies", pack(tmp_path / "pack")]
    said_so = run(journal, *tried).stdout
    assert "one call in 4 would have been held up that was not, on 1 of 1 day with work: about 5.0 a day" in said_so
    assert "5 × Bash  frobnicate\n" in said_so  # equal calls are one line
    (policy,) = report(journal, *tried)["policies"]
    assert policy["days"] == 1 and policy["reason"] == "Frobnicating is slow."
    assert [(a["calls"], a["call"]) for a in policy["commonest"]] == [(5, "frobnicate")]
    assert "No work would have been held up" in run(journal, "--disable", "databases").stdout


def test_shipped_packs_are_tried_without_being_switched(journal: Journal) -> None:
    journal.add(bash("psql -c 'DROP TABLE users'", "1"), bash("ls", "2"))
    before = sorted(journal.base.iterdir())
    found = report(journal, "--enable", "databases")
    assert found["against"] == "policies" and found["newly_reviewed"] == 1
    assert report(journal, "--enable", "database-drop")["policies"][0]["policy"] == "database-drop"
    assert report(journal, "--enable", "databases", "--disable", "database-drop")["newly_reviewed"] == 0
    assert run(journal, "--enable", "no-such-pack").exit_code == 2
    assert sorted(journal.base.iterdir()) == before


def test_what_the_user_switched_stays_switched_on_both_sides(journal: Journal, tmp_path: Path) -> None:
    """A shipped policy that was switched on or off came back to its default in what was tried, and was told as a change."""
    journal.add(bash("psql -c 'DROP TABLE users'", "1"))
    assert CliRunner().invoke(main, ["guard", "enable", "database-drop", "--dir", str(journal.base)]).exit_code == 0
    found = report(journal, "--policies", pack(tmp_path / "pack"))
    assert found["unchanged"] == 1


def test_equal_calls_are_judged_once(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardhook.gate import judge

    judged: list[object] = []
    real = judge.decide
    monkeypatch.setattr(
        judge, "decide", lambda sets, event, *a, **k: judged.append(event) or real(sets, event, *a, **k)
    )
    for number in range(30):
        journal.add(bash(("ls", "frobnicate", "frobnicate x")[number % 3], f"c{number}", session=f"s{number % 4}"))
    found = report(journal, "--policies", pack(tmp_path / "pack"))
    assert (found["judged"], found["newly_denied"], len(judged)) == (30, 20, 6)


@pytest.mark.parametrize(
    "words",
    [["--fail-on", "worse"], ["--since", "soon"], ["--since", ""], ["--policies", ""], ["--policies", "/nonexistent"], ["--preset", "hard"], ["--limit", "-2"]],
)  # fmt: skip
def test_mistakes(journal: Journal, words: list[str]) -> None:
    journal.add(bash("ls", "1"))
    assert run(journal, *words).exit_code == 2


def test_policies_that_do_not_load(journal: Journal, tmp_path: Path) -> None:
    journal.add(bash("ls", "1"))
    (tmp_path / "empty").mkdir()
    assert run(journal, "--policies", str(tmp_path / "empty")).exit_code == 2
    (tmp_path / "empty" / "bad.toml").write_text("[[policy]]\nname = 1\n")
    assert run(journal, "--policies", str(tmp_path / "empty")).exit_code == 2


def test_where_nothing_was_recorded(journal: Journal) -> None:
    assert run(journal).exit_code == 1 and run(journal, "--fail-on", "looser").exit_code == 2
    assert not journal.base.exists()


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("allow", "warn", None), ("warn", "allow", None), ("deny", "deny", None), ("warn", "deny", "newly_denied"), ("require_review", "deny", "newly_denied"),
        ("allow", "require_review", "newly_reviewed"), ("deny", "require_review", "eased"), ("deny", "warn", "newly_allowed"), ("require_review", "allow", "newly_allowed"),
    ],
)  # fmt: skip
def test_kinds_of_change(before: str, after: str, kind: str | None) -> None:
    assert change(before, after) == kind
