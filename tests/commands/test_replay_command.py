"""replay: pace, marks, sums."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main, replay
from guardhook.core.folders import explicit
from guardhook.store import Appender

HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f"


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["replay", *args, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "gh"
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": HOSTILE}),
        ("trace.step", {"step_number": 1, "step_type": "tool_call", "name": "Bash", "output": "x" * 300, "duration_ms": 1500, "tokens_used": 5}),
        ("trace.step", {"step_number": 2, "step_type": "guard_check", "name": HOSTILE, "decision": {"chosen": HOSTILE}, "duration_ms": 500}),
        ("trace.step", {"step_number": 3, "step_type": "tool_call", "name": "Bash", "error": HOSTILE}),
        ("trace.end", {"status": "failed"}),
    ]  # fmt: skip
    Appender(explicit(str(found)), redaction="full").put("trc_a", lines, opens=True)
    return found


def test_steps_with_their_marks_and_what_was_measured(data: Path) -> None:
    result = run(data, "trc_a", "--speed", "0", "--pause")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and result.stdout.replace("\n", "").isprintable()
    assert [line[0] for line in lines if line[0] in "✔⚠✖"] == ["✔", "⚠", "✖"]
    assert lines[-1] == "✘ FAILED  3 steps, 1 errors, 2.0s, 5 tokens"
    assert any(line.startswith("    chose a\\x1b") for line in lines) and max(map(len, lines)) <= 104


def test_a_window(data: Path) -> None:
    assert (
        run(data, "trc_a", "--speed", "0", "--from-step", "3").stdout.splitlines()[-1] == "✘ FAILED  1 steps, 1 errors"
    )
    empty = run(data, "trc_a", "--from-step", "9")
    assert empty.exit_code == 0 and empty.stdout == "" and "no steps" in empty.stderr


@pytest.mark.parametrize(
    ("took", "speed", "wait"),
    [(1000, 5, 0.2), (None, 5, 0.1), (1000, 0, 0), (60_000, 1, 3.0), (-5, 1, 0), (1000, 0.5, 2.0)],
)
def test_waiting(took: float | None, speed: float, wait: float) -> None:
    assert replay.seconds(took, speed) == pytest.approx(wait)


def test_it_waits_between_steps(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("guardhook.commands.replay.time.sleep", waits.append)
    run(data, "trc_a", "--speed", "1")
    assert waits == [1.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["none"], 1), ([], 2), (["trc_a", "--speed", "-1"], 2), (["trc_a", "--speed", "fast"], 2), (["trc_a", "--from-step", "0"], 2),
        (["trc_a", "--from-step", "3", "--to-step", "2"], 2),
    ],
)  # fmt: skip
def test_mistakes(data: Path, words: list[str], status: int) -> None:
    assert run(data, *words).exit_code == status
    assert run(data.parent / "no", "trc_a").exit_code == 1 and not (data.parent / "no").exists()
