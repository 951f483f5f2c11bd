"""drift: comparing streams, and recorded sessions under today's guardhook."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rollout_rig import numbered, run, written
from store_rig import SESSION, Journal, event

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.journal import pack, write
from guardhook.rollout.drift import compare
from guardhook.rollout.load import Event, load
from guardhook.store import Appender

Events = list[tuple[str, dict[str, Any]]]
NO_LS = '[[policy]]\nname = "no-ls"\naction = "ACTION"\nreason = "r"\nmatch = { program = "frobnicate" }\n'


def stream() -> Events:
    def call(step: int, name: str, given: str) -> Events:
        return [
            (
                "llm.turn.completed",
                {"step": step, "content": "", "tool_calls": [{"id": name, "name": "Bash", "arguments": given}]},
            ),
            ("tool.call.started", {"step": step, "call_id": name, "tool": "Bash", "arguments": given}),
            ("tool.call.completed", {"step": step, "call_id": name, "tool": "Bash", "output": "x", "duration_ms": 5}),
        ]

    return [
        ("run.started", {"step": 0, "prompt": "p", "run_id": "r", "conversation_id": "c"}), *call(1, "a", "1"), *call(1, "b", "2"), *call(2, "c", "3"),
        ("assistant.message", {"step": 2, "content": "done"}), ("usage.delta", {"step": 2, "cumulative_cost_usd": 0.5, "turn_cost_usd": 0.5}),
        ("run.completed", {"step": 3}),
    ]  # fmt: skip


def events(tmp_path: Path, given: Events) -> list[Event]:
    return load(str(written(tmp_path / "s.jsonl", *numbered(*given)))).events


def compared(tmp_path: Path, change: Callable[[Events], Events | None], *, original: bool = False) -> dict[str, Any]:
    changed = copy.deepcopy(stream())
    changed = change(changed) or changed
    a, b = events(tmp_path, stream()), events(tmp_path, changed)
    return compare(b, a) if original else compare(a, b)


def test_the_same_stream(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda s: None)
    assert found["matched"] is True and found["outcome_diff"] == "identical" and found["cost_delta_usd"] == 0
    assert all(found[k] == [] for k in ("added_steps", "removed_steps", "changed_steps", "divergent_tool_calls"))


def swap(s: Events) -> Events:
    return [s[0], *s[4:7], *s[1:4], *s[7:]]


def times(s: Events) -> None:
    for _, data in s:
        data.update(
            conversation_id="other", run_id="other", duration_ms=9, provider="x", prompt_hash="y", model_version="z"
        )


def price(s: Events) -> None:
    s[-2][1].update(cumulative_cost_usd=0.75, turn_cost_usd=0.75)


@pytest.mark.parametrize("change", [swap, times, price])
def test_what_is_no_drift(tmp_path: Path, change: Callable[[Events], Events | None]) -> None:
    found = compared(tmp_path, change)
    assert found["matched"] is True, found
    assert found["cost_delta_usd"] == (0.25 if change is price else 0)


def content(s: Events) -> None:
    s[-3][1]["content"] = "else"


def test_changed_content(tmp_path: Path) -> None:
    found = compared(tmp_path, content)
    assert found["matched"] is False and found["changed_steps"] == [2] and found["divergent_tool_calls"] == []


def test_changed_arguments(tmp_path: Path) -> None:
    def change(s: Events) -> None:
        s[5][1]["arguments"] = "9"

    found = compared(tmp_path, change)
    assert found["divergent_tool_calls"] == [
        {"step": 1, "call_id": "b", "side": "both", "original_tool": "Bash", "original_args": "2", "replayed_tool": "Bash", "replayed_args": "9"}
    ]  # fmt: skip


def test_missing_and_added_steps(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda s: s[:7])
    assert found["removed_steps"] == [2, 3] and found["outcome_diff"] == "diverged" and not found["matched"]
    assert [c["side"] for c in found["divergent_tool_calls"]] == ["original"]
    found = compared(tmp_path, lambda s: s[:7], original=True)
    assert found["added_steps"] == [2, 3] and [c["side"] for c in found["divergent_tool_calls"]] == ["replayed"]
    phantom = compared(
        tmp_path, lambda s: [*s[:7], ("llm.turn.completed", {"step": 1, "content": "boo"}), *s[7:]], original=True
    )
    assert phantom["matched"] is False and phantom["changed_steps"] == [1]


def test_another_outcome(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda s: [*s[:-1], ("run.failed", {"step": 3})])
    assert found["outcome_diff"] == "completed-vs-failed" and not found["matched"]
    assert (
        compared(tmp_path, lambda s: [*s[:-1], ("run.failed", {"step": 3})], original=True)["outcome_diff"]
        == "failed-vs-completed"
    )
    unknown = events(tmp_path, stream()[:-1])
    assert compare(unknown, unknown)["outcome_diff"] == "identical" and compare(unknown, unknown)["matched"] is True


# --- recorded sessions ----------------------------------------------------------------------------------------------


def hooked(base: Path, *payloads: dict[str, object]) -> None:
    """Payloads through the real hook, enforcing."""
    base.mkdir(exist_ok=True)
    for payload in payloads:
        body = {
            "session_id": SESSION,
            "transcript_path": f"/c/projects/x/{SESSION}.jsonl",
            "cwd": "/",
            "permission_mode": "default",
            **payload,
        }
        words = [sys.executable, "-m", "guardhook", "hook", "--enforce", "--dialect", "claude-code", "--dir", str(base)]
        subprocess.run(
            words, input=json.dumps(body).encode(), capture_output=True, timeout=60, check=False, env={**os.environ}
        )


def bash(name: str, call: str, command: str, **more: object) -> dict[str, object]:
    return {
        "hook_event_name": name,
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": call,
        **more,
    }


def drift(base: Path, *words: str, status: int) -> dict[str, Any]:
    result = run("drift", *(words or (SESSION,)), "--json", data=base)
    assert result.exit_code == status, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that the real hook recorded: an allowed call, a denied one, one that only a policy of the user's would mind."""
    base = tmp_path_factory.mktemp("drift") / "gh"
    hooked(
        base, {"hook_event_name": "UserPromptSubmit", "prompt": "p"}, bash("PreToolUse", "1", "ls"), bash("PostToolUse", "1", "ls", tool_response={"stdout": "x"}),
        bash("PreToolUse", "2", "rm -rf /"), bash("PreToolUse", "3", "frobnicate x"), bash("PostToolUse", "3", "frobnicate x", tool_response={"stdout": "y"}),
        bash("PreToolUse", "4", "rm -rf ~"), {"hook_event_name": "Stop"},
    )  # fmt: skip
    return base


