"""diff: which differences there are, and how they are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender

HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f"


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["diff", *args, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def put(
    data: Path, name: str, *steps: dict[str, object], end: dict[str, object] | None = None, **start: object
) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot", "input": {"q": 1}, **start})]
    for number, more in enumerate(steps, 1):
        lines.append(("trace.step", {"step_number": number, "step_type": "tool_call", "name": "Bash", **more}))
    lines.append(("trace.end", {"status": "completed", **(end or {})}))
    Appender(explicit(str(data)), redaction="full").put(name, lines, opens=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "gh"
    put(found, "left", {"input": {"a": 1, "b": [2]}}, {"model": "m1", "error": "x"}, {"decision": {"chosen": "go"}})
    put(
        found, "right", {"input": {"b": [2], "a": 1}}, {"model": "m2"}, {"decision": {"chosen": "stop", "rationale": "r"}}, {"name": HOSTILE},
        end={"status": "failed", "error": HOSTILE, "output": {"o": 1}}, input={"q": 2},
    )  # fmt: skip
    return found


def found(data: Path, *args: str) -> dict[str, Any]:
    result = run(data, *args, "--json")
    assert result.exit_code == 0, result.output
    out = json.loads(result.stdout)
    assert isinstance(out, dict)
    return out


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (1, True, False), (0, False, False), ([1, {"x": True}], [True, {"x": 1}], False), (1, 1.0, True), ({"a": [2.0, None]}, {"a": [2, None]}, True),
        ("1", 1, False), (None, 0, False), (1.5, 1.25, False), (9007199254740993, 9007199254740992.0, False),
    ],
)  # fmt: skip
def test_values_are_compared_as_json_has_them(tmp_path: Path, old: object, new: object, same: bool) -> None:
    base = tmp_path / "gh"
    for name, value in (("left", old), ("right", new)):
        put(
            base,
            name,
            {"input": {"v": value}, "output": {"v": value}},
            end={"output": {"v": value}},
            input={"v": value},
        )
    fields = [d["field"] for d in found(base, "left", "right")["diffs"]]
    assert fields == ([] if same else ["trace_input", "input", "output", "trace_output"])


def test_every_difference_with_its_step_and_none_for_key_order(data: Path) -> None:
    out = found(data, "left", "right")
    assert list(out) == [
        "left_trace_id",
        "right_trace_id",
        "divergence_step",
        "left_step_count",
        "right_step_count",
        "diffs",
    ]
    assert (out["divergence_step"], out["left_step_count"], out["right_step_count"]) == (2, 3, 4)
    assert [tuple(d.values()) for d in out["diffs"]] == [
        (None, "trace_input", {"q": 1}, {"q": 2}),
        (2, "model", "m1", "m2"),
        (2, "error", "x", None),
        (
            3, "decision", {"chosen": "go", "rationale": None, "decided_by": "agent"}, {"chosen": "stop", "rationale": "r", "decided_by": "agent"},
        ),
        (4, "missing_left", None, HOSTILE),
        (None, "status", "completed", "failed"),
        (None, "trace_error", None, HOSTILE),
        (None, "trace_output", None, {"o": 1}),
    ]  # fmt: skip


def test_fields_narrow_but_a_missing_step_stays(data: Path) -> None:
    out = found(data, "right", "left", "--fields", "decision")
    assert [(d["step_number"], d["field"]) for d in out["diffs"]] == [(3, "decision"), (4, "missing_right")]
    assert out["divergence_step"] == 3
    assert found(data, "left", "right", "--fields", "status")["divergence_step"] == 4


def test_steps_are_paired_by_number_across_gaps(data: Path) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot", "input": {"q": 1}})]
    lines += [("trace.step", {"step_number": n, "step_type": "thought", "name": f"s{n}"}) for n in (1, 3, 7)]
    Appender(explicit(str(data))).put("gaps", lines, opens=True)
    out = found(data, "gaps", "left", "--fields", "name")
    assert [(d["step_number"], d["field"]) for d in out["diffs"]] == [
        (1, "name"), (2, "missing_left"), (3, "name"), (7, "missing_right"),
    ]  # fmt: skip


def test_words_for_people(data: Path) -> None:
    put(data, "twin", {"input": {"a": 1, "b": [2]}}, {"model": "m1", "error": "x"}, {"decision": {"chosen": "go"}})
    assert run(data, "left", "twin").stdout == "Traces are identical.\n"
    assert (
        run(data, "left", "right", "--fields", "step_type").stdout.splitlines()[-1] == "1 difference: 1 step presence"
    )
    assert (
        run(data, "left", "twin", "--fields", "name,model").stdout
        == "No differences in the selected field(s): name, model.\n"
    )
    result = run(data, "left", "right")
    assert result.stdout.replace("\n", "").isprintable() and "They part at step 2." in result.stdout
    assert "  - m1\n  + m2\n" in result.stdout and result.stdout.splitlines()[-1].startswith(
        "8 differences: 1 in trace_input"
    )
    compact = run(data, "left", "right", "--compact").stdout
    assert "m1" not in compact and "#2 model" in compact


def test_long_values_are_shown_where_they_differ(data: Path) -> None:
    put(data, "long1", {"output": "x" * 500 + "one"})
    put(data, "long2", {"output": "x" * 500 + "two"})
    shown = run(data, "long1", "long2").stdout
    assert "xone" in shown and "xtwo" in shown and max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["left", "none"], 1), (["none", "right"], 1), (["left"], 2), (["left", "right", "--fields", ""], 2), (["left", "right", "--fields", ","], 2),
        (["left", "right", "--fields", "color"], 2), (["left", "right", "--nope"], 2),
    ],
)  # fmt: skip
def test_mistakes(data: Path, words: list[str], status: int) -> None:
    assert run(data, *words).exit_code == status
    assert run(data, *words, "--json").exit_code == status


def test_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert run(tmp_path / "gh", "a", "b").exit_code == 1 and not (tmp_path / "gh").exists()
