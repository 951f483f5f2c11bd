"""What single hook events become: order, steps, names of calls, how runs end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rollout_rig import bash, brief, data, loaded, prompt, rendered, told, types
from store_rig import Event, Journal, event, said

from guardhook.rollout.simulate import simulate

# --- how a run begins -----------------------------------------------------------------------------------------------


def test_a_run_without_a_prompt_says_so(journal: Journal) -> None:
    journal.add(bash("pre_tool", "1", verdict={**said("allow", None), "set": "abc"}))
    events = rendered(journal)
    assert brief(events)[:2] == ["0 run.started", "1 llm.turn.completed"]
    started = data(events, "run.started")
    assert started["prompt_recorded"] is False and "prompt" not in started and started["policy_set"] == "abc"


def test_a_session_that_only_began(journal: Journal) -> None:
    journal.add(event("session_start", source="resume", model="m", permission_mode="plan"))
    events = rendered(journal)
    assert brief(events) == ["0 run.started"]
    assert data(events, "run.started")["session"] == {
        "source": "resume", "model": "m", "permission_mode": "plan", "cwd": "/home/user/project", "harness": "claude-code", "harness_version": "2.1.332",
    }  # fmt: skip


def test_a_session_that_ended_at_once_has_a_step(journal: Journal) -> None:
    journal.add(event("session_start"))
    journal.add(event("session_end", reason="clear"), closes=True)
    assert brief(rendered(journal)) == ["0 run.started", "1 run.completed"]
    assert data(rendered(journal), "run.completed")["reason"] == "clear"


def test_results_alone_begin_a_run_once_something_opened_it(journal: Journal, tmp_path: Path) -> None:
    journal.add(bash("post_tool", "0", tool_response="x"), prompt())
    events = rendered(journal)
    assert brief(events) == ["0 run.started", "1 tool.call.completed", "1 steering.received"]
    assert data(events, "tool.call.completed")["unpaired"] is True
    found = loaded(journal, tmp_path / "r.jsonl")
    assert simulate(found.events).mismatches == ['tool.call.completed "0" has no corresponding tool.call.started']
    assert simulate(found.events).detail["unpaired"] == ["0"]


# --- prompts and stops -----------------------------------------------------------------------------------------------


def test_prompts_before_and_after_the_agent_stopped(journal: Journal) -> None:
    journal.add(
        prompt("one"),
        bash("pre_tool", "1"),
        event("user_prompt", prompt="wait"),
        event("stop", last_assistant_message="ok"),
        prompt("two"),
    )
    events = rendered(journal)
    assert brief(events)[3:] == [
        "1 steering.received", "2 llm.turn.completed", "2 assistant.message", "2 run.step.completed", "2 run.waiting_for_user", "3 conversation.continued",
    ]  # fmt: skip
    steering, later = data(events, "steering.received"), data(events, "conversation.continued")
    assert (steering["message"], steering["content"], later["message"], later["prior_message_count"]) == (
        "wait",
        "wait",
        "two",
        3,
    )


def test_a_stop_after_words_alone_needs_no_step_of_its_own(journal: Journal) -> None:
    journal.add(prompt(), event("stop", last_assistant_message="hi"))
    assert brief(rendered(journal))[1:3] == ["1 llm.turn.completed", "1 assistant.message"]
    journal.add(prompt("2"), event("stop"))
    events = rendered(journal)
    assert brief(events)[5:] == [
        "2 conversation.continued",
        "2 llm.turn.completed",
        "2 run.step.completed",
        "2 run.waiting_for_user",
    ]


def test_a_blocked_prompt(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p", verdict=said("deny", "no-secrets")))
    events = rendered(journal)
    assert brief(events) == ["0 run.started", "1 hook.started", "1 hook.completed"]
    found = data(events, "hook.completed")
    assert (found["action"], found["policy"], found["blocked"], found["stage"]) == (
        "deny",
        "no-secrets",
        True,
        "user_prompt_submit",
    )


# --- steps of calls --------------------------------------------------------------------------------------------------


def test_calls_one_after_the_other_and_overlapping_ones(journal: Journal) -> None:
    journal.add(
        prompt(),
        bash("pre_tool", "1"),
        bash("post_tool", "1"),
        bash("pre_tool", "2"),
        bash("pre_tool", "3"),
        bash("post_tool", "3"),
    )
    journal.add(bash("post_tool", "2"), bash("pre_tool", "4", verdict=said("deny")), bash("pre_tool", "5"))
    steps = {d["call_id"]: d["step"] for d in told(rendered(journal), "tool.call.started")}
    assert steps == {"1": 1, "2": 2, "3": 2, "4": 3, "5": 4}


def test_sub_agents_have_steps_of_their_own(journal: Journal) -> None:
    journal.add(
        prompt(),
        event("pre_tool", tool="Task", given={}, call="t", kind="subagent"),
        event("subagent_start", agent="a1", agent_type="Explore"),
    )
    journal.add(
        bash("pre_tool", "x", agent="a1"),
        bash("post_tool", "x", agent="a1"),
        event("subagent_stop", agent="a1", last_assistant_message="found"),
    )
    journal.add(event("post_tool", tool="Task", given={}, call="t", tool_response="r"))
    events = rendered(journal)
    assert [(d["call_id"], d["step"], d.get("agent_id")) for d in told(events, "tool.call.started")] == [
        ("t", 1, None),
        ("x", 2, "a1"),
    ]
    assert data(events, "spawn_agent.started") == {"step": 1, "agent_type": "Explore", "agent_id": "a1"}
    assert data(events, "spawn_agent.completed")["output"] == "found"
    assert {d["call_id"]: d["step"] for d in told(events, "tool.call.completed")} == {"x": 2, "t": 2}


def test_calls_without_ids_are_numbered_and_paired(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", None, "a"), bash("pre_tool", None, "b"))
    journal.add(
        bash("post_tool", None, "b", tool_response="B"),
        bash("post_tool", None, "changed", tool_response="A"),
        bash("post_tool", None, "c"),
    )
    events = rendered(journal)
    assert [(d["call_id"], d["arguments"]) for d in told(events, "tool.call.started")] == [
        ("gh_1", '{"command":"a"}'),
        ("gh_2", '{"command":"b"}'),
    ]
    ends = told(events, "tool.call.completed")
    assert [(d["call_id"], d["output"], d.get("pairing"), d.get("unpaired")) for d in ends] == [
        ("gh_2", "B", None, None), ("gh_1", "A", "fifo", None), ("gh_3", "", None, True),
    ]  # fmt: skip
    assert ends[1]["executed_arguments"] == '{"command":"changed"}'


def test_ids_that_are_too_long_are_replaced(journal: Journal, tmp_path: Path) -> None:
    name = "x" * 300
    journal.add(prompt(), bash("pre_tool", name), bash("post_tool", name))
    events = rendered(journal)
    started = data(events, "tool.call.started")
    assert (
        started["call_id"] == "gh_1"
        and len(started["call_id_sha256"]) == 64
        and data(events, "tool.call.completed")["call_id"] == "gh_1"
    )
    assert simulate(loaded(journal, tmp_path / "r").events).matched


def test_a_call_that_two_registrations_reported_is_one(journal: Journal) -> None:
    journal.add(
        prompt(),
        prompt(),
        bash("pre_tool", "1"),
        bash("pre_tool", "1", verdict=said("deny")),
        bash("pre_tool", "1"),
        step=0.01,
    )
    assert brief(rendered(journal)) == [
        "0 run.started", "1 llm.turn.completed", "1 tool.call.started", "1 tool_hook.started", "1 tool_hook.completed", "1 tool.call.blocked", "1 tool.call.completed",
    ]  # fmt: skip


def test_canary_lines_count_nowhere(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1", line_data={"canary": True}))
    assert brief(rendered(journal)) == ["0 run.started"]


# --- verdicts, approvals, refusals ------------------------------------------------------------------------------------


def test_a_denial_in_the_words_that_the_agent_got(journal: Journal) -> None:
    answer = {
        "exit": 0,
        "stdout": json.dumps({"hookSpecificOutput": {"permissionDecisionReason": "not that"}}),
        "stderr": "",
    }
    journal.add(prompt(), bash("pre_tool", "1", verdict={**said("deny"), "answer": answer}))
    journal.add(
        bash(
            "pre_tool", "2", verdict={**said("deny"), "answer": {"exit": 2, "stdout": "", "stderr": "guardhook: no\n"}}
        )
    )
    ends = told(rendered(journal), "tool.call.completed")
    assert [(d["output"], d["error"], d["executed"], d["duration_ms"]) for d in ends] == [
        ("not that", "permission_denied", False, 0), ("guardhook: no", "permission_denied", False, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("action", "word"), [("allow", "allow"), ("warn", "warn"), ("require_review", "ask"), ("deny", "deny")]
)
def test_words_for_decisions(journal: Journal, action: str, word: str) -> None:
    journal.add(prompt(), bash("pre_tool", "1", verdict=said(action, exit=0)))
    found = data(rendered(journal), "tool_hook.completed")
    assert (found["decision"], found["policy"], found["stage"], found["hook"], found["duration_ms"]) == (
        word,
        "no-rm",
        "pre_tool_use",
        "guardhook",
        0.1,
    )


def test_what_is_only_watched_blocks_nothing(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1", verdict=said("deny", mode="observe")), bash("post_tool", "1"))
    events = rendered(journal)
    assert data(events, "tool_hook.completed")["mode"] == "observe" and not told(events, "tool.call.blocked")
    assert data(events, "tool.call.completed")["executed"] is True


def test_a_question_that_was_answered_with_yes(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1", verdict=said("require_review", exit=0)), bash("post_tool", "1"))
    assert brief(rendered(journal))[5:] == [
        "1 tool.approval_required",
        "1 tool.approval_granted",
        "1 tool.call.completed",
    ]
    assert data(rendered(journal), "tool.approval_required")["source"] == "guardhook"


def test_a_question_that_the_harness_can_t_ask_is_a_denial(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1", verdict=said("require_review", exit=2)))
    assert brief(rendered(journal))[4:] == ["1 tool_hook.completed", "1 tool.call.blocked", "1 tool.call.completed"]


def test_a_fault_of_guardhook_s_own(journal: Journal) -> None:
    journal.add(
        prompt(), bash("pre_tool", "1", verdict={**said("deny", None, "no verdict in time"), "cause": "watchdog"})
    )
    events = rendered(journal)
    failed = data(events, "tool_hook.failed")
    assert (failed["error"], failed["ignored"]) == ("no verdict in time", False) and told(events, "tool.call.blocked")


def test_a_fault_whose_words_were_not_kept_is_told_by_its_kind(journal: Journal) -> None:
    journal.add(event("other", verdict={**said("deny", None, ""), "cause": "payload"}))
    assert data(rendered(journal), "hook.failed")["error"] == "payload"


def test_the_harness_asks_and_refuses(journal: Journal) -> None:
    journal.add(
        prompt(),
        bash("pre_tool", "1"),
        bash("permission_request", None),
        bash("permission_denied", "1", reason="user said no"),
    )
    events = rendered(journal)
    assert brief(events)[3:] == ["1 tool.approval_required", "1 tool.approval_denied", "1 tool.call.completed"]
    assert data(events, "tool.approval_required")["source"] == "harness"
    assert data(events, "tool.call.completed")["executed"] is False


def test_a_harness_that_asks_about_a_call_which_is_over_starts_it_no_second_time(
    journal: Journal, tmp_path: Path
) -> None:
    journal.add(
        prompt(),
        bash("pre_tool", "1", verdict=said("deny")),
        bash("permission_request", "1", verdict=said("deny")),
        bash("permission_denied", "1", reason="user said no"),
    )
    events = rendered(journal)
    assert brief(events)[-4:] == [
        "1 tool.approval_required", "1 tool_hook.started", "1 tool_hook.completed", "1 tool.approval_denied",
    ]  # fmt: skip
    assert data(events, "tool.approval_denied") == {
        "step": 1, "call_id": "1", "tool": "Bash", "late": True, "reason": "user said no",
    }  # fmt: skip
    assert len(told(events, "tool.call.started")) == len(told(events, "tool.call.completed")) == 1
    assert simulate(loaded(journal, tmp_path / "r").events).mismatches == []


def test_a_permission_request_that_comes_before_its_call(journal: Journal, tmp_path: Path) -> None:
    journal.add(prompt(), bash("permission_request", None), bash("pre_tool", "7"), bash("post_tool", "7"), step=0.1)
    events = rendered(journal)
    assert len(told(events, "tool.call.started")) == 1 and {
        d["call_id"] for d in told(events, "tool.call.completed")
    } == {"gh_1"}
    assert simulate(loaded(journal, tmp_path / "r").events).matched


def test_what_a_batch_says_counts_when_nothing_else_comes(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1"), bash("pre_tool", "2"))
    calls = [
        {"tool_use_id": "1", "tool_response": "The user doesn't want this"},
        {"tool_use_id": "2", "tool_response": "fine"},
    ]
    journal.add(
        event("other", native="PostToolBatch", tool_calls=calls),
        bash("post_tool", "2", tool_response="fine"),
        event("stop"),
    )
    ends = {d["call_id"]: d for d in told(rendered(journal), "tool.call.completed")}
    assert (
        ends["1"]["basis"] == "batch"
        and ends["1"]["output"] == "The user doesn't want this"
        and "basis" not in ends["2"]
    )


def test_failures_of_tools(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1"), bash("post_tool", "1", tool_response={"exit_code": 3}, duration_ms=12))
    journal.add(bash("pre_tool", "2"), bash("post_tool_failure", "2", error="boom"))
    journal.add(event("session_end"), closes=True)
    events = rendered(journal)
    one, two = told(events, "tool.call.completed")
    assert (one["exit_code"], one["error"], one["duration_ms"], two["error"]) == (3, "exited with code 3", 12, "boom")
    assert types(events)[-1][0] == "run.completed", "a failed tool fails no run"


def test_what_ran_although_it_was_denied(journal: Journal) -> None:
    journal.add(prompt(), bash("pre_tool", "1", verdict=said("deny")), bash("post_tool", "1", tool_response="done"))
    assert [d.get("ran_although_denied") for d in told(rendered(journal), "tool.call.completed")] == [None, True]


# --- other events ---------------------------------------------------------------------------------------------------


def test_compaction_notifications_and_the_unknown(journal: Journal) -> None:
    journal.add(prompt(), event("compact", trigger="auto"), event("compact", native="PostCompact"))
    journal.add(
        event("notification", message="m", notification_type="permission_prompt"),
        event("notification", message="m", notification_type="info"),
    )
    journal.add(
        event("other", native="ConfigChange", source="user"),
    )
    events = rendered(journal)
    assert brief(events)[1:] == [
        "1 auto_compact.started",
        "1 auto_compact.completed",
        "1 run.waiting_for_user",
        "1 hook.notification",
        "1 hook.unknown",
    ]
    assert data(events, "hook.unknown") == {"step": 1, "event": "ConfigChange", "source": "user"}


def test_how_runs_end(journal: Journal) -> None:
    other = "00000000-0000-4000-8000-00000000000b"
    journal.add(prompt(), event("other", native="StopFailure", last_assistant_message="API Error: 500"))
    journal.add(event("session_end"), closes=True)
    journal.add(event("user_prompt", prompt="p", session=other), bash("pre_tool", "1", session=other), event("other", native="Interrupt", session=other, line_data={"event": "interrupt"}))  # fmt: skip
    journal.add(event("session_end", session=other), closes=True)
    failed, cancelled = rendered(journal), rendered(journal, other)
    assert types(failed)[-1][0] == "run.failed" and told(failed, "run.failed")[0]["error"] == "API Error: 500"
    assert types(cancelled)[-1][0] == "run.cancelled" and told(cancelled, "run.step.completed")[0]["unfinished"] == [
        "1"
    ]


def test_an_end_of_which_nothing_may_be_kept_still_ends_the_run(journal: Journal) -> None:
    journal.add(prompt())
    journal.add(event("session_end", line_data={"payload": {}, "redacted": [""], "redaction": "none"}), closes=True)
    journal.add(bash("post_tool", "1"))
    events = rendered(journal)
    assert types(events)[-1] == ("run.completed", 1) and [k for k, _ in types(events)].count("run.completed") == 1


def test_a_failure_that_the_next_prompt_got_over_fails_no_run(journal: Journal) -> None:
    journal.add(prompt(), event("other", native="StopFailure", error="x"), prompt("again"), event("stop"))
    journal.add(event("session_end"), closes=True)
    assert types(rendered(journal))[-1][0] == "run.completed"


def test_what_was_not_recorded_is_marked(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="[REDACTED:x]", line_data={"redacted": ["/prompt"]}),
        bash("pre_tool", "1", line_data={"stripped": True}),
    )
    events = rendered(journal)
    assert data(events, "run.started")["incomplete"] == ["redacted"] and data(events, "tool.call.started")[
        "incomplete"
    ] == ["stripped"]


# --- models ---------------------------------------------------------------------------------------------------------


def test_turns_that_a_harness_declares(journal: Journal) -> None:
    def model(name: str, request: str, **more: object) -> Event:
        return event(name, dialect="codex", request_id=request, model="gpt", **more)

    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "cached_input_tokens": 10,
        "reasoning_output_tokens": 5,
    }
    journal.add(
        event("user_prompt", prompt="p", dialect="codex"),
        model("model_request", "r1"),
        model("model_response", "r1", token_usage=usage, status="completed"),
    )
    journal.add(
        bash("pre_tool", "1", dialect="codex"),
        bash("post_tool", "1", dialect="codex"),
        bash("pre_tool", "2", dialect="codex"),
    )
    journal.add(
        model("model_request", "r2"),
        model("model_request", "r2", attempt_number=2),
        model("model_response", "r2", token_usage=usage),
    )
    journal.add(event("stop", dialect="codex", last_assistant_message="bye"), event("session_end", dialect="codex"))
    events = rendered(journal)
    assert brief(events)[:9] == [
        "0 run.started", "1 llm.turn.requested", "1 usage.delta", "1 llm.turn.completed", "1 llm.turn.completed", "1 tool.call.started",
        "1 tool.call.completed", "1 llm.turn.completed", "1 tool.call.started",
    ]  # fmt: skip
    assert [d["step"] for d in told(events, "llm.turn.requested")] == [1, 2, 2]
    first, second = told(events, "usage.delta")
    assert first["turn_usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "cached_prompt_tokens": 10,
        "reasoning_tokens": 5,
    }
    assert second["cumulative_usage"]["total_tokens"] == 240 and "turn_cost_usd" not in second
    assert told(events, "run.completed")[0]["usage_totals"] == {
        "prompt_tokens_total": 200, "completion_tokens_total": 40, "total_tokens": 240, "last_turn_tokens": 120,
    }  # fmt: skip
    bases = [e["data"]["step_basis"] for e in events if e["type"] == "tool.call.started"]  # type: ignore[index]
    assert bases == ["declared", "declared"]


def test_announcements_of_a_model_are_evidence_of_their_own(journal: Journal, tmp_path: Path) -> None:
    def after(parts: list[object], finish: str | None) -> Event:
        answer = {
            "candidates": [{"content": {"parts": parts}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 9},
        }
        return event(
            "model_response", native="AfterModel", dialect="gemini", llm_request={"model": "g"}, llm_response=answer
        )

    journal.add(
        event("user_prompt", prompt="p", dialect="gemini"),
        event("model_request", native="BeforeModel", dialect="gemini", llm_request={"model": "g"}),
    )
    journal.add(
        after(["Let me "], None),
        after(["look.", {"functionCall": {"name": "Bash", "args": {"command": "ls"}}}], "STOP"),
    )
    journal.add(bash("pre_tool", None, dialect="gemini"), bash("post_tool", None, dialect="gemini"))
    journal.add(event("model_request", native="BeforeModel", dialect="gemini", llm_request={}), after(["All done."], "STOP"), event("stop", dialect="gemini", prompt_response="All done."))  # fmt: skip
    events = rendered(journal)
    turns = told(events, "llm.turn.completed")
    assert [(t["step"], t["content"], len(t["tool_calls"]), t["basis"]) for t in turns] == [
        (1, "Let me look.", 1, "model_response"), (2, "All done.", 0, "model_response"),
    ]  # fmt: skip
    assert turns[0]["tool_calls"][0]["id"] == data(events, "tool.call.started")["call_id"] == "gh_1"
    found = simulate(loaded(journal, tmp_path / "r").events)
    assert found.matched and found.detail["announcements"] == {"independent": 1, "synthetic": 0}
