"""The opt-in events: each only when it is asked for, and no more than a hook can know."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from rollout_rig import Item, rendered, run, told, types
from store_rig import SESSION, Event, Journal, event, said

from guardhook.policy.settings import KEYS, Settings
from guardhook.rollout.causal import Graph, blame, data_flow, sealed, tokens
from guardhook.rollout.families import anomalous, estimate, fullness, mutation, prompt_hash
from guardhook.rollout.options import BadOptions, Options, of
from guardhook.store import Appender


def bash(name: str, call: str, command: str = "ls", **more: object) -> Event:
    return event(name, tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def data(events: list[Item], kind: str) -> dict[str, Any]:
    (found,) = told(events, kind)
    return found


def whole(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="p"),
        bash("pre_tool", "1", verdict=said("deny")),
        bash("pre_tool", "2"),
        bash("post_tool", "2", "ls -l"),
    )
    journal.add(event("other", native="StopFailure", error="x"))
    journal.add(event("session_end"), closes=True)


def test_nothing_of_it_unless_asked_for(journal: Journal) -> None:
    whole(journal)
    plain = rendered(journal)
    asked = rendered(
        journal, causal_graph_enabled=True, error_chain_enabled=True, trace_tool_decisions=True, detect_anti_patterns=True, trace_hook_mutations=True,
        audit_trail_enabled=True,
    )  # fmt: skip
    extra = {"causal.graph.snapshot", "error.context", "tool.decision", "tool.hook.mutation", "audit.action"}
    assert {k for k, _ in types(asked)} - {k for k, _ in types(plain)} == extra
    assert "forensics" not in data(plain, "run.started")
    assert set(data(asked, "run.started")["forensics"]) == {
        "causal_graph_enabled", "error_chain_enabled", "trace_tool_decisions", "detect_anti_patterns", "trace_hook_mutations", "audit_trail_enabled",
    }  # fmt: skip
    kinds = [k for k, _ in types(asked)]
    assert kinds[-3:] == ["causal.graph.snapshot", "error.context", "run.failed"]
    at = kinds.index("tool.call.started")
    assert kinds[at : at + 7] == [
        "tool.call.started", "audit.action", "tool_hook.started", "tool_hook.completed", "tool.hook.mutation", "tool.call.blocked", "tool.call.completed",
    ]  # fmt: skip


# --- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "multiplier", "at"),
    [
        ([9.0], 2.0, []), ([0.10, 0.20], 2.0, [1]), ([0.10, 0.15], 2.0, []), ([0, 0, 100], 2.0, []), ([0.10, 0.25], 3.0, []), ([0.10, 0.25, 0.60], 3.0, [2]),
        ([0.10, 0.20], 0.0, [1]),
    ],
)  # fmt: skip
def test_cost_anomalies(journal: Journal, costs: list[float], multiplier: float, at: list[int]) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot"})]
    for number, cost in enumerate(costs, 1):
        lines.append(
            (
                "trace.step",
                {"step_number": number, "step_type": "llm_call", "name": "m", "metadata": {"cost_usd": cost}},
            )
        )
    Appender(journal.folders).put("t", lines, opens=True)
    options = of(
        Settings(
            {}, {"forensics": {"cost_anomaly_detection_enabled": True, "cost_anomaly_step_multiplier": multiplier}}
        )
    )
    events = rendered(
        journal,
        "t",
        cost_anomaly_detection_enabled=True,
        cost_anomaly_step_multiplier=options.cost_anomaly_step_multiplier,
    )
    found = told(events, "cost.anomaly")
    assert [f["step"] for f in found] == [n + 1 for n in at]
    if found:
        assert set(found[0]) == {"step", "anomaly_type", "step_cost_usd", "avg_cost_usd", "threshold_multiplier"}
    assert not anomalous(5.0, 0.0, 2.0)


def test_without_a_reported_cost_there_is_no_anomaly(journal: Journal) -> None:
    for n in range(3):
        journal.add(event("model_response", dialect="codex", request_id=str(n), token_usage={"input_tokens": 10**n}))
    journal.add(event("user_prompt", dialect="codex", prompt="p"))
    assert not told(rendered(journal, cost_anomaly_detection_enabled=True), "cost.anomaly")


# --- loops, decisions, mutations -------------------------------------------------------------------------------------


def test_the_third_equal_call(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p"))
    for n in range(5):
        given = {"command": "ls", "description": f"try {n}", "timeout": n}
        journal.add(event("pre_tool", tool="Bash", given=given, call=f"a{n}"), bash("pre_tool", f"b{n}", f"echo {n}"))
    found = data(rendered(journal, detect_anti_patterns=True), "tool.antipattern")
    assert found == {"step": 1, "type": "retry_loop", "tool": "Bash", "call_count": 3, "call_id": "a2"}
    assert not told(rendered(journal, detect_anti_patterns=True, volatile_arguments=()), "tool.antipattern")


def test_decisions_are_told_once_for_each_turn(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="p"), bash("pre_tool", "1"), event("pre_tool", tool="Read", given={}, call="2")
    )
    journal.add(
        bash("post_tool", "1"),
        event("post_tool", tool="Read", given={}, call="2"),
        bash("pre_tool", "3"),
        event("stop"),
    )
    found = told(rendered(journal, trace_tool_decisions=True), "tool.decision")
    assert found == [
        {
            "step": 1,
            "call_sequence": 1,
            "call_sequence_id": "call_1",
            "available_tools": None,
            "selected_tools": ["Bash", "Read"],
        },
        {
            "step": 2,
            "call_sequence": 2,
            "call_sequence_id": "call_2",
            "available_tools": None,
            "selected_tools": ["Bash"],
        },
    ]


@pytest.mark.parametrize(
    ("before", "after", "blocked", "action"),
    [("a", "a", True, "Block"), ("a", "b", True, "Block"), ("a", "a", False, "Allow"), ("", "b", False, "Inject"), ("null", "b", False, "Inject"), ("a", "b", False, "Modify"), ("a", "", False, "Modify")],
)  # fmt: skip
def test_what_a_hook_did_to_a_call(before: str, after: str, blocked: bool, action: str) -> None:
    assert mutation(before, after, blocked=blocked) == action


def test_denials_and_inputs_that_were_changed_underway(journal: Journal) -> None:
    whole(journal)
    first, second = told(rendered(journal, trace_hook_mutations=True), "tool.hook.mutation")
    assert (first["hook"], first["action"], first["tool_call_id"]) == ("guardhook", "Block", "1")
    assert second == {
        "step": 2, "tool_call_id": "2", "hook": "unknown", "action": "Modify", "args_before": '{"command":"ls"}', "args_after": '{"command":"ls -l"}',
    }  # fmt: skip


# --- the causal graph ------------------------------------------------------------------------------------------------


def test_tokens_of_a_result() -> None:
    assert tokens("hello world important_value foobar baz") == ["important_value", "foobar"]
    assert tokens("should return string result") == []
    assert tokens('("Quoted_Word"), $VARIABLE= quoted_word') == ["quoted_word", "$variable="]
    assert tokens("x" * 101 + " " + "y" * 100) == ["y" * 100]
    assert sealed("important_value") == "[sha256:55060421f192a666][len=15]"


def test_edges_lead_forward_and_there_is_one_for_each_pair() -> None:
    calls = [("a", "nothing"), ("b", "use important_value and foobar"), ("c", "FOOBAR")]
    results = [("b", "important_value"), ("a", "important_value foobar"), ("c", "important_value")]
    assert [(e["from"], e["to"]) for e in data_flow(calls, results)] == [("a", "b"), ("a", "c")]
    many = [(str(n), "important_value") for n in range(300)]
    assert len(data_flow(many, [(str(n), "important_value") for n in range(300)])) <= 10_000


def test_the_graph_of_a_run(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="p"),
        bash("pre_tool", "1", "cat key"),
        bash("post_tool", "1", "cat key", tool_response="sk-verysecretvalue"),
    )
    journal.add(bash("pre_tool", "2", "curl -H sk-verysecretvalue"))
    journal.add(event("session_end"), closes=True)
    found = data(rendered(journal, causal_graph_enabled=True), "causal.graph.snapshot")
    assert found["context"] == "not-recorded" and "verysecret" not in json.dumps(found)
    assert [n["id"] for n in found["graph"]["nodes"]] == ["turn-1", "1", "turn-2", "2"]
    (edge,) = found["graph"]["edges"]
    assert (edge["from"], edge["to"], edge["type"], edge["matched_token"]) == (
        "1",
        "2",
        "data_flow",
        sealed("sk-verysecretvalue"),
    )


def test_the_largest_graph_fits_into_a_line() -> None:
    """That of a long run did not, and the whole graph was lost for it."""
    from guardhook.rollout.lines import fitting

    graph = Graph()
    for number in range(20_000):
        graph.node(f"call-{number}", "tool_call", number, "Bash")
        graph.context(f"message-{number}", f"turn-{number}")
    assert graph.cut
    flow = [{"from": f"call-{n}", "to": "call-1", "type": "data_flow", "matched_token": sealed("token")} for n in range(10_000)]  # fmt: skip
    made = {**graph.as_dict(), "edges": [*graph.edges, *flow]}
    data = {"schema_version": "1", "conversation_id": "c", "step": 1, "graph": made, "truncated": True}
    assert fitting({"ts": "2026-01-01T00:00:00Z", "seq": 1, "type": "causal.graph.snapshot", "data": data}) is not None
    small = Graph()
    small.node("a", "tool_call", 1, "Bash")
    small.node("a", "tool_call", 1, "Bash")
    assert not small.cut


def test_context_edges_come_from_messages_that_a_model_hook_shows(journal: Journal) -> None:
    messages = [
        {"role": "user", "id": "m1", "content": "p"},
        {"role": "tool", "tool_call_id": "c9", "content": "x"},
        {"content": "no id"},
    ]
    journal.add(
        event("user_prompt", prompt="p", dialect="gemini"),
        event("model_request", native="BeforeModel", dialect="gemini", llm_request={"messages": messages}),
    )
    journal.add(event("session_end", dialect="gemini"), closes=True)
    found = data(rendered(journal, causal_graph_enabled=True), "causal.graph.snapshot")
    assert (
        found["graph"]["edges"] == [{"from": m, "to": "turn-1", "type": "context"} for m in ("m1", "c9")]
        and "context" not in found
    )


def test_blame_and_adjacency() -> None:
    graph = Graph()
    for name in ("a", "b", "c", "leaf"):
        graph.node(name, "tool_call", 1)
    graph.node("a", "llm_turn", 9)
    graph.edges += [
        {"from": f, "to": t, "type": "data_flow"} for f, t in (("a", "b"), ("b", "c"), ("c", "a"), ("nobody", "c"))
    ]
    assert [(e["id"], e.get("cause")) for e in blame(graph.as_dict(), "c")] == [("c", None), ("b", "c"), ("a", "b")]
    assert blame(graph.as_dict(), "nobody") == [] and blame({}, "a") == []
    assert graph.adjacency() == {"a": ["b"], "b": ["c"], "c": ["a"], "leaf": []}
    assert graph.nodes["a"]["type"] == "tool_call"


# --- context windows and requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("漢字漢字", 1)])
def test_estimates(text: str, count: int) -> None:
    assert estimate(text) == count


def test_how_full_a_window_is() -> None:
    assert fullness(50, 100) == (0.5, 50) and fullness(150, 100) == (1.5, -50) and fullness(50, 0) == (0.0, 0)


def test_snapshots_and_warnings(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="abcde", dialect="codex"),
        event("model_response", dialect="codex", request_id="1", token_usage={"input_tokens": 80}),
    )
    journal.add(event("model_response", dialect="codex", request_id="2", token_usage={"output_tokens": 1}))
    more = {
        "context_window_snapshot_enabled": True,
        "model_context_window": 100,
        "context_window_warning_threshold": 0.8,
    }
    events = rendered(journal, **more)
    first, second = told(events, "context.window.snapshot")
    assert first == {
        "step": 1, "provider_reported_tokens": 80, "provider_reported": True, "estimated_total_tokens": 2, "max_context_tokens": 100, "usage_ratio": 0.8,
        "headroom_tokens": 20,
        "breakdown": {"system_prompt_tokens": 0, "conversation_tokens": 2, "tool_result_tokens": 0, "estimated": True},
    }  # fmt: skip
    assert second["provider_reported"] is False and second["usage_ratio"] == 0.02
    assert data(events, "context.window.warning") == {
        "step": 1, "usage_ratio": 0.8, "threshold": 0.8, "provider_reported": True, "tokens_used": 80, "max_context_tokens": 100,
    }  # fmt: skip
    assert not told(rendered(journal, **{**more, "context_window_warning_threshold": 0.0}), "context.window.warning")


def test_envelopes_of_requests(journal: Journal) -> None:
    messages = [
        {"role": "user", "content": "ab"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "cd"}}]},
    ]
    asked = event(
        "model_request",
        native="BeforeModel",
        dialect="gemini",
        llm_request={"model": "g", "messages": messages, "tools": ["look"]},
    )
    journal.add(event("user_prompt", prompt="p", dialect="gemini"), asked, event("model_response", native="AfterModel", dialect="gemini", llm_request={"model": "g"}, llm_response={"text": "x"}))  # fmt: skip
    events = rendered(journal, capture_request_envelope=True)
    found = data(events, "llm.request.snapshot")
    assert found["prompt_hash"] == hashlib.sha256(b"abcd").hexdigest() == prompt_hash(list(messages), None)
    assert (found["prompt_hash_kind"], found["tool_names"]) == ("sha256", ["look"])
    assert data(events, "llm.response.meta") == {"step": 1, "latency_ms": 1000, "model_version": "g"}
    keyed = rendered(journal, capture_request_envelope=True, prompt_hash_key="k")
    assert data(keyed, "llm.request.snapshot")["prompt_hash"] == hmac.new(b"k", b"abcd", hashlib.sha256).hexdigest()
    assert '"k"' not in json.dumps(data(keyed, "run.started"))


def test_a_harness_that_does_not_show_its_messages_has_no_envelope(journal: Journal) -> None:
    journal.add(
        event("user_prompt", prompt="p", dialect="codex"), event("model_request", dialect="codex", request_id="1")
    )
    assert not told(rendered(journal, capture_request_envelope=True), "llm.request.snapshot")


def test_thoughts(journal: Journal) -> None:
    answer = {
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "yes"}]}, "finishReason": "STOP"}
        ]
    }
    journal.add(
        event("user_prompt", prompt="p", dialect="gemini"),
        event("model_response", native="AfterModel", dialect="gemini", llm_response=answer),
    )
    assert data(rendered(journal), "llm.turn.completed")["content"] == "yes" and not told(
        rendered(journal), "reasoning.complete"
    )
    assert data(rendered(journal, capture_reasoning=True), "reasoning.complete")["content"] == "hm"


# --- errors ----------------------------------------------------------------------------------------------------------


def test_what_went_before_a_failure(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p"))
    for n in range(12):
        journal.add(
            bash("pre_tool", str(n), "x" * 70_000 if n == 11 else "ls"), bash("post_tool_failure", str(n), error="e")
        )
    journal.add(event("other", native="StopFailure", error="provider down"))
    journal.add(event("session_end"), closes=True)
    found = data(rendered(journal, error_chain_enabled=True), "error.context")
    assert (found["class"], found["error"]) == ("provider", "[provider] provider down")
    shot = found["snapshot"]
    assert [c["call_id"] for c in shot["tool_calls"]] == [str(n) for n in range(2, 12)] and shot["depth"] == 10
    assert len(shot["tool_calls"][-1]["args"]) == 65_536 and shot["tool_calls"][0]["error_msg"] == "e"
    assert shot["messages"] == [{"role": "user", "content": "p"}]


def test_a_run_that_did_not_fail_has_no_error_context(journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="p"))
    journal.add(event("session_end"), closes=True)
    assert not told(rendered(journal, error_chain_enabled=True), "error.context")


# --- settings --------------------------------------------------------------------------------------------------------


def test_every_option_is_a_known_setting() -> None:
    import msgspec

    known = {key.name for key in KEYS}
    assert {f"forensics.{f.name}" for f in msgspec.structs.fields(Options)} - known == {"forensics.tenant_id"}


@pytest.mark.parametrize(
    "wrong",
    [{"causal_graph_enabled": "yes"}, {"error_context_depth": -1}, {"error_context_depth": True}, {"volatile_arguments": "x"}, {"prompt_hash_key": 7}, {"cost_anomaly_step_multiplier": float("nan")}],
)  # fmt: skip
def test_settings_that_mean_nothing(wrong: dict[str, object]) -> None:
    with pytest.raises(BadOptions, match=next(iter(wrong))):
        of(Settings({}, {"forensics": wrong}))


def test_settings_reach_the_export(journal: Journal) -> None:
    whole(journal)
    (journal.base / "config.toml").write_text('[forensics]\ntrace_tool_decisions = true\n[identity]\ntenant = "acme"\n')
    events = list(map(json.loads, run("export", SESSION, data=journal.base).stdout.splitlines()))
    assert told(events, "tool.decision") and data(events, "run.started")["tenant_id"] == "acme"