@pytest.fixture
def policies(base: Path) -> Any:
    """A way to write policies, that are gone afterwards."""
    file = base / "policies" / "mine.toml"

    def write(text: str) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    yield write
    file.unlink(missing_ok=True)


def test_a_session_that_is_judged_as_it_was(base: Path) -> None:
    found = drift(base, status=0)
    assert list(found) == ["mode", "matched", "integrity", "drift"] and found["matched"] is True
    assert set(found["integrity"]) == {"events_replayed", "step_count", "matched", "mismatches"}
    inner = found["drift"]
    assert inner["matched"] is True and inner["unevaluable"] == [] and inner["divergent_tool_calls"] == []
    policy = inner["policy"]
    assert (
        policy["evaluated"] == 4
        and policy["changes"] == []
        and policy["counts"] == {"stricter": 0, "looser": 0, "cited_policy": 0, "error": 0}
    )
    assert policy["matched"] is True and policy["policy_set"]["then"] == policy["policy_set"]["now"]


def test_stricter(base: Path, policies: Any) -> None:
    policies(NO_LS.replace("ACTION", "deny"))
    found = drift(base, status=3)["drift"]
    (change,) = found["policy"]["changes"]
    assert change == {
        "step": 3, "call_id": "3", "tool": "Bash", "then": {"action": "allow", "policy": None}, "now": {"action": "deny", "policy": "no-ls", "reason": "r"},
        "class": "stricter", "first_divergent_call": True,
    }  # fmt: skip
    assert found["policy"]["policy_set"]["then"] != found["policy"]["policy_set"]["now"]
    assert found["matched"] is False and found["changed_steps"] == [3]
    text = run("drift", SESSION, data=base).stdout
    assert "1 stricter" in text and "allow (-) -> deny (no-ls)" in text


