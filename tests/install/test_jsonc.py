"""JSON with comments: parsing with positions, and edits that change nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.harness import jsonc, jsonedit

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
NOISE = st.sampled_from(
    ["", " ", "  ", "\n", "\r\n", "\t", "\n\n  ", '// note, { [ " \n', '/* , } ] " */', " /* two\nlines */ "]
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A text of the value with random spacing, comments and trailing commas."""
    gap = lambda: draw(NOISE)  # noqa: E731
    if isinstance(value, dict):
        parts = [f"{gap()}{json.dumps(k)}{gap()}:{gap()}{draw(written(v))}{gap()}" for k, v in value.items()]
    elif isinstance(value, list):
        parts = [f"{gap()}{draw(written(v))}{gap()}" for v in value]
    else:
        return json.dumps(value)
    body = ",".join(parts) + ("," if parts and draw(st.booleans()) else "") + gap()
    return "{" + body + "}" if isinstance(value, dict) else "[" + body + "]"


@st.composite
def documents(draw: st.DrawFn) -> tuple[Any, str]:
    value = draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
    return value, draw(NOISE) + draw(written(value)) + draw(NOISE)


@given(documents())
@settings(max_examples=80, deadline=None)
def test_any_spelling_parses_to_its_value(case: tuple[Any, str]) -> None:
    value, text = case
    assert jsonedit.same(jsonc.parse(text).root.plain(), value)


def containers(node: jsonc.Node) -> list[jsonc.Node]:
    return [node, *(c for child in node.children if child.node.kind != "scalar" for c in containers(child.node))]


@given(documents(), VALUES, st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_inserting_adds_one_child_and_keeps_every_other_character(case: tuple[Any, str], value: Any, pick: int) -> None:
    document = jsonc.parse(case[1])
    found = containers(document.root)
    target = found[pick % len(found)]
    key = None if target.kind == "array" else "new key"
    before = [json.dumps(c.plain()) for c in found]
    after = jsonedit.insert(document, target, value, key)
    again = containers(after.root)[pick % len(found)]
    assert jsonedit.same(again.children[-1].node.plain(), value)
    assert json.dumps([c.node.plain() for c in again.children[:-1]]) == json.dumps(
        [c.node.plain() for c in target.children]
    )
    # What was there is still there, in order: the old text is what remains when the new pieces are left out.
    left = iter(after.text)
    assert all(char in left for char in document.text)
    # And taking it out again gives the same values; comments stay.
    back = jsonedit.remove(after, again, len(again.children) - 1)
    assert [json.dumps(c.plain()) for c in containers(back.root)] == before
    for comment in ("// note", "/* , } ]", "/* two"):
        assert back.text.count(comment) == document.text.count(comment)


@given(documents(), st.integers(0, 10**6), VALUES)
@settings(max_examples=80, deadline=None)
def test_replacing_changes_one_value(case: tuple[Any, str], pick: int, value: Any) -> None:
    document = jsonc.parse(case[1])
    children = [c for n in containers(document.root) for c in n.children]
    if not children:
        return
    child = children[pick % len(children)]
    after = jsonedit.replace(document, child.node, value)
    assert after.text[: child.node.start] == document.text[: child.node.start]
    assert after.text.endswith(document.text[child.node.end :])


TIDY = [
    '{\n  "a": [\n    1,\n    2\n  ]\n}\n',
    '{\r\n\t"a": [\r\n\t\t1 // one\r\n\t]\r\n}',
    '{"a":[1,2]}',
    '{ "a": [1, 2] }\n',
    '{\n    "a": [\n        1, // last\n        /* none */\n    ],\n}\n',
    '{"a": []}',
    '{\n  "a": []\n}\n',
]


@pytest.mark.parametrize("text", TIDY)
@pytest.mark.parametrize("value", [3, {"x": [1, {"y": None}]}, []])
def test_removing_what_was_inserted_gives_the_former_text(text: str, value: Any) -> None:
    document = jsonc.parse(text)
    array = jsonedit.find(document, ("a",))
    assert array is not None
    after = jsonedit.insert(document, array, value)
    again = jsonedit.find(after, ("a",))
    assert again is not None and again.children[-1].node.plain() == value
    assert jsonedit.remove(after, again, len(again.children) - 1).text == text


@pytest.mark.parametrize("text", TIDY)
def test_a_member_put_and_dropped_leaves_no_trace(text: str) -> None:
    after = jsonedit.put(jsonc.parse(text), ("b",), {"c": 1})
    assert after.root.plain() == {**json.loads(jsonc.json.dumps(jsonc.parse(text).root.plain())), "b": {"c": 1}}
    assert jsonedit.drop(after, ("b",)).text == text


def test_an_inserted_child_takes_on_indentation_and_line_ends() -> None:
    text = '{\r\n\t"a": [\r\n\t\t1\r\n\t]\r\n}'
    document = jsonc.parse(text)
    array = jsonedit.find(document, ("a",))
    assert array is not None
    assert jsonedit.insert(document, array, {"k": 2}).text == '{\r\n\t"a": [\r\n\t\t1,\r\n\t\t{"k": 2}\r\n\t]\r\n}'


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ('{\n  "a": ,\n}', 2, 8, "value"),
        ('{"a": 1 "b": 2}', 1, 9, "expected"),
        ('{"a": 1', 1, 8, "expected"),
        ('{"a": "x\n"}', 1, 7, "string"),
        ('{"a": 1} x', 1, 10, "after the end"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ('{\r\n\r\n"a": tru}', 3, 6, "value"),
        ("{ /* never", 1, 3, "comment"),
        ('{"a": 1,, "b": 2}', 1, 9, "double quotes"),
        ("[01]", 1, 3, "expected"),
        ('{"a": "\\x"}', 1, 7, "escape"),
        ('{"a": 1e999}', 1, 7, "too large"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "too large"),
    ],
)
def test_errors_name_line_and_column(text: str, line: int, column: int, word: str) -> None:
    with pytest.raises(jsonc.JsoncError) as caught:
        jsonc.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert word in caught.value.message


def test_depth_is_bounded() -> None:
    with pytest.raises(jsonc.JsoncError, match="deeper"):
        jsonc.parse("[" * 5000 + "]" * 5000)


def test_invalid_utf8_is_located() -> None:
    with pytest.raises(jsonc.JsoncError) as caught:
        jsonc.parse_bytes(b'{\n  "a": "\xff"\n}')
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_a_byte_order_mark_survives() -> None:
    data = b"\xef\xbb\xbf{}"
    document = jsonc.parse_bytes(data)
    assert document.bom and document.encode() == data


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_becomes_an_object_with_the_first_member(text: str) -> None:
    assert jsonedit.put(jsonc.parse(text), ("a",), 1).text == '{\n  "a": 1\n}\n'


def test_put_refuses_to_go_through_something_that_is_no_object() -> None:
    with pytest.raises(ValueError, match="a"):
        jsonedit.put(jsonc.parse('{"a": 1}'), ("a", "b"), 2)
