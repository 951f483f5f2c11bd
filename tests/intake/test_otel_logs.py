"""Log records of Claude Code, Codex, Gemini CLI and Qwen Code as traces of their sessions."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from otel_rig import Json, Stored, log_request, mapped, only, record, requests, stored

CLAUDE, CODEX, GEMINI = "claude_code.", "codex.", "gemini_cli."


def claude(name: str, own: Json | None = None, *, at: int | None = 0, **more: object) -> Json:
    """As the client really writes them: without the prefix, which stands in the body."""
    return {**record(name, own, at=at, **more), "body": {"stringValue": f"claude_code.{name}"}}  # type: ignore[arg-type]


def test_claude_code_as_it_really_exports(tmp_path: Path) -> None:
    sent = requests("claude-code-logs.json")
    found = only(stored(tmp_path, *sent, *sent))
    trace = found.trace
    assert (trace.agent_name, trace.agent_version, trace.dialect, trace.trigger) == ("claude-code", "2.1.332", "claude-code", "user_message")  # fmt: skip
    assert (trace.input, trace.output) == ({"prompt": "please run the scripted tool"}, {"text": "fin"})
    assert (trace.status, trace.session_id) == ("completed", "00000000-0000-4000-8000-000000000001")
    assert trace.total_tokens == 11 * 610 and round(trace.total_cost_usd or 0, 7) == round(11 * 0.0021006, 7)
    assert trace.metadata == {"source_format": "claude-code-logs"}
    tools = [s for s in found.steps if s["step_type"] == "tool_call"]
    assert [s["name"] for s in tools] == ["Bash", "Bash", "Write", "mcp__lab__echo", "Agent", "Bash", "Bash"]
    assert (tools[0]["input"], tools[0]["output"], tools[0]["duration_ms"]) == ({"command": "echo hi", "description": "say hi"}, {"success": True}, 48)  # fmt: skip
    assert (tools[1]["error"], tools[1]["output"]) == ("Shell command failed", {"success": False})
    decided = [(s["name"], s["decision"]["chosen"], s["decision"]["decided_by"]) for s in found.steps if s["step_type"] == "decision"]  # type: ignore[index]  # fmt: skip
    assert ("tool_decision:Bash", "reject", "policy") in decided and ("tool_decision:Bash", "accept", "user") in decided
    causes = [found.steps[int(str(s["caused_by_step_number"])) - 1]["metadata"] for s in tools]
    assert [c["call"] for c in causes] == [s["metadata"]["call"] for s in tools]  # type: ignore[index]
    assert found.happenings.count("hook") == 11 and "subagent_completed" in found.happenings


def test_codex_as_it_really_exports(tmp_path: Path) -> None:
    (request,) = requests("codex-logs.json")
    assert mapped(request).rejected == 1 and "1 of 11" in mapped(request).why
    found = only(stored(tmp_path, request, request))
    trace = found.trace
    assert (trace.agent_name, trace.agent_version, trace.dialect) == ("codex", "0.171.0", "codex")
    assert (trace.input, trace.session_id) == ({"prompt": "run the scripted tool"}, "00000000-0000-7000-8000-000000000081")  # fmt: skip
    call = found.step("exec_command")
    assert (call["step_type"], call["input"], call["duration_ms"], call["error"]) == ("tool_call", {"cmd": "echo allowed-output"}, 66, None)  # fmt: skip
    assert "allowed-output" in str(call["output"])
    decision = found.step("tool_decision:exec_command")
    assert decision["decision"]["chosen"] == "approved"  # type: ignore[index]
    assert decision["decision"]["decided_by"] == "policy"  # type: ignore[index]
    assert {decision["caused_by_step_number"], call["caused_by_step_number"]} == {None, min(int(str(call["step_number"])), int(str(decision["step_number"])))}  # fmt: skip
    assert found.step("gpt-5.5")["step_type"] == "llm_call"


def test_gemini_cli_as_it_really_exports(tmp_path: Path) -> None:
    (request,) = requests("gemini-logs.http.json")
    found = only(stored(tmp_path, request, request))
    trace = found.trace
    assert (trace.agent_name, trace.dialect, trace.total_tokens) == ("gemini", "gemini", 1020)
    assert (trace.input, trace.status) == ({"prompt": "please do the thing"}, "completed")
    blocked, ran = [s for s in found.steps if s["step_type"] == "tool_call"]
    assert blocked["error"] == "Tool execution blocked: rm -rf is not allowed"
    assert (blocked["input"], blocked["duration_ms"]) == ({"command": "rm -rf build", "description": "clean"}, 31)
    assert (ran["error"], ran["output"]) == (None, {"success": True})
    (decision,) = [s for s in found.steps if s["step_type"] == "decision"]
    assert decision["caused_by_step_number"] == ran["step_number"]
    assert (decision["decision"]["chosen"], decision["decision"]["decided_by"]) == ("accept", "user")  # type: ignore[index]
    assert found.happenings.count("hook") == 2


def test_without_prompts_and_arguments_gemini_still_says_what_was_done(tmp_path: Path) -> None:
    (request,) = requests("gemini-logs.grpc.json")
    for group in request["resourceLogs"]:  # type: ignore[attr-defined]
        for scope in group["scopeLogs"]:
            for one in scope["logRecords"]:
                one.pop("traceId", None), one.pop("spanId", None)  # this sample has them in base64
    found = only(stored(tmp_path, request))
    assert found.trace.input == {} and found.prompts == []
    assert [s["name"] for s in found.steps if s["step_type"] == "tool_call"] == ["run_shell_command"] * 2


def test_qwen_code_speaks_geminis_language(tmp_path: Path) -> None:
    sent = log_request(
        record("qwen-code.user_prompt", {"prompt": "hi"}),
        record("qwen-code.tool_call", {"function_name": "shell", "success": True}, at=1),
    )
    found = only(stored(tmp_path, sent))
    assert (found.trace.agent_name, found.trace.dialect, found.names) == ("qwen-code", "qwen-code", ["shell"])


def test_metrics_of_a_session_are_summed_up_beside_its_steps(tmp_path: Path) -> None:
    sent = [*requests("claude-code-logs.json"), *requests("claude-code-metrics.json")]
    found = only(stored(tmp_path, *sent, *sent))
    told = found.trace.metadata["metrics"]
    assert isinstance(told, dict) and told["claude_code.session.count{start_type=fresh}"]["value"] == 1.0
    assert found.trace.total_tokens == 11 * 610
    assert mapped(requests("codex-metrics.json")[0]).ignored == 10


PROMPTS = [
    (["A"], ["A"]),
    (["A", "B", "A"], ["A", "B", "A"]),
    (["A", "A", "B"], ["A", "B"]),
    (["  ", "A"], ["A"]),
]


@pytest.mark.parametrize("client", [CLAUDE, CODEX, GEMINI])
@pytest.mark.parametrize(("said", "kept"), PROMPTS)
def test_prompts(tmp_path: Path, client: str, said: list[str], kept: list[str]) -> None:
    events = [record(f"{client}user_prompt", {"prompt": text}, at=index) for index, text in enumerate(said)]
    for number, order in enumerate(itertools.permutations(events)):
        found = only(stored(tmp_path / str(number), *(log_request(one) for one in order)))
        assert found.prompts == kept and found.trace.input == {"prompt": kept[0]}
        assert found.trace.agent_name == {CLAUDE: "claude-code", CODEX: "codex", GEMINI: "gemini"}[client]


def test_a_prompt_may_be_the_body_of_its_record(tmp_path: Path) -> None:
    sent = {**record("claude_code.user_prompt"), "body": {"stringValue": "from the body"}}
    assert only(stored(tmp_path, log_request(sent))).trace.input == {"prompt": "from the body"}


NAMED = [
    {"attributes": record("gemini_cli.tool_call", {"function_name": "f"})["attributes"]},
    {"attributes": record("x", {"name": "gemini_cli.tool_call", "event.name": None, "function_name": "f"})["attributes"]},
    {"eventName": "gemini_cli.tool_call", "attributes": record("x", {"event.name": None, "function_name": "f"})["attributes"]},
    {"eventName": "event src/otel.rs:12", "attributes": record("gemini_cli.tool_call", {"function_name": "f"})["attributes"]},
    {"body": {"stringValue": "gemini_cli.tool_call"}, "attributes": record("x", {"event.name": None, "function_name": "f"})["attributes"]},
]  # fmt: skip


@pytest.mark.parametrize("one", NAMED)
def test_where_the_name_of_an_event_stands(tmp_path: Path, one: Json) -> None:
    assert only(stored(tmp_path, log_request(one))).names == ["f"]


def test_what_is_no_known_event_is_refused_and_the_rest_is_kept(tmp_path: Path) -> None:
    sent = log_request(record("app.started"), record("gemini_cli.tool_call", {"function_name": "f"}), {"body": {"stringValue": "a line"}}, {})  # fmt: skip
    found = mapped(sent)
    assert (found.rejected, len(found.pieces)) == (3, 1) and "3 of 4" in found.why
    assert only(stored(tmp_path, sent)).names == ["f"]


def test_events_that_say_nothing_make_no_trace(tmp_path: Path) -> None:
    sent = log_request(claude("plugin_loaded"), claude("hook_registered"), record("gemini_cli.config"), record("codex.startup_phase"), service="claude-code")  # fmt: skip
    assert (mapped(sent).rejected, mapped(sent).ignored, list(mapped(sent).pieces)) == (0, 4, [])


def test_records_without_a_session_are_each_their_own(tmp_path: Path) -> None:
    one = record("gemini_cli.tool_call", {"function_name": "f"}, session=None)
    found = stored(tmp_path, log_request(one, one), log_request(one, one))
    assert [(s.names, s.trace.session_id) for s in found] == [(["f"], None)] * 2


def test_the_same_words_of_two_moments_are_two_records(tmp_path: Path) -> None:
    one, two = (record("claude_code.tool_result", {"tool_name": "Bash"}, at=at) for at in (1, 2))
    assert only(stored(tmp_path, log_request(one), log_request(two), log_request(one))).names == ["Bash", "Bash"]


def test_equal_records_of_one_request_are_all_kept(tmp_path: Path) -> None:
    one = record("claude_code.tool_result", {"tool_name": "Bash"})
    assert only(stored(tmp_path, log_request(one, one), log_request(one, one))).names == ["Bash", "Bash"]


def test_untimed_records_come_last(tmp_path: Path) -> None:
    timed, untimed = (record("claude_code.tool_result", {"tool_name": name}, at=at) for name, at in (("B", 5), ("A", None)))  # fmt: skip
    assert only(stored(tmp_path, log_request(untimed, timed))).names == ["B", "A"]


SUCCESS = [(True, None), ("true", None), (1, None), ("1", None), (None, None), ("maybe", None), (False, "tool failed"), ("False", "tool failed"), (0, "tool failed"), ("0", "tool failed")]  # fmt: skip


@pytest.mark.parametrize("name", ["claude_code.tool_result", "gemini_cli.tool_call", "codex.tool_result"])
@pytest.mark.parametrize(("success", "error"), SUCCESS)
def test_success_as_clients_write_it(tmp_path: Path, name: str, success: object, error: str | None) -> None:
    found = only(
        stored(tmp_path, log_request(record(name, {"tool_name": "t", "function_name": "t", "success": success})))
    )
    assert found.steps[0]["error"] == error
    assert found.trace.status == "completed"


@pytest.mark.parametrize("name", ["claude_code.tool_result", "gemini_cli.tool_call", "codex.tool_result"])
def test_durations(tmp_path: Path, name: str) -> None:
    own: list[Json] = [{"duration_ms": value} for value in (0, "7", -5, "soon", 1e300)]
    found = only(stored(tmp_path, log_request(*(record(name, one, at=20) for one in own))))
    assert sorted(str(s["duration_ms"]) for s in found.steps) == ["0", "0", "7", "None", "None"]
    assert [str(s["started_at"])[-4:] for s in found.steps] == ["013Z", "020Z", "020Z", "020Z", "020Z"]


ERRORS = [
    ("claude_code.api_error", {"error": "overloaded", "model": "m"}, "overloaded"),
    ("claude_code.api_error", {"status_code": "529"}, "status 529"),
    ("gemini_cli.api_error", {}, "api error"),
    ("gemini_cli.api_error", {"error.message": "quota", "model": "m"}, "quota"),
    ("codex.sse_event", {"event.kind": "response.failed"}, "the model's answer failed"),
    ("codex.sse_event", {"event.kind": "response.failed", "error.message": "cut"}, "cut"),
]


@pytest.mark.parametrize(("name", "own", "error"), ERRORS)
def test_a_failed_request_fails_the_session(tmp_path: Path, name: str, own: Json, error: str) -> None:
    found = only(stored(tmp_path, log_request(record(name, own))))
    assert (found.steps[0]["step_type"], found.steps[0]["error"]) == ("llm_call", error)
    assert (found.trace.status, found.trace.error) == ("failed", error)


def test_a_request_of_codex_that_is_tried_again_does_not(tmp_path: Path) -> None:
    own: Json = {"http.response.status_code": 500, "attempt": 1, "model": "m"}
    found = only(stored(tmp_path, log_request(record("codex.api_request", own))))
    assert (found.steps[0]["error"], found.trace.status) == ("status 500", "completed")


USAGE = [
    ("claude_code.api_request", {"input_tokens": 5, "output_tokens": "7", "cost_usd": 0.5}, 12, 0.5),
    ("claude_code.api_request", {"input_tokens": "5", "output_tokens": 7, "cache_read_tokens": 3, "cache_creation_tokens": 2, "cost": "0.25"}, 17, 0.25),
    ("gemini_cli.api_response", {"input_token_count": 5, "output_token_count": 7, "cached_content_token_count": 4}, 12, None),
    ("gemini_cli.api_response", {"gen_ai.usage.input_tokens": 5, "output_tokens": 7, "thoughts_token_count": 10}, 22, None),
    ("codex.sse_event", {"event.kind": "response.completed", "input_token_count": 5, "output_token_count": 7, "cached_token_count": 4, "reasoning_token_count": 2}, 12, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "own", "tokens", "cost"), USAGE)
def test_usage_adds_up(tmp_path: Path, name: str, own: Json, tokens: int, cost: float | None) -> None:
    found = only(
        stored(tmp_path, log_request(record(name, {**own, "model": "m"}), record(name, {**own, "model": "m"}, at=5)))
    )
    assert (found.trace.total_tokens, found.trace.total_cost_usd) == (2 * tokens, None if cost is None else 2 * cost)
    assert [(s["step_type"], s["name"], s["model"]) for s in found.steps] == [("llm_call", "m", "m")] * 2


DECISIONS = [
    ("claude_code.tool_decision", {"decision": "accept", "source": "user_temporary"}, "accept", "user"),
    ("claude_code.tool_decision", {"decision": "reject", "source": "user_reject"}, "reject", "user"),
    ("claude_code.tool_decision", {"decision": "reject", "source": "hook"}, "reject", "policy"),
    ("claude_code.tool_decision", {"decision": "accept", "source": "config"}, "accept", "policy"),
    ("claude_code.tool_decision", {"decision": "allow"}, "allow", "user"),
    ("claude_code.tool_decision", {"decision": "auto"}, "auto", "policy"),
    ("claude_code.tool_decision", {}, "unknown", "policy"),
    ("codex.tool_decision", {"decision": "denied", "source": "User"}, "denied", "user"),
    ("codex.tool_decision", {"decision": "approved", "source": "Config"}, "approved", "policy"),
]


@pytest.mark.parametrize(("name", "own", "chosen", "by"), DECISIONS)
def test_who_decided(tmp_path: Path, name: str, own: Json, chosen: str, by: str) -> None:
    found = only(stored(tmp_path, log_request(record(name, {**own, "tool_name": "Bash"}))))
    (step,) = found.steps
    assert step["name"] == "tool_decision:Bash" and step["step_type"] == "decision"
    assert (step["decision"]["chosen"], step["decision"]["decided_by"]) == (chosen, by)  # type: ignore[index]


def test_gemini_decides_after_the_call(tmp_path: Path) -> None:
    own: Json = {"function_name": "f", "function_args": "not json", "decision": "auto_accept", "duration_ms": 5}
    call, decision = only(stored(tmp_path, log_request(record("gemini_cli.tool_call", own, at=9)))).steps
    assert (call["name"], call["input"], decision["caused_by_step_number"]) == ("f", {"args": "not json"}, 1)
    assert decision["decision"]["decided_by"] == "policy"  # type: ignore[index]


def seen(one: Stored) -> object:
    trace = {key: item for key, item in one.trace.as_dict().items() if key != "created_at"}
    return trace, one.steps, one.prompts, one.happenings


def test_order_of_requests_changes_nothing(tmp_path: Path) -> None:
    sent = requests("claude-code-logs.json")
    whole = seen(only(stored(tmp_path / "all", *sent)))
    again = seen(only(stored(tmp_path / "backwards", *reversed(sent), sent[2])))

    def plain(found: object) -> str:  # sums of floats depend on their order in the last digit
        return str(found).replace("0.02310660000000001", "0.0231066").replace("0.023106600000000002", "0.0231066")

    assert plain(again) == plain(whole)
