"""Spans as traces: what each convention says, what belongs together, what came before."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from otel_rig import (
    START,
    TRACE,
    Json,
    Stored,
    attributes,
    log_request,
    mapped,
    only,
    requests,
    span,
    stored,
    traces,
    value,
)

ROOT, CHAT, TOOL = "a" * 16, "b" * 16, "c" * 16


def root(**more: object) -> Json:
    own: Json = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent", "gen_ai.usage.input_tokens": 50}
    return span("invoke_agent agent", own, id=ROOT, at=0, lasts=9_000_000, **more)


def chat(tokens: int = 120, id: str = CHAT, **more: object) -> Json:
    own: Json = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": tokens - 2, "gen_ai.usage.output_tokens": 2}  # fmt: skip
    return span("chat m", own, id=id, parent=ROOT, at=1_000_000, **more)


def tool(**more: object) -> Json:
    own: Json = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell"}
    return span("execute_tool shell", own, id=TOOL, parent=CHAT, at=2_000_000, **more)


MATRIX = {
    "the same twice": ([[root(), chat()], [root(), chat()]], 170, 1, False),
    "root again": ([[root(), chat()], [root()]], 170, 1, False),
    "chat again with a tool": ([[root(), chat()], [chat(), tool()]], 170, 2, False),
    "chat, then both": ([[chat()], [root(), chat()]], 170, 1, False),
    "chat, then root": ([[chat()], [root()]], 170, 1, False),
    "chat, then tool": ([[chat()], [tool()]], 120, 2, True),
    "another chat": ([[root(), chat()], [chat(7, "d" * 16)]], 177, 2, False),
    "ten times": ([[root(), chat(), tool()]] * 10, 170, 2, False),
    "one at a time, backwards": ([[tool()], [chat()], [root()]], 170, 2, False),
    "twice in one request": ([[root(), chat(), chat(), root()]], 170, 1, False),
}


@pytest.mark.parametrize("case", MATRIX.values(), ids=MATRIX)
def test_totals_over_batches(tmp_path: Path, case: tuple[list[list[Json]], int, int, bool]) -> None:
    batches, tokens, steps, synthetic = case
    found = only(stored(tmp_path, *(traces(*batch) for batch in batches)))
    assert (found.trace.total_tokens, found.trace.step_count) == (tokens, steps)
    assert found.trace.metadata.get("synthetic_trace", False) is synthetic


def test_a_whole_run(tmp_path: Path) -> None:
    content = {"gen_ai.input.messages": json.dumps([{"role": "user"}]), "gen_ai.output.messages": '[{"role":"assistant"}]', "gen_ai.conversation.id": "conv-1"}  # fmt: skip
    head = root()
    head["attributes"] += attributes(content)  # type: ignore[operator]
    found = only(stored(tmp_path, traces(tool(), chat(), head, resource={"service.version": "1.2"})))
    trace = found.trace
    assert (trace.agent_name, trace.agent_version, trace.trigger, trace.status, trace.error) == ("agent", "1.2", "api", "completed", None)  # fmt: skip
    assert (trace.session_id, trace.input, trace.output) == ("conv-1", {"messages": [{"role": "user"}]}, {"messages": [{"role": "assistant"}]})  # fmt: skip
    assert (trace.started_at, trace.ended_at, trace.total_duration_ms) == ("2026-09-21T14:13:20.000Z", "2026-09-21T14:13:20.009Z", 9)  # fmt: skip
    assert trace.metadata == {
        "source_format": "otel-genai", "otel_trace_id": "0af7651916cd43dd8448eb211c80319c", "otel_span_id": ROOT, "gen_ai.agent.name": "agent",
    }  # fmt: skip
    assert [
        (s["step_type"], s["name"], s["parent_step_number"], s["tokens_used"], s["model"]) for s in found.steps
    ] == [
        ("llm_call", "chat m", None, 120, "m"),
        ("tool_call", "shell", 1, None, None),
    ]
    assert found.steps[1]["output"] is None and found.steps[1]["input"] == {} and found.steps[1]["duration_ms"] == 1


KINDS = [
    ({"gen_ai.operation.name": "execute_tool"}, "x", "tool_call"),
    ({"gen_ai.operation.name": "chat"}, "x", "llm_call"),
    ({"gen_ai.operation.name": "generate_content"}, "x", "llm_call"),
    ({"gen_ai.operation.name": "text_completion"}, "x", "llm_call"),
    ({"gen_ai.operation.name": "embeddings"}, "x", "retrieval"),
    ({"gen_ai.operation.name": "retrieval"}, "x", "retrieval"),
    ({"gen_ai.operation.name": "plan"}, "x", "thought"),
    ({"gen_ai.operation.name": "constructor"}, "toString", "thought"),
    ({"gen_ai.operation.name": ["chat"]}, "x", "thought"),
    ({"openinference.span.kind": "tool"}, "x", "tool_call"),
    ({"openinference.span.kind": "LLM"}, "x", "llm_call"),
    ({"openinference.span.kind": "RETRIEVER"}, "x", "retrieval"),
    ({"openinference.span.kind": "Embedding"}, "x", "retrieval"),
    ({"openinference.span.kind": "GUARDRAIL"}, "x", "guard_check"),
    ({"openinference.span.kind": "PROMPT"}, "x", "thought"),
    ({"traceloop.span.kind": "tool"}, "x", "tool_call"),
    ({"traceloop.span.kind": "task"}, "x", "thought"),
    ({"llm.request.type": "chat"}, "x", "llm_call"),
    ({}, "chat gpt", "llm_call"),
    ({}, "execute_tool shell", "tool_call"),
    ({}, "GET /", "thought"),
    ({"gen_ai.operation.name": "chat", "openinference.span.kind": "TOOL"}, "x", "llm_call"),
    ({"gen_ai.operation.name": "other", "openinference.span.kind": "TOOL"}, "x", "tool_call"),
]


@pytest.mark.parametrize(("own", "name", "kind"), KINDS)
def test_the_first_convention_that_knows_a_span_says_what_it_is(own: Json, name: str, kind: str) -> None:
    (piece,) = mapped(traces(span(name, own, id=CHAT))).pieces
    assert (piece.event["role"], piece.event["step_type"]) == ("step", kind)


@pytest.mark.parametrize(
    "own",
    [
        {"gen_ai.operation.name": "invoke_workflow"}, {"gen_ai.operation.name": "create_agent"}, {"openinference.span.kind": "agent"},
        {"openinference.span.kind": "CHAIN"}, {"traceloop.span.kind": "workflow"}, {"traceloop.span.kind": "agent"},
    ],
)  # fmt: skip
def test_roots(tmp_path: Path, own: Json) -> None:
    found = only(stored(tmp_path, traces(span("outer", own, id=ROOT), span("nested", own, id=CHAT, parent=ROOT, at=5))))
    assert [(s["name"], s["step_type"]) for s in found.steps] == [("nested", "thought")]
    assert "synthetic_trace" not in found.trace.metadata


NAMES = [
    ({"gen_ai.tool.name": "a", "tool.name": "b", "traceloop.entity.name": "c"}, "d", "a"),
    ({"tool.name": "b", "traceloop.entity.name": "c"}, "d", "b"),
    ({"traceloop.entity.name": "c"}, "d", "c"),
    ({"gen_ai.operation.name": "chat"}, "d", "d"),
    ({"gen_ai.operation.name": "chat"}, "", "chat"),
    ({}, "  ", "span"),
]


@pytest.mark.parametrize(("own", "given", "name"), NAMES)
def test_names(own: Json, given: str, name: str) -> None:
    (piece,) = mapped(traces(span(given, own, id=CHAT))).pieces
    assert piece.event["name"] == name


def event(name: str, **own: object) -> Json:
    return {"name": name, "attributes": attributes(own)}


CONTENT = [
    ({"gen_ai.input.messages": '[{"role":"user"}]'}, [], {"messages": [{"role": "user"}]}, None),
    ({"gen_ai.prompt": "hi", "gen_ai.completion": "ho"}, [], {"messages": "hi"}, {"messages": "ho"}),
    ({"input.value": '{"a":1}', "output.value": "x"}, [], {"messages": {"a": 1}}, {"messages": "x"}),
    ({"llm.prompts": "p", "llm.completions": "c"}, [], {"messages": "p"}, {"messages": "c"}),
    ({"traceloop.entity.input": "p", "traceloop.entity.output": "c"}, [], {"messages": "p"}, {"messages": "c"}),
    (
        {"llm.input_messages.1.message.content": "b", "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "a"},
        [], {"messages": [{"role": "user", "content": "a"}, {"content": "b"}]}, None,
    ),
    (
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "a", "gen_ai.completion.0.content": "b"},
        [], {"messages": [{"role": "user", "content": "a"}]}, {"messages": [{"content": "b"}]},
    ),
    ({}, [event("gen_ai.user.message", content="hi"), event("gen_ai.choice", index=0, message='{"content":"ho"}')],
     {"messages": [{"role": "user", "content": "hi"}]}, {"messages": [{"role": "assistant", "index": 0, "message": {"content": "ho"}}]}),
    ({}, [event("gen_ai.content.prompt", **{"gen_ai.prompt": "p"}), event("gen_ai.content.completion", **{"gen_ai.completion": "c"})],
     {"messages": ["p"]}, {"messages": ["c"]}),
    ({"gen_ai.system_instructions": '[{"type":"text","content":"be brief"}]', "gen_ai.prompt": "hi"}, [],
     {"system_instructions": [{"type": "text", "content": "be brief"}], "messages": "hi"}, None),
    ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": '{"command":"ls"}', "gen_ai.tool.call.result": "files"}, [],
     {"command": "ls"}, "files"),
    ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "[1]"}, [], {"arguments": [1]}, None),
    ({}, [], None, None),
]  # fmt: skip


@pytest.mark.parametrize(("own", "events", "went", "came"), CONTENT)
def test_content(own: Json, events: list[Json], went: object, came: object) -> None:
    (piece,) = mapped(traces(span("x", own, id=CHAT, events=events))).pieces
    assert (piece.event.get("input"), piece.event.get("output")) == (went, came)


FIGURES = [
    ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}, 7, None),
    ({"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": "2"}, 7, None),
    ({"llm.token_count.prompt": 5}, 5, None),
    ({"gen_ai.usage.total_tokens": 9, "gen_ai.usage.output_tokens": 2}, 2, None),
    ({"llm.token_count.total": 9}, 9, None),
    ({"gen_ai.usage.input_tokens": -4, "gen_ai.usage.output_tokens": 3}, 3, None),
    ({"gen_ai.usage.input_tokens": "many"}, None, None),
    ({"gen_ai.usage.input_tokens": True}, None, None),
    ({"gen_ai.usage.input_tokens": 9007199254740993}, 9007199254740993, None),
    ({"gen_ai.usage.cost": 0.25}, None, 0.25),
    ({"cost_usd": "0.5"}, None, 0.5),
    ({"cost": -1.0}, None, 0.0),
]


@pytest.mark.parametrize(("own", "tokens", "cost"), FIGURES)
def test_figures(own: Json, tokens: int | None, cost: float | None) -> None:
    (piece,) = mapped(traces(span("x", own, id=CHAT))).pieces
    assert (piece.event.get("tokens_used"), piece.event.get("cost")) == (tokens, cost)


def test_what_the_totals_contain_is_kept(tmp_path: Path) -> None:
    own: Json = {
        "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 566, "gen_ai.usage.output_tokens": 44,
        "gen_ai.usage.cache_read.input_tokens": 333, "gen_ai.usage.cache_creation.input_tokens": 222, "gen_ai.usage.reasoning.output_tokens": 4,
        "gen_ai.request.temperature": 0.5, "gen_ai.provider.name": "p", "gen_ai.usage.cost": 0.25,
    }  # fmt: skip
    found = only(stored(tmp_path, traces(span("chat", own, id=CHAT, parent=ROOT))))
    assert found.steps[0]["tokens_used"] == 610
    assert found.steps[0]["metadata"] == {
        "otel_span_id": CHAT, "otel_parent_span_id": ROOT, "otel_cost_usd": 0.25, "provider": "p", "cache_read_tokens": 333,
        "cache_write_tokens": 222, "reasoning_tokens": 4, "gen_ai.request.temperature": 0.5,
    }  # fmt: skip


EXCEPTION = event("exception", **{"exception.type": "ValueError", "exception.message": "bad value"})
ERRORS = [
    ({}, {"code": 2, "message": "boom"}, [], "boom"),
    ({}, {"code": "STATUS_CODE_ERROR"}, [], "error"),
    ({"error.type": "timeout"}, {"code": 2, "message": "  "}, [], "timeout"),
    ({"error.type": "timeout"}, {}, [], "timeout"),
    ({"error.type": "timeout"}, {"code": 1}, [], None),
    ({}, {"code": 1}, [EXCEPTION], None),
    ({}, {}, [EXCEPTION], "bad value"),
    ({}, {}, [event("exception", **{"exception.type": "ValueError"})], "ValueError"),
    ({}, {}, [event("exception")], "error"),
    ({"error.type": "t"}, {"code": 2}, [EXCEPTION], "bad value"),
    ({}, {}, [event("other")], None),
]


@pytest.mark.parametrize(("own", "status", "events", "error"), ERRORS)
def test_failures(tmp_path: Path, own: Json, status: Json, events: list[Json], error: str | None) -> None:
    failing = span("x", own, id=CHAT, parent=ROOT, at=1, status=status, events=events)
    found = only(stored(tmp_path / "rootless", traces(failing)))
    assert found.steps[0]["error"] == error
    assert (found.trace.status, found.trace.error) == (("completed", None) if error is None else ("failed", error))
    found = only(stored(tmp_path / "root", traces(failing), traces(root())))
    assert found.steps[0]["error"] == error and found.trace.status == "completed"
    own_root = span("r", {"gen_ai.operation.name": "invoke_agent", **own}, id=ROOT, status=status, events=events)
    found = only(stored(tmp_path / "failing", traces(own_root)))
    assert (found.trace.status, found.trace.error) == (("completed", None) if error is None else ("failed", error))


def test_spans_without_a_trace_are_each_their_own(tmp_path: Path) -> None:
    request = traces(
        span("a", id=CHAT, trace=""), span("b", id=TOOL, trace=""), span("c", trace=""), span("c", trace="")
    )
    found = stored(tmp_path, request, request)
    assert sorted(str(name) for one in found for name in one.names) == ["a", "b", "c", "c"]
    assert {one.trace.metadata["otel_trace_id"] for one in found} == {""}


def test_spans_without_an_id_are_kept_apart_and_recognised_again(tmp_path: Path) -> None:
    request = traces(span("same"), span("same"), span("other"))
    found = only(stored(tmp_path, request, request))
    assert sorted(found.names) == ["other", "same", "same"]  # type: ignore[type-var]


def test_several_runs_in_one_request(tmp_path: Path) -> None:
    found = stored(
        tmp_path, traces(span("one", id=CHAT, trace="1" * 32), span("two", id=CHAT, trace="2" * 32, at=9_000_000))
    )
    assert [one.names for one in found] == [["one"], ["two"]]


def test_a_sessions_runs_stay_apart(tmp_path: Path) -> None:
    own: Json = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c"}
    found = stored(
        tmp_path, traces(span("one", own, id=CHAT, trace="1" * 32), span("two", own, id=CHAT, trace="2" * 32))
    )
    assert [one.trace.session_id for one in found] == ["c", "c"]


ABSURD = ["1790000000000000000000000000", "-1", "0", None, "x"]


@pytest.mark.parametrize(("start", "end"), list(itertools.product(ABSURD, [*ABSURD, str(START)])))
def test_absurd_stamps_leave_the_rest(tmp_path: Path, start: object, end: object) -> None:
    odd = {**span("odd", {"gen_ai.usage.input_tokens": 3}, id=CHAT), "startTimeUnixNano": start, "endTimeUnixNano": end}
    found = only(stored(tmp_path, traces(odd, span("fine", id=TOOL, at=5_000_000))))
    assert found.names == ["fine", "odd"]
    assert found.steps[1]["started_at"] is None and found.steps[1]["duration_ms"] is None
    assert found.trace.total_tokens == 3
    duration = found.trace.total_duration_ms
    assert duration is not None and 0 <= duration < 10


def test_an_end_before_the_start_has_no_duration(tmp_path: Path) -> None:
    found = only(
        stored(
            tmp_path,
            traces(span("x", id=CHAT, at=5_000_000, lasts=-5_000_000), span("now", id=TOOL, at=9_000_000, lasts=0)),
        )
    )
    assert [step["duration_ms"] for step in found.steps] == [None, 0]


def test_children_before_their_parent_are_linked_backwards(tmp_path: Path) -> None:
    found = only(stored(tmp_path, traces(tool()), traces(chat()), traces(span("early", id="e" * 16, at=500))))
    assert found.names == ["early", "chat m", "shell"]
    assert [step["parent_step_number"] for step in found.steps] == [None, None, 2]


def test_hostile_names_and_attributes_are_only_text(tmp_path: Path) -> None:
    own: Json = {"__proto__": "x", "gen_ai.request.__proto__": {"a": 1}, "gen_ai.tool.name": "\x1b[31mred\n"}
    found = only(stored(tmp_path, traces(span("constructor", own, id=CHAT))))
    assert found.names == ["\x1b[31mred\n"]
    assert found.steps[0]["metadata"] == {"otel_span_id": CHAT, "gen_ai.request.__proto__": {"a": 1}}


def test_agent_names(tmp_path: Path) -> None:
    found = stored(
        tmp_path,
        traces(span("a", id=CHAT, trace="1" * 32), service="my-service"),
        traces(span("b", id=CHAT, trace="2" * 32, at=9_000_000), service=None),
    )
    assert [one.trace.agent_name for one in found] == ["my-service", "otel-agent"]


# --- real clients ---------------------------------------------------------------------------------------------------


def test_claude_codes_spans(tmp_path: Path) -> None:
    sent = requests("claude-code-traces.json")
    found = only(stored(tmp_path, *sent, *sent))
    trace = found.trace
    assert (trace.agent_name, trace.agent_version, trace.status, trace.step_count) == ("claude-code", "2.1.332", "completed", 36)  # fmt: skip
    assert trace.input == {"prompt": "please run the scripted tool"} and trace.total_tokens == 11 * 610
    bash = found.steps[1]
    assert (bash["step_type"], bash["name"], bash["input"]) == ("tool_call", "Bash", {"command": "echo hi"})
    assert bash["output"] == {"messages": [{"role": "tool", "content": "hi"}]}
    decided = [(s["parent_step_number"], s["decision"]["chosen"], s["decision"]["decided_by"]) for s in found.steps if "decision" in s]  # type: ignore[index]  # fmt: skip
    assert decided[:2] == [(2, "accept", "user"), (6, "reject", "policy")]
    failed = [s for s in found.steps if s["error"]]
    assert [(s["name"], s["error"]) for s in failed] == [("claude_code.tool.execution", "Shell command failed")]
    assert found.happenings == []


def test_order_of_requests_changes_nothing(tmp_path: Path) -> None:
    def seen(one: Stored) -> object:
        trace = {key: item for key, item in one.trace.as_dict().items() if key != "created_at"}
        return trace, one.steps

    sent = requests("claude-code-traces.json")
    whole = seen(only(stored(tmp_path / "all", *sent)))
    for index, order in enumerate(itertools.islice(itertools.permutations(sent), 1, 24, 5)):
        assert seen(only(stored(tmp_path / str(index), *order))) == whole


def test_gemini_clis_spans_are_one_run(tmp_path: Path) -> None:
    found = only(stored(tmp_path, *requests("gemini-traces.http.json")))
    trace = found.trace
    assert (trace.agent_name, trace.dialect, trace.session_id) == ("gemini", "gemini", "5e550001-0000-4000-8000-000000000001")  # fmt: skip
    assert [(s["step_type"], s["name"], s["parent_step_number"]) for s in found.steps] == [
        ("llm_call", "llm_call", None),
        ("thought", "schedule_tool_calls", None),
        ("thought", "schedule_tool_calls", None),
        ("tool_call", "run_shell_command", 3),
    ]
    assert trace.total_tokens == 1020


def test_codexs_insides_are_refused_with_the_reason() -> None:
    (request,) = requests("codex-traces.json")
    found = mapped(request)
    assert (list(found.pieces), found.records, found.rejected) == ([], 5, 5) and "log events" in found.why
    usage = traces(span("handle_responses", {"gen_ai.usage.input_tokens": 5}, id=CHAT), service="codex_exec")
    assert mapped(usage).rejected == 1
    spoken = traces(span("x", {"gen_ai.operation.name": "chat"}, id=CHAT), service="codex-bot")
    assert len(mapped(spoken).pieces) == 1


# --- messages that come as log records beside their span -------------------------------------------------------------


def message(name: str, body: Json, *, at: int, span_id: str = CHAT) -> Json:

    return {
        "timeUnixNano": str(START + at * 1000),
        "eventName": name,
        "body": value(body),
        "traceId": TRACE,
        "spanId": span_id,
    }


def test_messages_in_log_records_go_to_their_span(tmp_path: Path) -> None:
    said = [
        log_request(message("gen_ai.user.message", {"content": "hi"}, at=2), message("gen_ai.system.message", {"content": "be brief"}, at=1)),
        log_request(message("gen_ai.choice", {"index": 0, "message": {"content": "ho"}}, at=3), message("gen_ai.user.message", {"content": "x"}, at=4, span_id="f" * 16)),
    ]  # fmt: skip
    call = traces(chat())
    for number, order in enumerate(itertools.islice(itertools.permutations([*said, call, said[0]]), 0, 24, 3)):
        found = only(stored(tmp_path / str(number), *order))
        assert found.names == ["chat m"] and found.trace.agent_name == "svc"
        (step,) = found.steps
        assert step["input"] == {
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
        }
        assert step["output"] == {"messages": [{"role": "assistant", "index": 0, "message": {"content": "ho"}}]}


def test_a_spans_own_messages_count_more(tmp_path: Path) -> None:
    call = chat()
    call["attributes"] += attributes({"gen_ai.input.messages": "[1]"})  # type: ignore[operator]
    said = log_request(
        message(
            "gen_ai.client.inference.operation.details",
            {"gen_ai.input.messages": [2], "gen_ai.output.messages": [3]},
            at=2,
        )
    )
    (step,) = only(stored(tmp_path, said, traces(call))).steps
    assert (step["input"], step["output"]) == ({"messages": [1]}, {"messages": [3]})


def test_messages_of_no_span_are_refused() -> None:
    lost = message("gen_ai.user.message", {"content": "hi"}, at=2)
    del lost["spanId"]
    assert mapped(log_request(lost)).rejected == 1