def test_looser_and_other_policy(base: Path, policies: Any) -> None:
    policies(NO_LS.replace("ACTION", "deny").replace("no-ls", "mine").replace("frobnicate", "rm") + "priority = 1000\n")
    found = drift(base, status=3)["drift"]["policy"]
    assert {c["class"] for c in found["changes"]} == {"cited_policy"} and found["matched"] is True
    (base / "policies" / "mine.toml").unlink()
    (base / "config.toml").write_text('[gate]\npreset = "observe"\n')
    try:
        found = drift(base, status=3)["drift"]
    finally:
        (base / "config.toml").unlink()
    assert found["changed_steps"] and not found["matched"]


def marked(name: str, call: str | None = None, **more: object) -> dict[str, object]:
    """An event whose payload is recognised as Claude Code's."""
    given = {"transcript_path": f"/c/projects/x/{SESSION}.jsonl", "cwd": "/home/user/project"}
    if call is None:
        return event(name, **given, **more)  # type: ignore[arg-type]
    command = {"command": more.pop("command", "ls")}
    return event(name, tool="Bash", given=command, call=call, tool_use_id=call, **given, **more)  # type: ignore[arg-type]


def test_a_deny_that_would_be_allowed_today(journal: Journal) -> None:
    verdict = {"action": "deny", "policy": "gone", "reason": "r", "mode": "enforce", "cause": "policy", "set": "s", "us": 1, "answer": {"exit": 2, "stdout": "", "stderr": "r"}}  # fmt: skip
    journal.add(marked("user_prompt", prompt="p"), marked("pre_tool", "1", verdict=verdict))
    found = drift(journal.base, status=3)["drift"]
    (change,) = found["policy"]["changes"]
    assert (change["class"], change["now"]["action"]) == ("looser", "allow") and found["policy"]["matched"] is False
    assert found["changed_steps"] == [1]


def test_what_can_t_be_judged_again_is_counted(journal: Journal) -> None:
    verdict = {"action": "allow", "policy": None, "mode": "enforce", "cause": "policy", "set": "s", "us": 1}
    for number, more in enumerate(({"redacted": ["/tool_input/command"]}, {"cut": ["/x"]}, {"stripped": True}), 1):
        journal.add(marked("pre_tool", str(number), command="[REDACTED:x]", verdict=verdict, line_data=more))
    journal.add(marked("pre_tool", "9"))
    found = drift(journal.base, status=0)["drift"]
    assert [(u["call_id"], u["why"]) for u in found["policy"]["unevaluable"]] == [("1", "redacted"), ("2", "cut"), ("3", "stripped"), ("9", "not judged then")]  # fmt: skip
    assert [u["why"] for u in found["unevaluable"]] == ["redacted", "cut", "stripped"]
    assert found["policy"]["evaluated"] == 0 and "unevaluable" in run("drift", SESSION, data=journal.base).stdout


