"""Reading commands where similar tools went wrong: long lists, long names, damaged rows, stores and streams that can't be used."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender, open_store

REPOSITORY = Path(__file__).resolve().parents[2]
JSON_FAMILY = (["list"], ["show", "a"], ["why", "a", "--step", "1"], ["decisions", "a"], ["stats"], ["diff", "a", "a"], ["fork", "a", "--from-step", "1"])  # fmt: skip


def run(data: Path, *words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, [*words, "--dir", str(data)], env={"COLUMNS": "80", "GUARDHOOK_DIR": "", **(env or {})})  # fmt: skip


def put(data: Path, name: str, *steps: dict[str, object], end: bool = True, **start: object) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot", "input": {"q": 1}, **start})]
    for number, more in enumerate(steps, 1):
        lines.append(("trace.step", {"step_number": number, "step_type": "tool_call", "name": "Bash", **more}))
    if end:
        lines.append(("trace.end", {"status": "completed"}))
    Appender(explicit(str(data)), redaction="full").put(name, lines, opens=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More traces than any default limit."""
    found = tmp_path_factory.mktemp("many") / "gh"
    for number in range(60):
        put(found, f"trc_{number:02}", {"input": {"n": 1}})
    return found


def test_limits_bound_what_is_shown_and_nothing_else(many: Path, tmp_path: Path) -> None:
    listed = json.loads(run(many, "list", "--json", "--limit", "0x20").stdout)
    assert (len(listed["items"]), listed["total"]) == (32, 60)
    assert "25 trace(s) found (60 total)" in run(many, "list").stdout
    assert len(json.loads(run(many, "export").stdout)) == 60
    golden = tmp_path / "golden.json"
    assert run(many, "export", "--format", "golden", "--all-projects", "--output", str(golden)).exit_code == 0
    assert len(json.loads(golden.read_text())) == 60
    report = json.loads(run(many, "check", "--golden", str(golden), "--all-projects", "--json").stdout)
    assert (report["passed"], report["uncovered"]) == (60, 0)


def test_narrowing_takes_special_characters_at_their_word(data: Path) -> None:
    for name, session, agent in (("trc_a", "s_1", "a_b"), ("trcXa", "sX1", "aXb"), ("100%", "s%1", "a%b")):
        put(data, name, session_id=session, agent_name=agent)

    def found(*words: str) -> list[str]:
        return [t["id"] for t in json.loads(run(data, "list", "--json", *words).stdout)["items"]]

    assert found("--session", "s_") == ["trc_a"] and found("--session", "s%") == ["100%"] and found("--session", "S_") == []  # fmt: skip
    assert found("--agent", "A_B") == ["trc_a"] and found("--agent", "%") == ["100%"]
    assert json.loads(run(data, "show", "trc_", "--json").stdout)["id"] == "trc_a" and run(data, "show", "%").exit_code == 1  # fmt: skip


def test_a_window_never_changes_what_is_said_of_the_whole(data: Path) -> None:
    put(data, "a", {"tokens_used": 7, "duration_ms": 10}, {"tokens_used": 9}, {"tokens_used": 11})
    whole, part = (run(data, "show", "a", *w).stdout for w in ([], ["--from-step", "2", "--to-step", "2"]))
    frame = [row for row in whole.splitlines() if row[:1] in "╭│╰" and row[-1:] in "╮│╯"]
    assert [row for row in part.splitlines() if row[:1] in "╭│╰" and row[-1:] in "╮│╯"] == frame
    assert any("Tokens" in row and "27" in row for row in frame) and any("Steps" in row and "3" in row for row in frame)
    inside = json.loads(run(data, "show", "a", "--json", "--from-step", "2").stdout)
    assert inside["total_tokens"] == json.loads(run(data, "show", "a", "--json").stdout)["total_tokens"]


@pytest.mark.parametrize("options", ["{", '[1, null, {"option": 3}, {"option": "x\\u001b"}]', "{}", ""])
def test_decisions_tolerate_options_that_are_none(data: Path, options: str) -> None:
    put(data, "a", {"decision": {"chosen": "go", "options": [{"option": "go"}]}})
    with open_store(explicit(str(data))) as store:
        store.connection.execute("UPDATE agent_trace_decisions SET options = ?", (options,))
        store.connection.commit()
    people, program = run(data, "decisions", "a"), run(data, "decisions", "a", "--json")
    assert people.exit_code == program.exit_code == 0 and "chose go" in people.stdout
    assert isinstance(json.loads(program.stdout)["decisions"][0]["options"], list)
    for result in (people, program, run(data, "why", "a", "--step", "1"), run(data, "show", "a", "--json"), run(data, "export")):  # fmt: skip
        assert result.exit_code == 0 and all(unicodedata.category(c) not in ("Cc", "Cf") for c in result.stdout.replace("\n", ""))  # fmt: skip


