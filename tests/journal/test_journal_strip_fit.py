from __future__ import annotations

import copy
import json
import marshal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core import limits
from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.core.jsontext import dumps, strings
from guardhook.core.verdict import Answer, Verdict
from guardhook.journal import fit, line, redact, rules, strip

ROWS: tuple[redact.Row, ...] = marshal.loads(marshal.dumps(rules.freeze_rules()))
PAYLOADS = sorted((Path(__file__).parents[1] / "fixtures" / "payloads").rglob("*.json"))
KEY = "AKIAIOSFODNN7EXAMPLE"


def data_of(
    payload: dict[str, object], reason: str = "rm is blocked", span: str | None = "rm -rf /"
) -> dict[str, object]:
    event = Event("claude-code", "PreToolUse", "pre_tool", payload)
    event.session, event.cwd = "s", "/p"
    verdict = Verdict("deny", reason, "no-rm")
    verdict.span = span
    effect = Effect(
        "delete",
        program="rm",
        argv=("-rf", "/SPOKEN"),
        path="/SPOKEN",
        detail="SPOKEN",
        flags=frozenset(("recursive",)),
    )
    return line.received(event, [effect], verdict, Answer(2, b'{"reason":"SPOKEN"}', b"SPOKEN"))


# -- strip


def test_nothing_that_was_said_or_done_stays() -> None:
    payload: dict[str, object] = {
        "session_id": "s",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "stop_hook_active": False,
        "tool_input": {"command": "SPOKEN"},
        "tool_response": {"stdout": "SPOKEN"},
        "tool_output": "SPOKEN",
        "prompt": "SPOKEN",
        "last_assistant_message": "SPOKEN",
        "tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "SPOKEN"}}],
        "message": "SPOKEN",
        "error": "SPOKEN",
        "reason": "SPOKEN",
        "a_member_of_next_year": "SPOKEN",
        "mode": {"nested": "SPOKEN"},
        "model": "SPOKEN" * 1000,
    }
    data = data_of(payload, reason="blocked: SPOKEN", span="SPOKEN")
    data["redacted"] = ["/tool_input/command", "/tool_name"]
    before = copy.deepcopy(data)
    new = strip.strip(data)
    assert data == before
    assert "SPOKEN" not in dumps(new)
    assert new["payload"] == {
        "session_id": "s",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "stop_hook_active": False,
    }
    assert "tool_input" in new["stripped"] and "a_member_of_next_year" in new["stripped"]  # type: ignore[operator]
    assert new["redacted"] == ["/tool_name"]
    assert new["verdict"]["policy"] == "no-rm" and new["verdict"]["answer"]["exit"] == 2  # type: ignore[index]
    assert new["effects"] == [{"kind": "delete", "flags": ["recursive"]}]
    assert strip.strip(new)["payload"] == new["payload"]


def test_a_known_end_reason_stays_and_others_go() -> None:
    assert strip.strip({"payload": {"reason": "clear"}})["payload"] == {"reason": "clear"}
    assert strip.strip({"payload": {"reason": "because the user said so"}})["payload"] == {}


@pytest.mark.skipif(not PAYLOADS, reason="no captured payloads")
def test_captured_payloads_keep_their_facts_and_lose_their_texts() -> None:
    for path in PAYLOADS:
        try:
            payload = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if not isinstance(payload, dict) or "hook_event_name" not in payload:
            continue
        new = strip.strip({"payload": payload})["payload"]
        assert isinstance(new, dict)
        for name in ("session_id", "hook_event_name", "tool_name", "tool_use_id"):
            if isinstance(payload.get(name), str):
                assert new[name] == payload[name], path
        assert (
            not {
                "tool_input",
                "tool_response",
                "prompt",
                "last_assistant_message",
                "tool_calls",
                "prompt_response",
                "llm_request",
            }
            & new.keys()
        )


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"payload": None},
        {"payload": [], "effects": None, "verdict": None},
        {"payload": {}, "verdict": {"answer": None}},
    ],
)
def test_odd_shapes_do_no_harm(data: dict[str, object]) -> None:
    assert strip.strip(data)["payload"] == {}


# -- protect


