"""fork: what is copied, what is changed, what is refused."""

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
    return CliRunner().invoke(main, [*args, "--dir", str(data)], env={"GUARDHOOK_DIR": "", "COLUMNS": "80"})


def shown(data: Path, name: str) -> dict[str, Any]:
    found = json.loads(run(data, "show", name, "--json", "--snapshots").stdout)
    assert isinstance(found, dict)
    return found


def forked(data: Path, *args: str) -> tuple[dict[str, Any], dict[str, Any]]:
    result = run(data, "fork", "trc_a", *args, "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    return made, shown(data, made["trace_id"])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "gh"
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": HOSTILE, "input": {"q": 1}, "tags": ["t"], "metadata": {"m": 1}, "session_id": "s", "agent_version": "2"}),
        (
            "trace.step",
            {
                "step_number": 1, "step_type": "tool_call", "name": "Bash", "input": {"command": HOSTILE}, "output": [1], "tokens_used": 5, "model": "m",
                "duration_ms": 9, "decision": {"chosen": "go", "options": [{"option": "go"}], "confidence": 0.5, "decided_by": "user"},
                "snapshot": {"context_window": ["c"], "token_count": 3},
            },
        ),
        ("trace.step_start", {"step_number": 2, "step_type": "thought", "name": "open", "parent_step": 1, "caused_by_step": 1}),
        ("trace.step", {"step_number": 5, "step_type": "tool_call", "name": "Bash", "error": "broke"}),
        ("trace.end", {"status": "failed", "error": "broke", "output": {"o": 1}, "total_tokens": 99}),
    ]  # fmt: skip
    Appender(explicit(str(found)), redaction="full").put("trc_a", lines, opens=True)
    return found


def test_texts_that_look_like_json_stay_texts(tmp_path: Path) -> None:
    """Tools print JSON, and hooks and imports keep it as the text that it was."""
    base = tmp_path / "gh"
    said = {"step_type": "tool_call", "name": "Bash", "verbatim": True}
    lines: list[tuple[str, dict[str, object]]] = [
        ("trace.start", {"agent_name": "a", "input": "[1, 2]", "verbatim": True}),
        ("trace.step", {"step_number": 1, "input": '{"a": 1}', "output": '{"x": 1}', **said}),
        ("trace.step", {"step_number": 2, "input": {"b": '{"a": 1}'}, "output": "[1]", **said}),
    ]
    Appender(explicit(str(base))).put("trc_a", lines, opens=True)
    _, copy = forked(base, "--from-step", "2")
    assert copy["input"] == "[1, 2]"
    assert [(s["input"], s["output"]) for s in copy["steps"]] == [('{"a": 1}', '{"x": 1}'), ({"b": '{"a": 1}'}, "[1]")]
    assert "verbatim" not in json.dumps(copy)


def test_the_copy_is_equal_up_to_its_step_and_lives_in_the_journal(data: Path) -> None:
    original = shown(data, "trc_a")
    made, copy = forked(data, "--from-step", "2")
    assert list(made) == ["trace_id", "parent_trace_id", "forked_from_step", "steps", "modified"]
    assert (made["parent_trace_id"], made["forked_from_step"], made["steps"], made["modified"]) == ("trc_a", 2, 2, [])
    assert (copy["status"], copy["trigger"], copy["parent_trace_id"], copy["forked_from_step"]) == (
        "running",
        "manual",
        "trc_a",
        2,
    )
    for name in ("agent_name", "agent_version", "input", "session_id", "tags"):
        assert copy[name] == original[name]
    assert copy["metadata"] == {"m": 1, "forked_from": "trc_a", "forked_at_step": 2}
    assert copy["output"] is copy["error"] is copy["total_tokens"] is None
    own = {"id", "trace_id", "decision"}
    for old, new in zip(original["steps"][:2], copy["steps"], strict=True):
        assert {k: v for k, v in old.items() if k not in own} == {k: v for k, v in new.items() if k not in own}
        assert old["id"] != new["id"]
    assert copy["steps"][0]["decision"]["chosen"] == "go" and copy["steps"][0]["decision"]["decided_by"] == "user"
    (data / "traces.db").unlink()
    assert shown(data, made["trace_id"]) == copy and shown(data, "trc_a") == original


def test_changes_of_input_and_context(data: Path) -> None:
    made, copy = forked(
        data, "--from-step", "1", "--modify-input", '{"q": 2}', "--modify-context", '{"c": 2}', "--tag", "new"
    )
    assert made["modified"] == ["input", "context"] and copy["input"] == {"q": 2} and copy["tags"] == ["t", "new"]
    assert copy["steps"][0]["snapshot"] == {
        "context_window": {"c": 2},
        "environment": {},
        "tool_state": {},
        "token_count": 3,
    }
    _, bare = forked(data, "--from-step", "5", "--modify-context", '{"c": 3}')
    assert bare["steps"][2]["snapshot"] == {
        "context_window": {"c": 3},
        "environment": {},
        "tool_state": {},
        "token_count": 0,
    }
    unchanged, same = forked(data, "--from-step", "1", "--modify-input", "null", "--modify-context", "null")
    assert unchanged["modified"] == [] and same["input"] == {"q": 1}


def test_what_a_person_types_is_kept_without_secrets(data: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    _, copy = forked(data, "--from-step", "1", "--modify-input", json.dumps({"token": secret}))
    assert secret not in json.dumps(copy) and "token" in copy["input"]


def test_people_read_one_line(data: Path) -> None:
    result = run(data, "fork", "trc_a", "--from-step", "1")
    assert result.stdout.startswith("trc_") and result.stdout.endswith(": 1 step(s) of trc_a\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["trc_a", "--from-step", "3"], 1), (["none", "--from-step", "1"], 1), (["trc_a"], 2), (["trc_a", "--from-step", "0"], 2), (["trc_a", "--from-step", "1.5"], 2),
        (["trc_a", "--from-step", "1", "--modify-input", "7"], 2), (["trc_a", "--from-step", "1", "--modify-context", "[]"], 2),
        (["trc_a", "--from-step", "1", "--modify-input", "{"], 2), (["trc_a", "--from-step", "1", "--tag", " "], 2),
    ],
)  # fmt: skip
def test_mistakes_make_nothing(data: Path, words: list[str], status: int) -> None:
    assert run(data, "fork", *words).exit_code == status
    assert run(data, "fork", *words, "--json").exit_code == status
    assert json.loads(run(data, "list", "--json").stdout)["total"] == 1


def test_where_nothing_was_recorded(tmp_path: Path) -> None:
    assert run(tmp_path / "gh", "fork", "x", "--from-step", "1").exit_code == 1 and not (tmp_path / "gh").exists()
