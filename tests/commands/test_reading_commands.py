"""list, show, why, decisions, stats as processes and in this one: what they print, where, and how they end."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main, progress
from guardhook.core.folders import explicit
from guardhook.journal import line, write
from guardhook.store import Appender, TraceRecorder
from guardhook.views.text import cells

REPOSITORY = Path(__file__).resolve().parents[2]
HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f"
READING = (["list"], ["show", "x"], ["why", "x", "--step", "1"], ["decisions", "x"], ["stats"])


def run(data: Path, *args: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(
        main, [*args, "--dir", str(data)], env={"COLUMNS": "80", "GUARDHOOK_DIR": "", **(env or {})}
    )


def answer(result: Result) -> dict[str, object]:
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def put(
    data: Path, name: str, *lines: tuple[str, dict[str, object]], dialect: str = "recorder", **start: object
) -> None:
    Appender(explicit(str(data)), dialect=dialect, redaction="full").put(
        name, [("trace.start", {"agent_name": "agent", **start}), *lines], opens=True
    )


def step(number: int, kind: str = "tool_call", name: str = "Bash", **more: object) -> tuple[str, dict[str, object]]:
    return "trace.step", {"step_number": number, "step_type": kind, "name": name, **more}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "gh"


@pytest.mark.parametrize("words", READING)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_where_nothing_was_recorded_they_say_so_and_create_nothing(
    data: Path, words: list[str], more: list[str]
) -> None:
    result = run(data, *words, *more)
    assert not data.exists()
    assert result.exit_code == (0 if words[0] in ("list", "stats") else 1)
    if more:
        assert answer(result)
    else:
        assert "nothing has been recorded yet" in result.stderr and result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--status", "done"], ["list", "--sort", "size"], ["list", "--since", "2026-99"], ["list", "--since", ""], ["list", "--agent", ""],
        ["list", "--tag", " "], ["list", "--session", ""], ["list", "--status", ""], ["list", "--limit", "x"], ["list", "--limit", "-2"], ["list", "--limit", "1.5"],
        ["show", "abc", "--from-step", "0"], ["show", "abc", "--from-step", "5", "--to-step", "4"], ["show", "abc", "--from-step", "x"], ["why", "abc"],
        ["why", "abc", "--step", "0"], ["why", "abc", "--step", "one"], ["show"], ["show", "a", "b"], ["list", "--nope"], ["stats", "--since", "soon"], ["show", "trc"],
    ],
)  # fmt: skip
def test_mistakes_end_with_status_2(data: Path, words: list[str]) -> None:
    put(data, "trc_a")
    put(data, "trc_b")
    put(data, "abc", step(1))
    assert run(data, *words).exit_code == 2


def test_mistakes_are_told_as_json(data: Path) -> None:
    put(data, "trc_a")
    put(data, "trc_b")
    ambiguous = run(data, "show", "trc", "--json")
    assert (ambiguous.exit_code, answer(ambiguous)["ok"], answer(ambiguous)["hints"]) == (2, False, ["trc_a", "trc_b"])
    missing = run(data, "show", "zzz", "--json")
    assert (missing.exit_code, answer(missing)["ok"]) == (1, False)
    assert run(data, "why", "trc_a", "--step", "7").exit_code == 1
    assert run(data, "show", " ").exit_code == 1


def test_numbers_as_people_write_them(data: Path) -> None:
    for name in "abcdefghijkl":
        put(data, name)
    assert [
        len(answer(run(data, "list", "--json", "--limit", n))["items"]) for n in ("0x0a", "1e1", "2", "", "-1")
    ] == [10, 10, 2, 0, 12]  # type: ignore[arg-type]
    assert answer(run(data, "list", "--json", "--limit", "2"))["total"] == 12
    for far in ("1e300", "9" * 30, "0x" + "f" * 5000):
        assert len(answer(run(data, "list", "--json", "--limit", far))["items"]) == 12  # type: ignore[arg-type]
        assert answer(run(data, "list", "--json", "--offset", far))["items"] == []
        assert run(data, "show", "a", "--from-step", far).exit_code == 0
        assert run(data, "list", "--limit", f"-{far}").exit_code == 2
    assert answer(run(data, "stats", "--json", "--since", "9" * 400 + "d"))["overall"]["traces"] == 12  # type: ignore[index]


@pytest.mark.parametrize(
    "words", [["list", "--agent"], ["list", "--tag"], ["list", "--session"], ["list", "--project"], ["show"]]
)
def test_arguments_that_are_no_utf8_find_nothing(data: Path, words: list[str]) -> None:
    put(data, "a")
    result = run(data, *words, "a\udcff")
    assert isinstance(result.exception, SystemExit | None)
    assert result.exit_code == (1 if words == ["show"] else 0)


def test_list_for_people(data: Path) -> None:
    put(data, "trc_0123456789ab", step(1, tokens_used=1500), ("trace.end", {"total_duration_ms": 61_000}))
    put(data, "old", started_at="2020-01-01T00:00:00Z")
    result = run(data, "list")
    assert result.exit_code == 0 and result.stdout.startswith("2 trace(s) found (2 total)\n")
    assert re.search(r"trc_01234567  agent  ✔ COMPLETED +1 +1m 1s +1,500  just now", result.stdout)
    assert "⚠ abandoned?" in result.stdout
    assert "no trace matches" in run(data, "list", "--agent", "nobody").stderr


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_lines_with_long_names_fit_the_terminal(data: Path, columns: int) -> None:
    long = "漢字テスト" * 20
    more = {
        "decision": {"chosen": long, "rationale": long, "options": [{"option": long}, {"option": "x"}]},
        "error": long,
    }
    put(data, "trc_a", step(1, name=long, **more), step(2, name=long, caused_by_step=1), agent_name=long)
    for words in (
        ["why", "trc_a", "--step", "2"],
        ["decisions", "trc_a"],
        ["stats"],
        ["show", "trc_a"],
        ["show", "trc_a", "--tree"],
        ["list"],
    ):
        result = run(data, *words, env={"COLUMNS": str(columns)})
        assert result.exit_code == 0
        assert all(cells(text) <= columns for text in result.stdout.splitlines()), words
        assert "漢" in result.stdout


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (80, "ID Agent Status Steps Duration Tokens Started"), (60, "ID Agent Status Steps Started"), (40, "ID Agent Status"), (30, "ID Status"),
    ],
)  # fmt: skip
def test_narrow_terminals_have_fewer_columns_not_cut_ones(tmp_path: Path, columns: int, names: str) -> None:
    base = tmp_path / "gh"
    recorder = TraceRecorder(explicit(str(base)))
    recorder.start_trace("claude-code", trace_id="trc_0123456789")
    recorder.end_trace(total_tokens=12_345_678, total_duration_ms=3_600_000)
    result = run(base, "list", env={"COLUMNS": str(columns)})
    head, row = result.stdout.splitlines()[-2:]
    assert head.split() == names.split()
    assert len(head) <= columns and len(row) <= columns
    assert row.startswith("trc_01234567 ") and ("COMPLETED" in row) == ("Status" in names)
    assert ("claude" in row) == ("Agent" in names)


def test_list_by_project(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "proj"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    put(data, "in", project=str(project))
    put(data, "out", project="/elsewhere")
    monkeypatch.chdir(project / "src")
    for words in (["--project"], ["--project", str(project)], ["--project", str(project / "src")]):
        found = answer(run(data, "list", "--json", *words))
        assert [i["id"] for i in found["items"]] == ["in"]  # type: ignore[attr-defined]
    assert answer(run(data, "list", "--json"))["total"] == 2


def test_show_as_json_has_the_documented_shape(data: Path) -> None:
    put(
        data,
        "a",
        step(1, input={"x": "ü😀\x7f"}, output=False),
        step(2, error="bad"),
        step(3, decision={"chosen": "c"}),
        ("trace.snapshot", {"step_number": 1, "context_window": ["w"]}),
    )
    result = run(data, "show", "a", "--json")
    assert result.stdout.isascii() and "\x7f" not in result.stdout
    assert result.stdout.startswith('{\n  "id": "a",\n')
    whole = answer(result)
    assert list(whole)[-3:] == ["created_at", "steps", "evals"] and "step_window" not in whole
    steps = whole["steps"]
    assert isinstance(steps, list)
    assert steps[0]["input"] == {"x": "ü😀\x7f"} and steps[0]["output"] is False and "decision" not in steps[0]
    assert steps[2]["decision"]["chosen"] == "c"
    window = answer(run(data, "show", "a", "--json", "--from-step", "2", "--to-step", "2"))
    assert window["step_window"] == {"from": 2, "to": 2, "shown": 1, "omitted": 2}
    assert "step_window" not in answer(run(data, "show", "a", "--json", "--from-step", "1"))
    assert answer(run(data, "show", "a", "--json", "--from-step", "9"))["steps"] == []
    seen = answer(run(data, "show", "a", "--json", "--snapshots"))["steps"]
    assert [s["snapshot"] is None for s in seen] == [False, True, True]  # type: ignore[attr-defined]


def test_show_for_people(data: Path) -> None:
    put(
        data,
        "a",
        step(1, input=0, output="", duration_ms=350, model="m1", tokens_used=7),
        step(2, "guard_check", "guard:p", error="one\ntwo", input={}, output=[]),
        step(3, "decision", "pick", decision={"chosen": "left", "rationale": "shorter"}),
        session_id="s",
        tags=["t"],
    )
    text = run(data, "show", "a").stdout
    assert "│ Trace ID" in text and "● RUNNING" in text and "│ Tags" in text
    assert '├─ 1 🔧 Tool Call "Bash" 350ms' in text
    assert (
        "│    Input   0\n" in text
        and '│    Output  ""\n' in text
        and "│    Model   m1\n" in text
        and "│    Tokens  7\n" in text
    )
    assert '2 🛡 Guard Check "guard:p"' in text and "│    Error   one\n│            two\n" in text
    assert text.count("Input") == 1 and text.count("Output") == 1
    assert "│    Chose   left\n│    Because shorter\n" in text
    assert run(data, "show", "a", "--steps-only").stdout.startswith("├─ 1")
    assert "(2 more steps outside the window)" in run(data, "show", "a", "--to-step", "1").stdout
    assert "No evaluations." in run(data, "show", "a", "--evals").stdout


def test_the_tree_nests_and_survives_depth(data: Path) -> None:
    put(data, "deep", *(step(n, "thought", f"n{n}", parent_step=n - 1 or None) for n in range(1, 3001)))
    put(data, "wide", step(1), step(2, parent_step=1, caused_by_step=1), step(3), step(4, parent_step=2))
    put(data, "flat", step(1))
    deep = run(data, "show", "deep", "--tree", "--steps-only").stdout.splitlines()
    assert len(deep) == 3000 and "[depth 2999]" in deep[-1] and max(map(len, deep)) < 120
    wide = run(data, "show", "wide", "--tree", "--steps-only").stdout
    assert [int(n) for n in re.findall(r"^[ └─]*(\d+) ", wide, re.M)] == [1, 2, 4, 3]
    assert "⟵ caused by #1" in wide
    assert "├─ 1" in run(data, "show", "flat", "--tree").stdout


def test_a_window_of_a_tree_keeps_orphans(data: Path) -> None:
    put(data, "w", step(1), step(2, parent_step=1), step(3, parent_step=2))
    text = run(data, "show", "w", "--tree", "--steps-only", "--from-step", "2").stdout
    assert [int(n) for n in re.findall(r"^[ └─]*(\d+) ", text, re.M)] == [2, 3]


def test_why_follows_cause_then_parent_then_decision(data: Path) -> None:
    put(
        data,
        "a",
        step(1, "tool_call", "chosen here", decision={"chosen": "x", "rationale": "r"}),
        step(2),
        step(3, "thought", "t"),
        step(4, parent_step=3),
        step(5, caused_by_step=4, parent_step=3),
    )
    found = answer(run(data, "why", "a", "--step", "5", "--json"))
    assert (found["trace_id"], found["step"]) == ("a", 5)
    assert [(c["step_number"], c["link"]) for c in found["chain"]] == [
        (5, "origin"),
        (4, "caused_by"),
        (3, "parent"),
        (1, "prior_decision"),
    ]  # type: ignore[attr-defined]
    assert list(found["chain"][0]) == ["step_number", "step_type", "name", "link", "decision"]  # type: ignore[index]
    text = run(data, "why", "a", "--step", "5").stdout
    assert "⟵ caused by: #4" in text and "because r" in text


def test_decisions_on_any_step(data: Path) -> None:
    put(
        data,
        "a",
        step(1, decision={"chosen": "x", "options": [{"option": "x"}, {"option": "y"}], "decided_by": "user"}),
        step(2, "decision", "bare"),
        step(3),
    )
    found = answer(run(data, "decisions", "a", "--json"))["decisions"]
    assert [d["step_number"] for d in found] == [1, 2]  # type: ignore[attr-defined]
    assert found[0]["chosen"] == "x" and "chosen" not in found[1]  # type: ignore[index]
    text = run(data, "decisions", "a").stdout
    assert "(user)" in text and "instead of y" in text


def test_stats(data: Path) -> None:
    put(data, "a", step(1, tokens_used=4), ("trace.end", {"status": "failed", "ended_at": "nonsense"}))
    found = answer(run(data, "stats", "--json"))
    assert list(found) == ["since", "overall", "by_status", "by_agent"] and found["since"] is None
    assert found["overall"]["totalTokens"] == 4 and found["overall"]["policies"] > 0  # type: ignore[index]
    text = run(data, "stats").stdout
    assert (
        "✘ FAILED 1" in text
        and "RUNNING" not in text
        and "agent: 1 (1 failed or timed out)" in text
        and "(over 0 of 1)" in text
    )
    assert (
        answer(run(data, "stats", "--json", "--since", "2020-01-01T00:00:00Z"))["since"] == "2020-01-01T00:00:00.000Z"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", "h"],
        ["show", "h", "--tree"],
        ["show", "h", "--snapshots"],
        ["why", "h", "--step", "2"],
        ["decisions", "h"],
        ["stats"],
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nothing_that_was_recorded_controls_the_terminal(data: Path, words: list[str], more: list[str]) -> None:
    put(
        data, "h",
        step(1, "tool_call", HOSTILE, input=HOSTILE, output={HOSTILE: HOSTILE}, error=HOSTILE, model=HOSTILE, decision={"chosen": HOSTILE, "rationale": HOSTILE, "options": [{"option": HOSTILE}, {"option": HOSTILE + "2"}]}),
        step(2, "thought", HOSTILE, parent_step=1, caused_by_step=1), ("trace.snapshot", {"step_number": 1, "environment": {HOSTILE: HOSTILE}}),
        ("trace.end", {"error": HOSTILE, "status": "failed"}),
        agent_name=HOSTILE, agent_version=HOSTILE, session_id=HOSTILE, tags=[HOSTILE], project="/" + HOSTILE, started_at=HOSTILE,
    )  # fmt: skip
    result = run(data, *words, *more)
    assert result.exit_code == 0, result.output
    for char in result.stdout + result.stderr:
        assert char == "\n" or unicodedata.category(char) not in ("Cc", "Cf"), repr(char)
    if not more:
        assert not [text for text in result.stdout.splitlines() if text.startswith("next")]


def test_prompts_and_events_of_a_session_stand_between_the_steps(data: Path) -> None:
    now = 1_790_000_000_000_000_000
    for index, (name, payload) in enumerate((
        ("user_prompt", {"prompt": "first\nline two"}), ("pre_tool", {"tool_name": "Bash", "tool_input": {"command": "ls"}}), ("user_prompt", {"prompt": "second\x1b[2J"}),
        ("notification", {"message": "waiting\x07"}),
    )):  # fmt: skip
        given = {
            "session": "s",
            "dialect": "claude-code",
            "event": name,
            "native_event": name,
            "tool": payload.get("tool_name"),
            "payload": payload,
            "verdict": None,
        }
        record = write.Record(line.RECEIVED, now + index, "claude-code", "s", "/p", "/p", True, False, given)
        assert write.append(str(data / "journal"), record, budget=1.0).state == "recorded"
    name = answer(run(data, "list", "--json"))["items"][0]["id"]  # type: ignore[index]
    text = run(data, "show", name, "--steps-only").stdout
    assert (
        text.index("◇ Prompt\n│ first\n│ line two\n")
        < text.index("├─ 1")
        < text.index("│ second\\x1b[2J")
        < text.index("◇ Notification waiting\\x07")
    )
    assert answer(run(data, "show", name, "--json"))["metadata"]["follow_up_prompts"] == ["second\x1b[2J"]  # type: ignore[index]


@pytest.mark.parametrize("columns", ["1", "20", "40", "80", "200"])
def test_wide_characters_keep_lines_within_the_width(data: Path, columns: str) -> None:
    put(
        data,
        "a",
        step(1, "tool_call", "漢字" * 60, input="漢" * 500, output="😀" * 500, error="漢" * 300),
        agent_name="エージェント" * 20,
    )
    for words in (["list"], ["show", "a"]):
        result = run(data, *words, env={"COLUMNS": columns})
        assert result.exit_code == 0
        if int(columns) >= 40:
            for text in result.stdout.splitlines():
                width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
                assert width <= int(columns), text
    frame = [t for t in run(data, "show", "a").stdout.splitlines() if t[:1] in "╭│╰" and t[-1:] in "╮│╯"]
    assert len({sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in t) for t in frame}) == 1


def process(data: Path, *words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    clean = {"PATH": os.environ["PATH"], "HOME": str(data.parent), "PYTHONPATH": str(REPOSITORY), **env}
    return subprocess.run(
        [sys.executable, "-m", "guardhook", *words, "--dir", str(data)], env=clean, capture_output=True, timeout=60
    )


def test_pipes_get_no_colours_and_a_reader_that_leaves_is_no_error(data: Path) -> None:
    put(data, "a", *(step(n, output="x" * 50) for n in range(1, 3000)))
    for words in (["list"], ["show", "a"], ["stats"]):
        done = process(data, *words, FORCE_COLOR="1", CLICOLOR_FORCE="1", LANG="C.UTF-8")
        assert done.returncode == 0 and b"\x1b" not in done.stdout + done.stderr
    clean = {"PATH": os.environ["PATH"], "HOME": str(data.parent), "PYTHONPATH": str(REPOSITORY), "LANG": "C.UTF-8"}
    shell = f"{sys.executable} -m guardhook show a --dir {data} | head -n 1; echo ${{PIPESTATUS[0]}}"
    piped = subprocess.run(["bash", "-c", shell], env=clean, capture_output=True, text=True, timeout=60)
    assert piped.stdout.splitlines()[-1] == "0" and piped.stderr == ""


def left(data: Path, *words: str) -> tuple[int, str]:
    """Status and stderr of a command whose reader left before it began."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "guardhook", *words, "--dir", str(data)], cwd=REPOSITORY, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writer)
    return done.returncode, done.stderr


