"""Both encodings of OTLP give the same, whatever senders write; what is no OTLP is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otel_rig import FIXTURES, START, Json, attributes, decoded, log_request, record, requests, span, traces

from guardhook.intake.otel import decode_json, decode_protobuf
from guardhook.intake.otel.records import Malformed, TooMany

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
PLAIN = st.recursive(
    st.one_of(st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), TEXT, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
HEX = st.binary(min_size=8, max_size=8).map(bytes.hex)


@settings(max_examples=30, deadline=None)
@given(
    own=st.dictionaries(TEXT, PLAIN, max_size=4),
    id=HEX,
    parent=HEX,
    name=TEXT,
    code=st.integers(0, 2),
    at=st.integers(-START, 1 << 60),
)
def test_spans_are_the_same_in_both_encodings(own: Json, id: str, parent: str, name: str, code: int, at: int) -> None:
    event = {"name": name, "attributes": attributes(own)}
    request = traces(
        span(name, own, id=id, parent=parent, at=at, status={"code": code, "message": name}, events=[event])
    )
    assert decode_json.spans(json.dumps(request).encode()) == [
        one._replace(events=list(one.events)) for one in decode_protobuf.spans(_protobuf(request))
    ]


def _protobuf(request: Json) -> bytes:
    from otel_rig import protobuf

    return protobuf(request)


@settings(max_examples=30, deadline=None)
@given(own=st.dictionaries(TEXT, PLAIN, max_size=4), event=TEXT)
def test_log_records_are_the_same_in_both_encodings(own: Json, event: str) -> None:
    request = log_request(record(event, own, eventName=event, observedTimeUnixNano=str(START)))
    assert decode_json.logs(json.dumps(request).encode()) == decoded(request)


@pytest.mark.parametrize("name", [path.name for path in sorted(FIXTURES.glob("*.json")) if "grpc" not in path.name])
def test_real_exports_are_the_same_in_both_encodings(name: str) -> None:
    for request in requests(name):
        read = {"resourceSpans": decode_json.spans, "resourceLogs": decode_json.logs, "resourceMetrics": decode_json.points}  # fmt: skip
        found = read[next(iter(request))](json.dumps(request).encode())
        assert found and [tuple(one) for one in found] == [
            tuple(list(part) if part == () else part for part in one)
            for one in decoded(request)  # type: ignore[attr-defined]
        ]


def one(**fields: object) -> decode_json.Span:
    (found,) = decode_json.spans(json.dumps(traces({"name": "n", **fields})).encode())
    return found


def test_numbers_and_names_as_senders_write_them() -> None:
    assert one(status={"code": "STATUS_CODE_ERROR"}).status == 2
    assert one(status={"code": "STATUS_CODE_OK"}).status == 1
    assert one(status={"code": 2, "message": "m"}).message == "m"
    assert one(startTimeUnixNano=START, endTimeUnixNano=float(START))[4:6] == (START, START)
    given = [
        {"key": "big", "value": {"intValue": "9007199254740993"}},
        {"key": "minus", "value": {"intValue": "-1"}},
        {"key": "number", "value": {"intValue": 5}},
        {"key": "none", "value": {}},
        {"key": "missing"},
        {"key": "odd", "value": {"intValue": "five"}},
        {"key": "nan", "value": {"doubleValue": "NaN"}},
        {"key": "bytes", "value": {"bytesValue": "AAE="}},
        {"key": "empty", "value": {"stringValue": ""}},
        {
            "key": "__proto__",
            "value": {"kvlistValue": {"values": [{"key": "constructor", "value": {"boolValue": False}}]}},
        },
        {"key": "list", "value": {"arrayValue": {}}},
    ]
    assert one(attributes=given).attributes == {
        "big": 9007199254740993, "minus": -1, "number": 5, "none": None, "missing": None, "odd": "five", "nan": "nan", "bytes": "AAE=",
        "empty": "", "__proto__": {"constructor": False}, "list": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    "stamp", [0, "0", -1, "-5", "", "abc", None, "9" * 40, START * 1_000_000_000, 1e300, "1e18", "١"]
)
def test_stamps_that_can_not_be_are_absent(stamp: object) -> None:
    assert one(startTimeUnixNano=stamp, endTimeUnixNano=str(START))[4:6] == (0, START)


@pytest.mark.parametrize("id", ["00000000000000000000000000000000", "", None])
def test_ids_of_zeros_are_none(id: object) -> None:
    assert one(traceId=id, spanId="ABcd").trace_id == "" and one(traceId=id, spanId="ABcd").span_id == "abcd"


def test_half_a_character_is_replaced() -> None:
    body = json.dumps(traces(span("cut here"))).replace("cut here", "cut \\ud83d").encode()
    (found,) = decode_json.spans(body)
    assert found.name == "cut \ufffd"


DEEP = '{"resourceSpans":' + "[" * 100_000 + "]" * 100_000 + "}"
NESTED = '{"arrayValue":{"values":[' * 5_000 + "{}" + "]}}" * 5_000
MALFORMED = [
    b"", b"null", b"[]", b"5", b'"x"', b"{", b"\xff\xfe", b'{"resourceSpans": {}}', b'{"resourceSpans": [5]}', b'{"resourceSpans": "x"}',
    b'{"resourceSpans": [{"scopeSpans": {}}]}', b'{"resourceSpans": [{"scopeSpans": [{"spans": {}}]}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [[]]}]}]}', b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": {}}]}]}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": 5}]}]}]}', b'{"resourceSpans": [{"resource": []}]}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"status": "bad"}]}]}]}', b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"events": 1}]}]}]}',
    b'{"resource_spans": []}', b'{"resourceLogs": []}', b'{"resourceSpans": [null]}', b'{"resourceSpans": NaN}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a\\u0000b"}]}]}]}', DEEP.encode(),
    f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{{"attributes": [{{"key": "a", "value": {NESTED}}}]}}]}}]}}]}}'.encode(),
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "' + b"a" * 200 + b'"}]}]}]}',
]  # fmt: skip


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_traces_request_is_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        decode_json.spans(body)
    assert str(caught.value)


def test_keys_in_the_wrong_style_are_told_so() -> None:
    with pytest.raises(Malformed, match="lowerCamelCase"):
        decode_json.logs(b'{"resource_logs": []}')
    with pytest.raises(Malformed, match="/v1/logs"):
        decode_json.logs(json.dumps(traces(span("x"))).encode())


@given(st.binary(max_size=60))
def test_random_bytes_never_do_more_than_be_refused(body: bytes) -> None:
    for read in (decode_json.spans, decode_protobuf.spans, decode_protobuf.logs, decode_protobuf.points):
        try:
            read(body)
        except Malformed as error:
            assert str(error)


def test_values_nested_too_deep_lose_what_is_too_deep() -> None:
    deep: object = "bottom"
    for _ in range(60):
        deep = [deep]
    (found,) = decode_json.spans(json.dumps(traces(span("n", {"deep": deep}))).encode())
    assert "bottom" not in json.dumps(found.attributes)


def test_unknown_keys_are_ignored() -> None:
    request = traces(span("n", future={"a": 1}, droppedAttributesCount=3, links=[{}]))
    assert len(decode_json.spans(json.dumps({**request, "later": 1}).encode())) == 1
    assert decode_json.spans(b'{"resourceSpans": null}') == [] == decode_json.spans(b"\xef\xbb\xbf{}")


def wire(number: int, inner: bytes) -> bytes:
    """A field that holds a message."""
    length, rest = bytearray(), len(inner)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    return bytes((number << 3 | 2, *length, rest)) + inner


MOST = 50_000
MANY = MOST + 5_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that is reached sooner."""
    for module in (decode_json, decode_protobuf):
        assert vars(module)["VALUES_MOST"] == 1_000_000
        monkeypatch.setattr(module, "VALUES_MOST", MOST)
    assert decode_protobuf._SCANNED_BYTES <= 2 << 20  # what is smaller has not many more values than may be
    monkeypatch.setattr(decode_protobuf, "_SCANNED_BYTES", 0)


