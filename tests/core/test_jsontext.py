"""Strict JSON: what is refused, what is tolerated, what comes out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core import jsontext, limits
from guardhook.core.jsontext import PayloadError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"{", "malformed"),
        (b'{"a":1', "malformed"),
        (b"{}{}", "malformed"),
        (b"{} x", "malformed"),
        (b"nul", "malformed"),
        (b'{"a":"line\nbreak"}', "malformed"),
        (b"\xff\xfe{}", "encoding"),
        (b'{"a":"\xe2\x82"}', "encoding"),
        (b'{"a":1,"a":2}', "duplicate"),
        (b'{"x":{"a":1,"b":2,"a":3}}', "duplicate"),
        (b"NaN", "number"),
        (b'{"a":-Infinity}', "number"),
        (b"1e999", "number"),
        (b"[" * 3000, "nesting"),
        (b"[" * 65 + b"]" * 65, "nesting"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nesting"),
        (b"[" + b"1," * 100_000 + b"1]", "elements"),
        (b"1" * 5000, "malformed"),
    ],
)
def test_refused(data: bytes, kind: str) -> None:
    with pytest.raises(PayloadError) as caught:
        jsontext.loads(data)
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value)


def test_what_is_tolerated() -> None:
    assert jsontext.loads(b'\xef\xbb\xbf {"a": [1, 2.5, null, true]}\r\n') == {"a": [1, 2.5, None, True]}
    assert jsontext.loads(b'"\\ud83d"') == "\ud83d"  # a client cut the text in the middle of an emoji
    assert jsontext.loads(b"[" * 64 + b"]" * 64)
    assert jsontext.loads(b'"\xff"', replace=True) == "\ufffd"


def test_brackets_in_text_do_not_count_as_nesting() -> None:
    assert jsontext.loads(json.dumps({"a": "[{" * 5000}).encode()) == {"a": "[{" * 5000}
    assert jsontext.loads(json.dumps({"a": "," * 200_000}).encode()) == {"a": "," * 200_000}


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_round_trip_agrees_with_the_standard_library(value: object) -> None:
    text = jsontext.dumps(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert jsontext.loads(text.encode()) == value
    assert jsontext.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value or any(
        0xD800 <= ord(c) < 0xE000 for c in json.dumps(value, ensure_ascii=False)
    )


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        jsontext.loads(data)
    except PayloadError:
        pass


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_printable_is_one_safe_line(text: str) -> None:
    shown = jsontext.printable(text, 80)
    assert len(shown) <= 80
    assert shown.isprintable()


@pytest.mark.parametrize(
    "bad", ["\x1b[31m", "\u202e", "\u200b", "\x9b", "\ufe0f", "\U000e0041", "\r\n", "\u0301", "\u2066"]
)
def test_printable_shows_what_hides(bad: str) -> None:
    shown = jsontext.printable(f"a{bad}b")
    assert all(char not in shown for char in bad if not char.isascii() or not char.isprintable())
    assert "\\" in shown


def test_strings_come_in_document_order() -> None:
    assert jsontext.strings({"a": "1", "b": ["2", {"c": "3"}], "d": "4"}) == ["1", "2", "3", "4"]


def test_a_lone_surrogate_can_be_written() -> None:
    assert jsontext.dumps({"a": "\ud800"}) == '{"a":"\\ud800"}'


def test_limits_ladder() -> None:
    assert limits.STDIN_ENFORCING < limits.WATCHDOG_ENFORCING < limits.LAUNCHER_ENFORCING < limits.REGISTERED_ENFORCING
    assert limits.STDIN_OBSERVING < limits.TOTAL_OBSERVING
