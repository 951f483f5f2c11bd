"""From real hook processes to answers: what a harness sent is what the store says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from guardhook.core.folders import Folders, explicit
from guardhook.dialects import table
from guardhook.journal import line, write
from guardhook.journal.rules import freeze_rules
from guardhook.policy import compile as compiler
from guardhook.store import Trace, open_store, project

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "tests" / "fixtures"
POLICY = """
[[policy]]
name = "no-marker"
action = "deny"
reason = "The marker must not be used."
match = { input_contains = "GH-DENY" }
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folder = tmp_path / "gh"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "p.toml").write_text(POLICY)
    found = explicit(str(folder))
    compiler.write(compiler.compile_main(found, redact=freeze_rules))
    return found


def hook(folders: Folders, event: str, *, enforce: bool = False, **payload: object) -> int:
    body = {
        "session_id": "5e55", "transcript_path": "/home/u/.claude/projects/-p/5e55.jsonl", "cwd": "/", "permission_mode": "default",
        "effort": {"level": "medium"}, "hook_event_name": event, **payload,
    }  # fmt: skip
    words = [sys.executable, "-m", "guardhook", "hook", event, "--dialect", "claude-code", "--dir", folders.data]
    done = subprocess.run(
        words + ["--enforce"] * enforce,
        input=json.dumps(body).encode(),
        cwd=REPOSITORY,
        capture_output=True,
        timeout=60,
    )
    return done.returncode


def call(number: int, command: str = "echo", **more: object) -> dict[str, object]:
    return {"tool_name": "Bash", "tool_input": {"command": f"{command} {number}"}, "tool_use_id": f"t{number}", **more}


def only(folders: Folders) -> tuple[Trace, list[tuple[object, object]]]:
    with open_store(folders) as store:
        page = store.traces()
        assert page.total == 1
        return page.items[0], [(s.input, s.output) for s in store.steps(page.items[0]) if s.step_type == "tool_call"]


def test_parallel_hooks_make_one_trace_and_every_result_finds_its_call(folders: Folders) -> None:
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda n: hook(folders, "PreToolUse", **call(n)), range(12))) == {0}
        # In another order than they were called.
        list(
            pool.map(
                lambda n: hook(folders, "PostToolUse", **call(n, tool_response={"stdout": f"out {n}"})),
                reversed(range(12)),
            )
        )
    trace, calls = only(folders)
    assert trace.status == "running" and len(calls) == 12
    for given, result in calls:
        assert isinstance(given, dict) and isinstance(result, dict)
        assert given["command"].split()[1] == result["stdout"].split()[1]


def test_a_session_from_its_start_to_its_end(folders: Folders) -> None:
    hook(folders, "SessionStart", source="startup")
    hook(folders, "UserPromptSubmit", prompt="do it")
    assert hook(folders, "PreToolUse", enforce=True, **call(1, "GH-DENY")) == 2
    hook(folders, "PreToolUse", enforce=True, **call(2))
    hook(folders, "PostToolUse", **call(2, tool_response={"stdout": "2"}, duration_ms=7))
    hook(folders, "Stop", last_assistant_message="done", stop_hook_active=False)
    hook(folders, "PreToolUse", **call(3, canary=True))
    trace, calls = only(folders)
    assert (trace.status, trace.input, trace.output) == ("completed", {"prompt": "do it"}, {"text": "done"})
    assert len(calls) == 2
    with open_store(folders) as store:
        denied, check, allowed, said = store.steps(trace)
        assert denied.error == "blocked by policy no-marker: The marker must not be used."
        assert check.name == "guard:no-marker" and check.caused_by_step_number == 1
        assert allowed.duration_ms == 7 and said.output == {"text": "done"}
        assert [h.event for h in store.happenings(trace)] == ["session_start", "user_prompt"]


def captured() -> list[Path]:
    return sorted(p for p in FIXTURES.rglob("*.json") if p.parent.name in ("claude-code", "codex", "gemini", "others"))


def test_every_captured_payload_folds_without_a_word(folders: Folders) -> None:
    known = 0
    for number, path in enumerate(captured()):
        payload = json.loads(path.read_bytes())
        names = table.candidates(payload, {})
        if not names:
            continue
        event = table.load(names[0]).read(payload, {}, None)
        record = write.Record(
            line.RECEIVED, 1_790_000_000_000_000_000 + number, event.dialect, event.session, event.cwd, None, True, False,
            line.received(event, [], None, None),
        )  # fmt: skip
        assert write.append(folders.journal, record, budget=2.0).state == "recorded"
        known += 1
    with open_store(folders) as store:
        assert store.problems() == []
        assert known == 0 or store.traces(limit=-1).total > 5
    if not known:
        pytest.skip("no captured payloads here")


def test_two_registrations_of_one_client_leave_one_step(folders: Folders) -> None:
    hook(folders, "PreToolUse", **call(1, "GH-DENY"))
    hook(folders, "PreToolUse", enforce=True, **call(1, "GH-DENY"))
    trace, calls = only(folders)
    assert len(calls) == 1
    with open_store(folders) as store:
        assert [s.step_type for s in store.steps(trace)] == ["tool_call", "guard_check"]


def test_one_session_can_be_caught_up_alone(folders: Folders) -> None:
    hook(folders, "PreToolUse", **call(1))
    with open_store(folders) as store:
        trace = store.traces().items[0]
        hook(folders, "PreToolUse", **call(2), session_id="another")
        hook(folders, "PostToolUse", **call(1, tool_response={"stdout": "1"}))
        project.catch_up(store.connection, folders.journal, keys=[line.key("claude-code", "5e55")])
        assert store.step(trace, 1).output == {"stdout": "1"}
        assert store.traces().total == 1


def test_the_store_is_never_needed_by_hooks(folders: Folders) -> None:
    hook(folders, "PreToolUse", **call(1))
    assert not os.path.exists(f"{folders.data}/traces.db")
