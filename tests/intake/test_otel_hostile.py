"""Whatever a sender says: what is acknowledged is in the store, and the journal has no line that can't be used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from otel_rig import REPOSITORY, Json, attributes, log_request, reading, span, traces

from guardhook.core.folders import explicit
from guardhook.intake.otel.writer import JSON, Reply, Writer

SOURCES = REPOSITORY / "guardhook" / "intake" / "otel"


def names() -> list[str]:
    """Every attribute that the receiver knows, as its sources name them."""
    text = "\n".join(path.read_text() for path in SOURCES.glob("*.py"))
    return sorted(set(re.findall(r'"([a-z_]+(?:[._][a-z_0-9]+)+)"', text)))


KNOWN = names()
ODD = st.one_of(
    st.sampled_from(["", " ", "\0", "\x1b[2J", "\ud83d", "\u202e", "null", "{}", "[", '{"a":1,"a":2}', "[" * 200, "1e999", "-1", "true", "x" * 3000]),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.booleans(),
    st.none(),
    st.floats(),
    st.lists(st.sampled_from(["a", 1, None, ["b"]]), max_size=2),
    st.dictionaries(st.sampled_from(["", "a", "__proto__"]), st.sampled_from(["x", 1, None]), max_size=2),
)  # fmt: skip
OWN = st.dictionaries(st.sampled_from(KNOWN), ODD, max_size=8)
EVENTS = ["user_prompt", "tool_call", "tool_result", "tool_decision", "api_request", "api_response", "api_error", "sse_event", "hook_call", "hook_execution_complete", "assistant_response"]  # fmt: skip
STAMP = st.one_of(st.none(), st.integers(-5, 1 << 70), st.sampled_from(["x", "", "1790000000000000000", 1.5e18]))
TEXT = st.sampled_from(["", "chat", "x", "\x1b", "invoke_agent y", " ", "qwen-code.interaction", "claude_code.tool"])
ID = st.sampled_from(["", "a" * 16, "b" * 16, "00" * 8])


@st.composite
def spans(draw: st.DrawFn) -> Json:
    event = {"name": draw(st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "tool.output"])), "attributes": attributes(draw(OWN))}  # fmt: skip
    status = {"code": draw(st.sampled_from([0, 1, 2, "STATUS_CODE_ERROR", None])), "message": draw(TEXT)}
    trace = draw(st.one_of(ID, st.integers(1, 9999).map("{:032x}".format)))
    found = span(draw(TEXT), draw(OWN), id=draw(ID), parent=draw(ID), trace=trace, status=status, events=[event])
    return found | {"startTimeUnixNano": draw(STAMP), "endTimeUnixNano": draw(STAMP)}


@st.composite
def records(draw: st.DrawFn) -> Json:
    prefix = draw(st.sampled_from(["claude_code.", "codex.", "gemini_cli.", "qwen-code."]))
    own = {**draw(OWN), "event.name": prefix + draw(st.sampled_from(EVENTS))}
    body = draw(st.sampled_from([None, {}, {"stringValue": "said"}, {"intValue": 5}, {"kvlistValue": {}}]))
    return {"attributes": attributes(own), "timeUnixNano": draw(STAMP), "body": body, "spanId": draw(ID)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Writer]]:
    base = tmp_path_factory.mktemp("otel")
    troubles: list[str] = []
    writer = Writer(explicit(str(base)), on_error=troubles.append)
    yield base, writer
    writer.close()
    assert troubles == []


def sent(writer: Writer, signal: str, request: Json) -> Reply:
    future: Future[Reply] = writer.submit(signal, JSON, json.dumps(request).encode())
    return future.result(30)


ODDLY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ODDLY
@given(st.lists(spans(), min_size=1, max_size=4))
def test_spans(place: tuple[Path, Writer], found: list[Json]) -> None:
    assert sent(place[1], "traces", traces(*found)).state in ("ok", "malformed")


@ODDLY
@given(st.lists(records(), min_size=1, max_size=4))
def test_records(place: tuple[Path, Writer], found: list[Json]) -> None:
    assert sent(place[1], "logs", log_request(*found)).state in ("ok", "malformed")


def test_and_all_of_it_can_be_read(place: tuple[Path, Writer]) -> None:
    """After the two above: reading fails on any line that could not be folded."""
    base, writer = place
    assert sent(writer, "traces", traces(span("the last one", id="1" * 16, trace="2" * 32))).state == "ok"
    found = reading(base)
    assert "the last one" in [name for one in found for name in one.names]