def test_every_channel_of_a_line_is_redacted() -> None:
    payload: dict[str, object] = {"tool_input": {"command": f"echo {KEY}"}, "tool_name": "Bash"}
    data = data_of(payload, reason=f"no {KEY}", span=f"echo {KEY}")
    data["effects"] = [{"kind": "run", "argv": [KEY], "detail": KEY}]
    data["verdict"]["answer"] = {"exit": 2, "stdout": json.dumps({"reason": KEY}), "stderr": KEY}  # type: ignore[index]
    before = copy.deepcopy(data)
    new = redact.protect(data, ROWS, "redacted")
    assert data == before
    assert KEY not in dumps(new)
    assert new["redacted"] == ["/tool_input/command"]
    assert "cut" not in new and "redaction" not in new
    assert KEY in dumps(redact.protect(data, ROWS, "full"))


@pytest.mark.parametrize("mode", ["none", "hashed"])
def test_modes_that_hide_the_payload_hide_its_quotations_too(mode: str) -> None:
    data = data_of({"tool_input": {"command": "SPOKEN"}, "tool_name": "Bash"}, reason="SPOKEN", span="SPOKEN")
    new = redact.protect(data, ROWS, mode)
    assert "SPOKEN" not in dumps(new)
    assert new["redaction"] == mode
    assert new["redacted"] == [""]
    assert new["verdict"]["action"] == "deny"  # type: ignore[index]
    assert new["payload"] == {} if mode == "none" else new["payload"] != {}


@pytest.mark.parametrize("shift", [0, 1, 5, 10, 19, 20, 21])
def test_a_cut_never_leaves_half_a_secret(shift: int) -> None:
    """A secret that the cut goes through: first the cut of the reading, then the one of the recording."""
    for step in fit.STEPS[:2]:
        for place in (step, step + fit.MARGIN):
            text = "x " * ((place - shift) // 2) + " " * ((place - shift) % 2) + KEY + " y" * 600_000
            new = redact.protect(
                {"payload": {"a": text, "b": "z" * (limits.RECORD_BYTES if step != fit.STEPS[0] else 1)}},
                ROWS,
                "redacted",
            )
            kept = new["payload"]["a"]  # type: ignore[index]
            assert "/a" in new["cut"]  # type: ignore[operator]
            assert len(kept) <= fit.STEPS[0]
            assert "AKI" not in kept
            assert len(dumps(new)) <= limits.RECORD_BYTES


def test_many_secrets_before_the_cut_do_not_pull_in_what_was_not_read_whole() -> None:
    unit = "ghp_" + "a1B2" * 30 + " "
    text = unit * 3000
    new = redact.protect({"payload": {"a": text + text + text}}, ROWS, "redacted")
    assert "ghp_" not in new["payload"]["a"]  # type: ignore[index]
    assert new["cut"] == ["/a"]


def test_small_payloads_are_not_cut() -> None:
    text = "word " * 100_000
    new = redact.protect({"payload": {"a": text}}, ROWS, "redacted")
    assert new["payload"] == {"a": text}
    assert "cut" not in new


# -- fit


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 30))
def test_clip_keeps_beginnings_and_names_what_it_cut(lengths: list[int], most: int) -> None:
    value = {"list": ["é" * n for n in lengths], "deep": {"x": [{"y": "z" * n} for n in lengths]}}
    before = copy.deepcopy(value)
    new, pointers = fit.clip(value, most)
    assert value == before
    assert all(len(text) <= most for text in strings(new))
    long = [i for i, n in enumerate(lengths) if n > most]
    assert sorted(pointers) == sorted([f"/list/{i}" for i in long] + [f"/deep/x/{i}/y" for i in long])
    assert (new is value) == (not long)


def test_level_takes_the_longest_that_fits() -> None:
    assert fit.level({"a": "x" * 100}, 100) is None
    assert fit.level({"a": "x" * 2_000_000}, 1_000_000) == 262_144
    assert fit.level(["x" * 300_000] * 10, 1_000_000) == 65_536
    assert fit.level(["x" * 300] * 100_000, 1_000_000) == 256


def test_squeeze_always_fits_and_keeps_the_verdict() -> None:
    verdict = {"action": "deny", "policy": "p", "reason": "r", "answer": {"exit": 2, "stdout": "x", "stderr": "y"}}
    for payload in (
        {"a": "\U0001f600" * 400_000},
        {str(n): "x" * 40 for n in range(60_000)},
        {"n": list(range(400_000))},
        [[]],
    ):
        for effects in ([], [{"kind": "run", "argv": ["x" * 100] * 50_000}]):
            new = fit.squeeze(
                {"event": "pre_tool", "payload": payload, "effects": effects, "verdict": verdict}, limits.RECORD_BYTES
            )
            assert len(dumps(new)) <= limits.RECORD_BYTES or (payload == [[]] and not effects)
            assert new["verdict"]["action"] == "deny"  # type: ignore[index]
            assert new["event"] == "pre_tool"