AMPLIFYING = {
    "spans": wire(1, wire(2, b"\x12\x00" * MANY)),
    "attributes": wire(1, wire(2, wire(2, b"\x4a\x00" * MANY))),
    "values": wire(1, wire(2, wire(2, wire(9, wire(2, wire(5, b"\x0a\x00" * MANY)))))),
    "unknown fields": b"\x7a\x00" * (4 * MANY),
}


@pytest.mark.parametrize("body", AMPLIFYING.values(), ids=AMPLIFYING)
def test_a_body_that_would_grow_in_memory_is_refused_before_it_does(small: None, body: bytes) -> None:
    with pytest.raises(TooMany):
        decode_protobuf.spans(body)


@pytest.mark.parametrize(
    "inner", [b'{"spans":[' + b"{}," * MANY + b"{}]}", b'{"spans":[' + b"null," * (4 * MANY) + b"{}]}"]
)
def test_json_that_would_grow_in_memory_is_refused_before_it_does(small: None, inner: bytes) -> None:
    with pytest.raises(TooMany):
        decode_json.spans(b'{"resourceSpans":[{"scopeSpans":[' + inner + b"]}]}")


def test_long_texts_are_not_many_values(small: None) -> None:
    text = "j:2*\n" * (4 * MANY)  # bytes that look like fields
    request = traces(span(text, {"gen_ai.prompt": text}, id="a" * 16))
    (found,) = decode_protobuf.spans(_protobuf(request))
    assert found.attributes["gen_ai.prompt"] == text
    body = log_request({"body": {"stringValue": text}})
    assert len(decode_protobuf.logs(_protobuf(body))) == 1