def test_an_event_that_nobody_recognises_any_more_is_drift(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p"), event("pre_tool", tool="Bash", given={"command": "ls"}, call="1"))
    found = drift(journal.base, status=3)["drift"]
    assert found["matched"] is False and found["changed_steps"]


def test_a_verdict_that_is_owed_to_the_disk(tmp_path: Path) -> None:
    base, work = tmp_path / "gh", tmp_path / "work"
    work.mkdir()
    script = work / "x.sh"
    script.write_text("echo hi\n")
    hooked(base, {"hook_event_name": "UserPromptSubmit", "prompt": "p"}, bash("PreToolUse", "1", f"sh {script}"))
    script.write_text("rm -rf /\n")
    found = drift(base, status=3)["drift"]["policy"]
    (change,) = found["changes"]
    assert change["class"] == "stricter" and change["environment"] is True and found["matched"] is True
    assert drift(base, SESSION, "--strict", status=3)["drift"]["policy"]["matched"] is False


def test_files_and_many_runs(base: Path, tmp_path: Path, policies: Any) -> None:
    file = tmp_path / "r.jsonl"
    file.write_bytes(run("export", SESSION, data=base).stdout_bytes)
    assert drift(base, str(file), status=0)["matched"] is True
    found = drift(base, "--since", "2020-01-01", status=0)
    assert found["matched"] is True and [r["drift"]["matched"] for r in found["runs"]] == [True]
    policies(NO_LS.replace("ACTION", "require_review"))
    found = drift(base, "--since", "2020-01-01", status=3)
    assert found["runs"][0]["drift"]["policy"]["counts"]["stricter"] == 1
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(file.read_bytes().replace(b"frobnicate x", b"frobnicate y"))
    assert (
        drift(base, str(changed), status=3)["drift"]["divergent_tool_calls"][0]["original_args"]
        == '{"command":"frobnicate y"}'
    )


def test_calls_of_scripts_are_no_drift(tmp_path: Path) -> None:
    """They carry no harness's payload: `--since` told each as "not recognised any more"."""
    data = tmp_path / "gh"
    data.mkdir()
    step = '{"name": "deploy", "step_type": "tool_call", "input": {"command": "ls"}}'
    check = [sys.executable, "-m", "guardhook", "guard", "check", "--dir", str(data)]
    assert subprocess.run(check, input=step, text=True, capture_output=True, timeout=60).returncode == 0
    assert drift(data, "--since", "2020-01-01", status=0)["runs"] == []
    (item,) = json.loads(CliRunner().invoke(main, ["list", "--json", "--dir", str(data)]).output)["items"]
    result = run("drift", item["id"], data=data)
    assert result.exit_code == 1 and "guard check" in result.output


def test_mistakes(base: Path, tmp_path: Path) -> None:
    strange = str(written(tmp_path / "s.jsonl", *numbered(("run.started", {"step": 0, "run_id": "run_nobody"}))))
    nameless = str(written(tmp_path / "n.jsonl", *numbered(("run.started", {"step": 0}))))
    for words, status in (
        ([], 2),
        ([SESSION, "--since", "1d"], 2),
        (["nothing"], 1),
        ([strange], 1),
        ([nameless], 1),
        (["--since", "x"], 2),
    ):
        result = run("drift", *words, data=base)
        assert result.exit_code == status and isinstance(result.exception, SystemExit), (words, result.output)
    assert explicit(str(base)).journal


def test_a_run_of_more_events_than_a_rollout_may_have_is_refused_before_it_is_judged(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was judged and held in memory to its end, and then refused by a line number of a file that nobody has."""
    from guardhook.rollout import drift, limits

    journal.add(event("user_prompt", prompt="p"), *(event("notification") for _ in range(30)))
    monkeypatch.setattr(limits, "EVENTS", 20)

    class Judged(drift.Rejudge):
        def line(self, data: dict[str, object]) -> drift.Again:
            raise AssertionError("it was judged")

    monkeypatch.setattr(drift, "Rejudge", Judged)
    result = run("drift", SESSION, data=journal.base)
    assert result.exit_code == 1 and "more than the 20 events" in result.stderr and "line" not in result.stderr
    result = run("simulate", SESSION, data=journal.base)
    assert result.exit_code == 1 and "--by turn" in result.stderr and "line 21" not in result.stderr


def test_many_runs_that_no_hook_told_of_are_counted_not_listed(journal: Journal) -> None:
    for number in range(5):
        lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot"}), ("trace.end", {})]
        Appender(journal.folders).put(f"told-{number}", lines, opens=True)
    result = run("drift", "--since", "9999d", data=journal.base)
    assert result.exit_code == 0 and "0 runs, 0 of them drifted" in result.stdout
    said = result.stderr.splitlines()
    assert len(said) == 4 and "2 more runs were left out" in said[-1]
    assert len(json.loads(run("drift", "--since", "9999d", "--json", data=journal.base).stdout)["skipped"]) == 5


def test_a_session_that_can_not_be_read_hides_no_other(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p"))
    for number in range(30):
        journal.add(event("user_prompt", prompt=f"{number} {'x' * 400}", session="other"))
    path = journal.path(session="other")
    held = write.Session(journal.folders.journal, path.stem, "claude-code", "other")
    held.lock(float("inf"))
    assert pack.compress(held, path.parent.name)
    held.close()
    journal.open().close()
    packed = path.with_suffix(".jsonl.gz")
    data = bytearray(packed.read_bytes())
    data[len(data) // 2] ^= 0xFF
    with packed.open("r+b") as file:
        file.write(data)
    result = run("drift", "--since", "9999d", "--json", data=journal.base)
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and len(found["runs"]) == len(found["skipped"]) == 1
    assert "damaged" in found["skipped"][0] and "Errno" not in found["skipped"][0]