def test_very_long_names_are_bounded_everywhere(data: Path) -> None:
    long = "名前" * 2500
    put(data, "a", {"name": long}, {"name": long, "error": long}, agent_name=long, session_id=long, tags=[long])
    put(data, "b", {"name": "x" + long}, agent_name=long + "x")
    golden = data.parent / "golden.json"
    run(data, "export", "--format", "golden", "--all-projects", "--output", str(golden))
    for words in (
        ["list"], ["show", "a"], ["show", "a", "--tree"], ["why", "a", "--step", "1"], ["decisions", "a"], ["replay", "a", "--speed", "0"], ["watch", "a"],
        ["diff", "a", "b"], ["check", "--golden", str(golden), "--all-projects"], ["guard", "test", "a"],
    ):  # fmt: skip
        result = run(data, *words)
        denied = words[0] == "guard"  # a tool's name of this length is nothing that the gate lets pass
        assert result.exit_code == int(denied), (words, result.output)
        widest = max(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in row) for row in result.stdout.splitlines())  # fmt: skip
        assert widest <= 140, words
    assert run(data, "stats").exit_code == 0


@pytest.mark.parametrize("words", JSON_FAMILY)
def test_a_store_of_a_later_version_is_refused_by_name(data: Path, words: list[str]) -> None:
    put(data, "a", {})
    run(data, "list")
    with sqlite3.connect(data / "traces.db") as db:
        db.execute("INSERT INTO schema_version (version) VALUES (99)")
    db.close()
    result = run(data, *words, "--json")
    assert result.exit_code == 2 and "99" in json.loads(result.stdout)["error"]
    assert run(data, *words).exit_code == 2


def test_reading_changes_no_modes(data: Path) -> None:
    put(data, "a", {})
    run(data, "list")
    paths = [data, data / "journal", data / "traces.db", *(data / "journal").rglob("*.jsonl")]
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for words in (*JSON_FAMILY[:6], ["export"], ["watch", "a"], ["replay", "a", "--speed", "0"]):
        assert run(data, *words).exit_code == 0
    assert [stat.S_IMODE(p.stat().st_mode) for p in paths] == [0o755 if p.is_dir() else 0o644 for p in paths]


def process(*words: str, stdout: int | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "LANG": "C.UTF-8", **env}
    return subprocess.run(
        [sys.executable, "-m", "guardhook", *words], env=clean, stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
    )  # fmt: skip


def test_folders_of_the_environment(tmp_path: Path) -> None:
    put(tmp_path / "named", "trc_named")
    put(tmp_path / "home" / "tilde", "trc_tilde")
    put(tmp_path / "home" / ".local" / "share" / "guardhook", "trc_default")
    home = str(tmp_path / "home")

    def found(*words: str, **env: str) -> list[str]:
        return [t["id"] for t in json.loads(process("list", "--json", *words, HOME=home, **env).stdout)["items"]]

    assert found(GUARDHOOK_DIR=str(tmp_path / "named")) == ["trc_named"] and found(GUARDHOOK_DIR="~/tilde") == ["trc_tilde"]  # fmt: skip
    assert found() == found(GUARDHOOK_DIR="") == found(GUARDHOOK_DIR="  ") == found("--dir", " ") == ["trc_default"]
    assert found("--dir", str(tmp_path / "named"), GUARDHOOK_DIR="~/tilde") == ["trc_named"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["list", "--json"], ["list"], ["show", "a"], ["export"], ["stats"], ["watch", "a"]])
def test_a_full_disk_is_told_in_one_line(data: Path, words: list[str]) -> None:
    put(data, "a", {})
    with open("/dev/full", "wb") as full:
        done = process(*words, "--dir", str(data), HOME=str(data.parent), stdout=full.fileno())
    assert done.returncode == 1 and done.stderr == "guardhook: the output can't be written: No space left on device\n"
    result = run(data, "export", "--output", "/dev/full")
    assert result.exit_code == 1 and "can't be written" in result.stderr