def test_a_reader_that_left_before_the_first_line_changes_no_status(data: Path, tmp_path: Path) -> None:
    end = ("trace.end", {"status": "completed"})
    put(data, "a", step(1, name="Bash", input={"command": "ls"}), end, input={"q": 1})
    golden = tmp_path / "golden.json"
    run(data, "export", "--format", "golden", "--all-projects", "-o", str(golden))
    put(data, "b", step(1, name="Bash", input={"command": "rm -rf /"}), end, input={"q": 1})
    for words in (["list"], ["export"], ["backtest"], ["config", "list"]):
        assert left(data, *words) == (0, "")
    assert left(data, "check", "--golden", str(golden), "--all-projects") == (1, "")
    assert left(data, "guard", "test", "b") == (1, "")


def test_a_closed_stdout_is_no_error(data: Path) -> None:
    put(data, "a", step(1))
    for words in ("list", "show a", "export"):
        shell = f"{sys.executable} -m guardhook {words} --dir {data} >&-"
        done = subprocess.run(["bash", "-c", shell], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_current_folder_that_is_gone_is_told(data: Path, tmp_path: Path) -> None:
    put(data, "a")
    gone = tmp_path / "gone"
    for words, status in (("list", 0), ("list --project --json", 2), ("explain ls", 2)):
        shell = f"mkdir {gone} && cd {gone} && rmdir {gone} && {sys.executable} -m guardhook {words} --dir {data}"
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(["bash", "-c", shell], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == status and "internal error" not in done.stderr, done.stderr
        assert status == 0 or "current folder" in done.stdout + done.stderr


def test_json_paths_do_not_load_what_they_do_not_need(data: Path) -> None:
    put(data, "a")
    process(data, "list")
    code = (
        "import sys\nfrom guardhook.commands import main\n"
        "try: main(['list', '--json', '--dir', sys.argv[1]])\nexcept SystemExit: pass\n"
        "print([m for m in ('rich', 'msgspec', 'regex', 'tomlkit', 'guardhook.store.project') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(data)], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.strip() == "[]"


def test_a_locale_without_unicode_is_no_crash(data: Path) -> None:
    put(data, "a", step(1, "tool_call", "漢字"))
    done = process(
        data, "show", "a", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0", PYTHONIOENCODING="ascii:strict"
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr


def test_a_damaged_store_is_told_and_the_answer_is_right(data: Path) -> None:
    put(data, "a")
    process(data, "list")
    for extra in ("-wal", "-shm"):
        Path(f"{data}/traces.db{extra}").unlink(missing_ok=True)
    (data / "traces.db").write_bytes(b"garbage" * 5000)
    done = process(data, "list", "--json")
    assert json.loads(done.stdout)["total"] == 1 and b"rebuilt" in done.stderr


def test_damage_that_shows_while_reading_is_told_and_mended_by_the_next_command(data: Path) -> None:
    put(data, "a", *(step(n, output="x" * 4000) for n in range(1, 400)))
    process(data, "list")
    with sqlite3.connect(f"{data}/traces.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with (data / "traces.db").open("r+b") as file:
        file.seek(4096 * 30)
        file.write(b"\xff" * 4096 * 200)
    broken = process(data, "show", "a")
    assert broken.returncode == 1 and b"damaged" in broken.stderr and b"Traceback" not in broken.stderr
    assert process(data, "show", "a").returncode == 0


def test_when_a_trace_times_out_is_a_setting(data: Path) -> None:
    given = {
        "session": "s",
        "dialect": "claude-code",
        "event": "pre_tool",
        "native_event": "PreToolUse",
        "tool": "Bash",
        "payload": {},
        "verdict": None,
    }
    record = write.Record(
        line.RECEIVED, time.time_ns() - 600 * 10**9, "claude-code", "s", "/p", "/p", True, False, given
    )
    write.append(str(data / "journal"), record, budget=1.0)
    assert answer(run(data, "list", "--json"))["items"][0]["status"] == "running"  # type: ignore[index]
    (data / "config.toml").write_text("[capture]\nidle_minutes = 5\n")
    assert answer(run(data, "list", "--json"))["items"][0]["status"] == "timeout"  # type: ignore[index]


def test_a_long_silence_is_told(data: Path) -> None:
    given = {
        "session": "s",
        "dialect": "claude-code",
        "event": "pre_tool",
        "native_event": "PreToolUse",
        "tool": "Bash",
        "payload": {},
        "verdict": None,
    }
    record = write.Record(
        line.RECEIVED, time.time_ns() - 20 * 86_400 * 10**9, "claude-code", "s", "/p", "/p", True, False, given
    )
    write.append(str(data / "journal"), record, budget=1.0)
    assert "nothing was recorded for 20 days" in run(data, "list").stderr


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "total", "shown"), [(True, 50 << 20, True), (False, 50 << 20, False), (True, 1000, False)]
)
def test_a_long_catch_up_shows_its_progress_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, total: int, shown: bool
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    bar = progress.Bar()
    for tenth in range(1, 11):
        bar(total * tenth // 10, total)
    assert ("50%" in screen.getvalue()) is shown
    assert not shown or screen.getvalue().endswith("\r\x1b[K")  # and leaves nothing behind


@pytest.mark.parametrize("words", [["export"], ["export", "--format", "jsonl"], ["backtest", "--since", "2020-01-01"]])
def test_exporting_and_judging_show_their_progress_too(
    data: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    bars: list[tuple[str, int, int]] = []

    class Noted(progress.Bar):
        def __call__(self, done: int, total: int) -> None:
            bars.append((self._what, done, total))

    monkeypatch.setattr(progress, "Bar", Noted)
    for name in ("a", "b", "c"):
        put(data, name, step(1))
    assert run(data, *words).exit_code == 0
    assert any(what in ("exporting", "judging") for what, _, _ in bars)
