"""`[capture] mode` for runs that are recorded, ingested and imported: what is kept of their contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from record_rig import feed, guardhook, only, opened

from guardhook.commands import main

SECRET = "the words of a person"
LINES: list[dict[str, Any]] = [
    {"type": "trace_start", "trace_id": "t1", "agent_name": "bot", "input": SECRET, "tags": ["t"], "metadata": {"source": "x", "note": SECRET, "n": 1}},
    {"type": "step", "trace_id": "t1", "step_number": 1, "step_type": "tool_call", "name": "Bash", "input": {"command": SECRET}, "output": SECRET, "error": SECRET, "tokens_used": 5,
     "decision": {"chosen": SECRET, "options": [{"option": SECRET, "score": 1}], "confidence": 0.5, "decided_by": "user"}, "snapshot": {"context_window": [SECRET], "token_count": 3}},
    {"type": "decision", "trace_id": "t1", "step_number": 1, "chosen": SECRET, "rationale": SECRET, "decided_by": "policy"},
    {"type": "trace_end", "trace_id": "t1", "status": "failed", "error": SECRET, "total_tokens": 9},
]  # fmt: skip


def journal(data: Path) -> str:
    return "".join(path.read_text() for path in data.glob("journal/*/*.jsonl"))


@pytest.mark.parametrize("mode", ["hashed", "none"])
def test_contents_are_left_out_and_the_rest_stays(tmp_path: Path, mode: str) -> None:
    fed = feed(tmp_path, LINES, redaction=mode)
    assert fed.warnings == [] and SECRET not in journal(tmp_path)
    trace, (step,) = only(tmp_path)
    assert (trace.agent_name, trace.status, trace.total_tokens, trace.tags) == ("bot", "failed", 9, ["t"])
    assert (trace.metadata["source"], trace.metadata["n"], bool(trace.error)) == ("x", 1, True)
    assert (step.name, step.tokens_used, bool(step.error)) == ("Bash", 5, True)
    assert step.decision is not None and step.decision.decided_by == "policy" and step.decision.chosen
    with opened(tmp_path) as store:
        assert store.problems() == [] and [s.token_count for s in store.snapshots(trace)] == [
            3 if mode == "hashed" else 0
        ]


@pytest.mark.parametrize(
    ("mode", "kept"), [("full", True), ("redacted", False), ("hashed", False), ("none", False), ("odd", False)]
)
def test_the_commands_look_at_the_setting(tmp_path: Path, mode: str, kept: bool) -> None:
    secret = "ghp_" + "a1B2" * 9
    trace = {"agent_name": "bot", "steps": [{"step_number": 1, "step_type": "thought", "name": "x", "output": secret}]}
    for number, words in enumerate((["ingest", "-"], ["record"], ["run", "--quiet", "--", "true", secret])):
        data = tmp_path / str(number)
        data.mkdir()
        (data / "config.toml").write_text(f'[capture]\nmode = "{mode}"\n')
        lines = (
            [trace]
            if words[0] == "ingest"
            else [{"type": "trace_start", "trace_id": "t", "agent_name": "bot", "input": secret}]
        )
        stdin = "".join(json.dumps(line) + "\n" for line in lines).encode()
        done = guardhook(tmp_path, words[0], "--dir", str(data), *words[1:], stdin=stdin)
        assert done.returncode == 0, done.stderr
        assert (secret in journal(data)) is kept
        with opened(data) as store:
            assert store.traces().total == 1 and store.problems() == []


def test_a_broken_setting_stops_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[capture\n")
    for words in (["ingest", "-"], ["record"], ["run", "--", "true"]):
        result = CliRunner().invoke(main, [words[0], "--dir", str(tmp_path), *words[1:]])
        assert result.exit_code == 1 and "config.toml" in result.stderr and not (tmp_path / "journal").exists()
