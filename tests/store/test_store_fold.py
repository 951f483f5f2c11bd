"""What becomes of a session's events."""

from __future__ import annotations

import pytest
from store_rig import SESSION, Journal, event, said

LS = {"command": "ls"}
PWD = {"command": "pwd"}


def pre(call: str | None = None, given: object = None, **more: object) -> dict[str, object]:
    return event("pre_tool", tool="Bash", given=given or LS, call=call, **more)  # type: ignore[arg-type]


def post(call: str | None = None, given: object = None, result: object = "out", **more: object) -> dict[str, object]:
    return event("post_tool", tool="Bash", given=given or LS, call=call, tool_response=result, **more)  # type: ignore[arg-type]


def test_results_out_of_order_go_to_their_calls_by_id(journal: Journal) -> None:
    journal.add(
        pre("a"),
        pre("b", PWD),
        post("b", PWD, "/home"),
        event("post_tool_failure", tool="Bash", given=LS, call="a", error="boom"),
    )
    first, second = journal.steps()
    assert (first.error, first.output) == ("boom", None)
    assert (second.error, second.output) == (None, "/home")


def test_without_ids_equal_input_pairs_and_the_description_does_not_count(journal: Journal) -> None:
    journal.add(
        pre(given={"command": "ls", "description": "one"}), pre(given=PWD), pre(given=LS),
        post(given=PWD, result="p"), post(given={"description": "other", "command": "ls"}, result="first"), post(result="second"),
    )  # fmt: skip
    assert [s.output for s in journal.steps()] == ["first", "p", "second"]


def test_a_result_of_another_agent_does_not_close_the_call(journal: Journal) -> None:
    journal.add(pre(), post(agent="a1", result="theirs"))
    steps = journal.steps()
    assert steps[0].ended_at is None
    assert steps[-1].output == "theirs" and steps[-1].metadata["unpaired"] is True


def test_duplicates_of_cross_loaded_configurations_collapse(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="go"), event("user_prompt", prompt="go"), step=0.01)
    journal.add(pre("a"), pre("a", verdict=said("deny")), post("a"), post("a"), step=0.01)
    journal.add(event("stop", last_assistant_message="bye"), event("stop", last_assistant_message="bye"), step=0.01)
    with journal.open() as store:
        trace = store.traces().items[0]
        assert store.prompts(trace) == ["go"]
        assert [s.step_type for s in store.steps(trace)] == ["tool_call", "guard_check", "output"]


def test_an_id_that_is_used_again_for_something_else_hides_nothing(journal: Journal) -> None:
    journal.add(pre("a"), pre("a", {"command": "rm -rf /"}), pre("a", {"command": "rm -rf /"}))
    assert [s.input for s in journal.steps()] == [LS, {"command": "rm -rf /"}]


def test_two_shapes_of_one_call_are_one_step(journal: Journal) -> None:
    journal.add(pre("a"), event("pre_tool", tool="Shell", given={"cmd": "ls"}, call="a", native="preToolUse"))
    assert len(journal.steps()) == 1


def test_the_same_prompt_said_twice_is_two_prompts(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="again"), event("user_prompt", prompt="again"), step=5)
    with journal.open() as store:
        assert store.prompts(store.traces().items[0]) == ["again", "again"]


def test_every_prompt_is_kept_and_the_first_is_the_input(journal: Journal) -> None:
    journal.add(
        event("session_start"), event("user_prompt", prompt="one"), event("stop"), event("user_prompt", prompt="two")
    )
    with journal.open() as store:
        trace = store.traces().items[0]
        assert trace.input == {"prompt": "one"}
        assert store.prompts(trace) == ["one", "two"]


def test_status_over_the_life_of_a_session(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="one"))
    assert journal.trace().status == "running"
    journal.add(event("stop", last_assistant_message="done"))
    trace = journal.trace()
    assert (trace.status, trace.output) == ("completed", {"text": "done"})
    assert trace.effective_duration_ms == 1000
    journal.add(post("late"))
    assert journal.trace().status == "completed"
    journal.add(event("user_prompt", prompt="two"))
    assert (journal.trace().status, journal.trace().ended_at) == ("running", None)
    journal.add(event("session_end", reason="exit"))
    ended = journal.trace()
    assert (ended.status, ended.effective_duration_ms) == ("completed", 4000)


