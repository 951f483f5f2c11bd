"""Payloads of all harnesses, as their clients sent them, through the real reader: whatever they hold, the rollout can be loaded, and nothing of it is dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rollout_rig import loaded, rendered, told, types
from store_rig import Journal

from guardhook.dialects import table
from guardhook.journal import line
from guardhook.rollout.runs import list_runs
from guardhook.rollout.simulate import simulate

PAYLOADS = Path(__file__).parents[1] / "fixtures" / "payloads"


def payloads(folder: str) -> Iterator[dict[str, object]]:
    for path in sorted((PAYLOADS / folder).rglob("*.json")):
        value = json.loads(path.read_text())
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield one.get("payload", one) if isinstance(one.get("payload"), dict) else one  # type: ignore[misc]


def recorded(journal: Journal, folder: str) -> int:
    count = 0
    for payload in payloads(folder):
        dialect, _ = table.choose(table.candidates(payload, {}), None)
        if dialect is None:
            continue
        event = table.load(dialect).read(payload, {}, None)
        event.session = f"{dialect}-session"
        journal.add(line.received(event, [], None, None), step=2.0)
        count += 1
    return count


@pytest.mark.parametrize("folder", ["claude-code", "codex", "gemini", "qwen-code", "others"])
def test_every_event_leaves_something_that_can_be_loaded(journal: Journal, tmp_path: Path, folder: str) -> None:
    assert recorded(journal, folder) > 3
    kinds: set[str] = set()
    for ref in list_runs(journal.folders):
        events = rendered(journal, ref.run_id)
        found = loaded(journal, tmp_path / f"{ref.run_id}.jsonl", ref.run_id)
        assert len(found.events) == len(events) and found.gaps == []
        assert not simulate(found.events).mismatches or simulate(found.events).events_replayed == len(events)
        kinds |= {kind for kind, _ in types(events)}
    assert {"run.started", "tool.call.started"} <= kinds
    if folder in ("claude-code", "codex", "gemini"):
        assert {"tool.call.completed", "run.waiting_for_user"} <= kinds


def test_a_codex_session_in_order(journal: Journal, tmp_path: Path) -> None:
    names = ["session_start", "user_prompt_submit", "pre_model_request", "post_model_request", "pre_tool_use.bash", "post_tool_use.bash", "stop", "session_end"]  # fmt: skip
    for name in names:
        payload = json.loads((PAYLOADS / "codex" / f"{name}.json").read_text())
        event = table.load("codex").read(payload, {}, None)
        event.session = "s"
        journal.add(line.received(event, [], None, None), **({"closes": True} if name == "session_end" else {}))
    events = rendered(journal, "s")
    assert [k for k, _ in types(events)] == [
        "run.started", "llm.turn.requested", "usage.delta", "llm.turn.completed", "llm.turn.completed", "tool.call.started", "tool.call.completed",
        "llm.turn.completed", "assistant.message", "run.step.completed", "run.waiting_for_user", "run.completed",
    ]  # fmt: skip
    assert simulate(loaded(journal, tmp_path / "r", "s").events).matched
    assert told(events, "run.completed")[0]["usage_totals"]["total_tokens"] == 120  # type: ignore[index]
