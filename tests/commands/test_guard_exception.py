"""guard exception: what is written, who may be excepted from, and that it takes effect."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main

RM = ("--pattern", '{"path": "/srv/scratch/**"}', "--reason", "Scratch space.")
COMMENTED = """\
# mine
[[exception]]
policy = "fork-bomb"   # yes
match = { input_contains = "test" }
reason = "A test."
expires = 2020-01-31
"""


def run(data: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["guard", *words, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def listed(data: Path) -> list[dict[str, Any]]:
    result = run(data, "exception", "list", "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["exceptions"]
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


def test_an_exception_takes_effect_and_ends(data: Path) -> None:
    assert run(data, "add", "--name", "no-touch", "--pattern", '{"program": "touch"}', "--action", "deny").exit_code == 0  # fmt: skip
    tried = ("test", "--command", "touch /srv/scratch/x")
    assert run(data, *tried).exit_code == 1
    added = run(data, "exception", "add", "no-touch", "--pattern", '{"argument": "/srv/scratch/x"}', "--reason", "Scratch.", "--until", "14d")  # fmt: skip
    assert added.exit_code == 0, added.output
    assert run(data, *tried).exit_code == 0 and run(data, "test", "--command", "touch /srv/other").exit_code == 1
    (one,) = listed(data)
    day = (datetime.date.today() + datetime.timedelta(days=14)).isoformat()
    assert one == {"number": 1, "policy": "no-touch", "until": day, "expired": False, "reason": "Scratch.", "pattern": {"argument": "/srv/scratch/x"}}  # fmt: skip
    assert (data / "exceptions.toml").stat().st_mode & 0o777 == 0o600
    assert run(data, "exception", "remove", "1").exit_code == 0
    assert run(data, *tried).exit_code == 1 and listed(data) == []


def test_the_rest_of_the_file_stays(data: Path) -> None:
    data.mkdir()
    (data / "exceptions.toml").write_text(COMMENTED)
    assert run(data, "exception", "add", "fork-bomb", *RM, "--until", "2090-01-31").exit_code == 0
    text = (data / "exceptions.toml").read_text()
    assert text.startswith(COMMENTED) and tomllib.loads(text)["exception"][1]["expires"] == datetime.date(2090, 1, 31)
    assert [(e["number"], e["expired"]) for e in listed(data)] == [(1, True), (2, False)]
    people = run(data, "exception", "list").stdout
    assert "1  fork-bomb  expired, until 2020-01-31" in people and "Scratch space." in people
    gone = run(data, "exception", "remove", "--expired", "--json")
    assert json.loads(gone.stdout)["removed"] == [1] and [e["reason"] for e in listed(data)] == ["Scratch space."]
    assert json.loads(run(data, "exception", "remove", "--expired", "--json").stdout)["removed"] == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["add", "no-such", *RM, "--until", "14d"], 1), (["add", "fork-bomb", *RM, "--until", "2020-01-01"], 2), (["add", "fork-bomb", *RM, "--until", "soon"], 2),
        (["add", "fork-bomb", "--pattern", "{}", "--reason", "x", "--until", "14d"], 2), (["add", "fork-bomb", "--pattern", "[", "--reason", "x", "--until", "14d"], 2),
        (["add", "fork-bomb", "--pattern", '{"pth": "x"}', "--reason", "x", "--until", "14d"], 2), (["add", "fork-bomb", "--pattern", '{"path": "x"}', "--reason", " ", "--until", "14d"], 2),
        (["add", "fork-bomb", *RM], 2), (["remove", "1"], 1), (["remove"], 2), (["remove", "x"], 2), (["frob"], 2),
    ],
)  # fmt: skip
def test_mistakes_write_nothing(data: Path, words: list[str], status: int) -> None:
    for more in ([], ["--json"]):
        assert run(data, "exception", *words, *more).exit_code == status
    assert not (data / "exceptions.toml").exists()


def test_a_broken_file_is_never_written_over(data: Path) -> None:
    data.mkdir()
    (data / "exceptions.toml").write_text("[[exception]\n")
    for words in (["list"], ["add", "fork-bomb", *RM, "--until", "14d"], ["remove", "1"]):
        result = run(data, "exception", *words)
        assert result.exit_code == 2 and "exceptions.toml" in result.stderr
    assert (data / "exceptions.toml").read_text() == "[[exception]\n"


def test_system_policies_have_no_exceptions(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardhook.core import folders

    monkeypatch.setattr(folders, "system_folder", lambda platform: str(tmp_path / "system"))
    (tmp_path / "system" / "policies").mkdir(parents=True)
    (tmp_path / "system" / "policies" / "a.toml").write_text('[[policy]]\nname = "ours"\naction = "deny"\nmatch = {program = "x"}\n')  # fmt: skip
    result = run(data, "exception", "add", "ours", *RM, "--until", "14d")
    assert result.exit_code == 2 and "system policy" in result.stderr


def test_an_agent_may_not_make_one(data: Path) -> None:
    for words in ("exception add x --until 14d", "exception remove 1"):
        assert run(data, "test", "--command", f"guardhook guard {words}").exit_code == 1