def test_a_vanished_harness_shows_as_timeout_until_it_speaks_again(journal: Journal) -> None:
    journal.add(pre("a"))
    assert journal.trace(later=29 * 60).status == "running"
    assert journal.trace(later=31 * 60).status == "timeout"
    with journal.open(later=31 * 60) as store:
        from guardhook.store import Filter

        assert store.traces(Filter(status="timeout")).total == 1
        assert store.traces(Filter(status="running")).total == 0
        assert store.stats()["by_status"] == {"running": 0, "completed": 0, "failed": 0, "timeout": 1}
    journal.add(post("a"), step=3600)
    assert journal.trace().status == "running"


def test_a_turn_that_failed_stays_failed_when_the_session_ends_and_not_when_it_goes_on(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="p"), event("other", native="StopFailure", last_assistant_message="API Error: 500")
    )
    failed = journal.trace()
    assert (failed.status, failed.error, failed.effective_duration_ms) == ("failed", "API Error: 500", 1000)
    journal.add(event("session_end", reason="exit"), step=60)
    assert journal.trace()[:12] == failed[:12]
    journal.add(event("user_prompt", prompt="again"), event("session_end", reason="exit"))
    assert (journal.trace().status, journal.trace().error) == ("completed", None)


def test_results_and_ends_alone_make_no_trace(journal: Journal) -> None:
    journal.add(post("a"), event("stop"), event("session_end"))
    with journal.open() as store:
        assert store.traces().total == 0


def test_a_denied_call_is_closed_at_once_and_its_check_names_it(journal: Journal) -> None:
    journal.add(pre(verdict=said("deny")), pre(), post())
    denied, check, allowed = journal.steps()
    assert denied.error == "blocked by policy no-rm: deletes" and denied.duration_ms == 0 and denied.output is None
    assert (check.step_type, check.name, check.caused_by_step_number) == ("guard_check", "guard:no-rm", 1)
    assert check.output == {"action": "deny", "policy": "no-rm", "reason": "deletes"}
    assert check.decision is not None and check.decision.chosen == "deny" and check.decision.decided_by == "policy"
    assert allowed.output == "out"


@pytest.mark.parametrize(
    ("verdict", "open_"),
    [
        (said("require_review", exit=0), True),
        (said("require_review", exit=2), False),
        (said("warn", exit=0), True),
        (said("deny", mode="observe", exit=0), True),
    ],
)
def test_calls_that_may_still_run_stay_open(journal: Journal, verdict: dict[str, object], open_: bool) -> None:
    journal.add(pre("a", verdict=verdict))
    call, check = journal.steps()
    assert (call.ended_at is None) is open_
    assert check.step_type == "guard_check"


def test_a_plain_allow_adds_no_step(journal: Journal) -> None:
    journal.add(pre("a", verdict=said("allow", None, "", exit=0)))
    (call,) = journal.steps()
    assert call.metadata["verdict"] == "allow"


def test_a_blocked_call_that_ran_all_the_same_says_so(journal: Journal) -> None:
    journal.add(pre("a", verdict=said("deny")), post("a"))
    call = journal.steps()[0]
    assert call.metadata["ran_although_blocked"] is True and call.output == "out"


def test_calls_open_at_the_end_are_interrupted_until_a_result_comes(journal: Journal) -> None:
    journal.add(pre("a"), event("stop"))
    call = journal.steps()[0]
    assert call.metadata["interrupted"] is True and call.error is not None
    journal.add(post("a"))
    call = journal.steps()[0]
    assert (call.metadata["interrupted"], call.error, call.output) == (False, None, "out")


def test_an_open_call_is_preferred_to_an_interrupted_one(journal: Journal) -> None:
    journal.add(pre(), event("user_prompt", prompt="stop that"), pre(), post(result="second"))
    assert [s.output for s in journal.steps()] == [None, "second"]


def test_background_agents_survive_a_stop_but_not_the_end(journal: Journal) -> None:
    journal.add(event("subagent_start", agent="a1", agent_type="explorer"), pre("x", agent="a1"), event("stop"))
    assert journal.steps()[1].ended_at is None
    journal.add(event("session_end"))
    assert journal.steps()[1].metadata["interrupted"] is True


def test_subagents_nest_below_the_call_that_started_them(journal: Journal) -> None:
    journal.add(
        event("pre_tool", tool="Agent", given={"prompt": "x"}, call="t", kind="subagent"),
        event("subagent_start", agent="a1", agent_type="explorer"), pre("x", agent="a1"), post("x", agent="a1"),
        event("subagent_stop", agent="a1", last_assistant_message="found it"),
    )  # fmt: skip
    spawn, anchor, inner = journal.steps()
    assert (anchor.step_type, anchor.name, anchor.parent_step_number) == (
        "thought",
        "subagent:explorer",
        spawn.step_number,
    )
    assert anchor.output == {"text": "found it"} and anchor.ended_at is not None
    assert inner.parent_step_number == anchor.step_number


def test_an_agent_whose_start_was_not_told_is_nested_too(journal: Journal) -> None:
    journal.add(pre("x", agent="a9"))
    anchor, inner = journal.steps()
    assert anchor.metadata["hook_anchor"] == 1 and inner.parent_step_number == 1


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"isError": True, "content": [{"type": "text", "text": "no such tool"}]}, "no such tool"),
        ({"is_error": "true"}, "tool failed"),
        ({"success": False, "message": "denied"}, "denied"),
        ({"exit_code": 3}, "exited with code 3"),
        ({"interrupted": True, "stdout": ""}, "interrupted"),
        ({"status": "failed"}, "status failed"),
        ({"error": {"message": "bad"}}, "bad"),
        ({"error": "", "exit_code": 0, "success": True, "isError": False}, None),
        ("exit_code: 1", None),
        ('{"error": "printed by a command"}', None),
    ],
)
def test_failure_flags_inside_a_result(journal: Journal, result: object, error: str | None) -> None:
    journal.add(pre("a"), post("a", result=result))
    assert journal.steps()[0].error == error


def test_a_failure_without_words_and_one_in_structure(journal: Journal) -> None:
    journal.add(pre("a"), event("post_tool_failure", tool="Bash", given=LS, call="a"))
    journal.add(pre("b"), event("post_tool_failure", tool="Bash", given=LS, call="b", error={"code": 1}))
    assert [s.error for s in journal.steps()] == ["tool failed", '{"code":1}']


def test_an_input_that_was_rewritten_after_judging_is_flagged(journal: Journal) -> None:
    journal.add(pre("a"), post("a", {"command": "rm -rf /"}))
    call = journal.steps()[0]
    assert call.input == LS
    assert call.metadata["rewritten"] is True and call.metadata["executed_input"] == {"command": "rm -rf /"}


def test_an_input_that_was_cut_in_one_line_is_not_called_rewritten(journal: Journal) -> None:
    journal.add(pre("a"), post("a", {"command": "l"}, line_data={"cut": ["/tool_input/command"]}))
    assert "rewritten" not in journal.steps()[0].metadata


def test_marks_of_redaction_and_cutting_are_kept(journal: Journal) -> None:
    journal.add(
        pre("a", line_data={"redacted": ["/tool_input/command"], "cut": ["/tool_input/x"], "stripped": ["prompt"]})
    )
    metadata = journal.steps()[0].metadata
    assert (
        metadata["redacted"] == ["/tool_input/command"]
        and metadata["cut"] == ["/tool_input/x"]
        and metadata["stripped"] is True
    )


def test_canary_lines_count_nowhere(journal: Journal) -> None:
    journal.add(pre("a", line_data={"canary": True}), event("user_prompt", prompt="x", line_data={"canary": True}))
    with journal.open() as store:
        assert store.traces().total == 0


def test_model_and_tokens_of_codex(journal: Journal) -> None:
    journal.add(
        event("session_start", dialect="codex", model="gpt-5.5"),
        event("model_request", dialect="codex", model="gpt-5.5", request_id="r1", attempt_number=1),
        event("model_response", dialect="codex", model="gpt-5.5", request_id="r1", attempt_number=1, status="completed",
              error=None, token_usage={"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}),
        event("model_response", dialect="codex", model="gpt-5.5", request_id="r2", attempt_number=1, token_usage={"input_tokens": 5, "output_tokens": 7}),
    )  # fmt: skip
    trace = journal.trace()
    assert trace.effective_tokens == 132 and trace.metadata["model"] == "gpt-5.5"
    assert [(s.step_type, s.model, s.tokens_used, s.duration_ms) for s in journal.steps()] == [
        ("llm_call", "gpt-5.5", 120, 1000), ("llm_call", "gpt-5.5", 12, 0),
    ]  # fmt: skip


def test_a_streamed_answers_usage_counts_once(journal: Journal) -> None:
    usage = {"llm_request": {"model": "gemini-2.5-flash"}, "llm_response": {"usageMetadata": {"totalTokenCount": 1020}}}
    journal.add(
        event("session_start", dialect="gemini"),
        event("model_request", dialect="gemini", native="BeforeModel", **usage),
    )
    for _ in range(3):
        journal.add(event("model_response", dialect="gemini", native="AfterModel", **usage))
    assert journal.trace().effective_tokens == 1020


def test_a_permission_request_belongs_to_the_call_it_asks_about(journal: Journal) -> None:
    journal.add(pre("a"), event("permission_request", tool="Bash", given=LS), post("a"))
    (call,) = journal.steps()
    assert call.metadata["permission"] == "asked" and call.output == "out"


def test_a_permission_denied_closes_the_call(journal: Journal) -> None:
    journal.add(pre("a"), event("permission_denied", tool="Bash", given=LS, call="a", reason="classifier"))
    (call,) = journal.steps()
    assert call.error == "permission denied: classifier"


def test_a_refused_call_is_known_from_the_batch(journal: Journal) -> None:
    batch = [
        {"tool_name": "Bash", "tool_input": LS, "tool_use_id": "a", "tool_response": "The user doesn't want to proceed"}
    ]
    journal.add(pre("a"), event("other", native="PostToolBatch", tool_calls=batch))
    assert journal.steps()[0].error == "The user doesn't want to proceed"


def test_notifications_and_compactions_are_kept(journal: Journal) -> None:
    journal.add(
        event("session_start", source="startup"),
        pre("a"),
        event("notification", message="waiting"),
        event("compact", trigger="auto"),
    )
    with journal.open() as store:
        found = [(h.event, h.before_step, h.text, h.detail) for h in store.happenings(store.traces().items[0])]
    assert found == [
        ("session_start", 1, None, {"source": "startup"}), ("notification", 2, "waiting", {}), ("compact", 2, None, {"trigger": "auto"}),
    ]  # fmt: skip


def test_a_blocked_prompt_leaves_a_check(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="secret", verdict=said("deny", "no-secrets", "holds a key")))
    (check,) = journal.steps()
    assert check.name == "guard:no-secrets" and check.caused_by_step_number is None


def test_other_dialects_are_read_by_their_own_reader(journal: Journal) -> None:
    data = event("pre_tool", dialect="cline", tool="execute_command", call=None)
    data["payload"] = {
        "hookName": "PreToolUse",
        "taskId": "t",
        "preToolUse": {"toolName": "execute_command", "parameters": {"command": "ls"}},
    }
    journal.add(data)
    assert journal.steps()[0].input == {"command": "ls"}


def test_facts_of_the_trace(journal: Journal) -> None:
    journal.add(event("session_start", permission_mode="default", transcript_path="/t.jsonl"), opens=True)
    trace = journal.trace()
    assert (trace.agent_name, trace.agent_version, trace.trigger, trace.session_id) == (
        "claude-code",
        "2.1.332",
        "user_message",
        SESSION,
    )
    assert trace.project == "/home/user/project"
    assert trace.metadata["permission_mode"] == "default"
    with journal.open() as store:
        (run,) = store.runs(trace)
        assert run.run.startswith("run_") and run.segment == 1 and run.closed_at is None


@pytest.mark.parametrize(
    ("response", "says"),
    [
        ({"llmContent": "Could not read", "error": {"message": "File not found: /x", "type": "file_not_found"}}, "File not found: /x"),
        ({"llmContent": [{"text": "no such tool"}], "returnDisplay": "x", "isError": True}, "no such tool"),
        ({"llmContent": "", "returnDisplay": "Nothing there.", "is_error": True}, "Nothing there."),
    ],
)  # fmt: skip
def test_the_words_of_a_failure_are_kept_wherever_gemini_puts_them(
    journal: Journal, response: dict[str, object], says: str
) -> None:
    for name in ("post_tool", "post_tool_failure"):
        at = {"dialect": "gemini", "session": name, "tool": "read_file", "given": {"file_path": "x"}, "kind": "read"}
        journal.add(event("pre_tool", **at), event(name, tool_response=response, **at))  # type: ignore[arg-type]
    with journal.open() as store:
        found = [step.error for trace in store.iterate() for step in store.steps(trace)]
    assert found == [says, says]
