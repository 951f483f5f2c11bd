"""Packing: what is pooled, that nothing changes on the way there and back, and what a packed recording may not do to its reader."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.archive import plain
from guardhook.archive.errors import PackedRecordingError, PackedRecordingTooLargeError, UnreadableError
from guardhook.archive.packing import FORMAT, Packer, is_packed_recording, pack_recording
from guardhook.archive.unpacking import plain_size, unpack_recording

L = "x" * 70


def packed(values: list[Any], recording: Any) -> dict[str, Any]:
    return {"format": FORMAT, "values": values, "recording": recording}


def there_and_back(value: object) -> object:
    return unpack_recording(plain.loads(plain.encode(pack_recording(value))))


# --- 38: the vectors of the format --------------------------------------------------------------------------------


def test_vector_1_values_inside_values() -> None:
    value = {
        "snapshot": {"a": L, "b": [L, {"t": L, "n": 1}], "c": {"t": L, "n": 1}},
        "events": [],
        "structure": None,
    }
    found = pack_recording(value)
    assert found["values"] == [L, {"t": {"$gh:ref": 0}, "n": 1}]
    assert found["recording"] == {
        "snapshot": {"a": {"$gh:ref": 0}, "b": [{"$gh:ref": 0}, {"$gh:ref": 1}], "c": {"$gh:ref": 1}},
        "events": [],
        "structure": None,
    }
    assert plain_size(found) == len(plain.encode(value)) == 373


def test_vector_2_data_that_looks_like_marks() -> None:
    event = {"$gh:ref": 2, "p": "p" * 70}
    value = {
        "snapshot": {"ref": {"$gh:ref": 0}, "esc": {"$gh:esc": 5}, "both": {"$gh:ref": 1, "o": "y" * 70}},
        "events": [event, dict(event)],
        "structure": None,
    }
    found = pack_recording(value)
    assert found["values"] == [{"$gh:esc": {"$gh:ref": 2, "p": "p" * 70}}]
    assert found["recording"] == {
        "snapshot": {
            "ref": {"$gh:esc": {"$gh:ref": 0}},
            "esc": {"$gh:esc": {"$gh:esc": 5}},
            "both": {"$gh:esc": {"$gh:ref": 1, "o": "y" * 70}},
        },
        "events": [{"$gh:ref": 0}, {"$gh:ref": 0}],
        "structure": None,
    }
    assert plain_size(found) == 362
    assert plain.encode(unpack_recording(found)) == plain.encode(value)


def test_vector_3_kinds_of_scalars_differ() -> None:
    assert pack_recording({"a": 1, "b": 1.0, "c": True, "d": "1"})["values"] == []


def test_vector_4_a_bomb_is_refused_at_once() -> None:
    values: list[Any] = ["x" * 100]
    values += [[{"$gh:ref": k}] * 10 for k in range(40)]
    bomb = packed(values, {"$gh:ref": 40})
    assert len(plain.encode(bomb)) < 6200 and plain_size(bomb) > 10**42
    for bound in (0, 1000, 1e30):
        with pytest.raises(PackedRecordingTooLargeError) as told:
            unpack_recording(bomb, max_bytes=bound)
        assert told.value.max_bytes == bound


# --- 39: there and back -------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["$gh:ref", "$gh:esc", "a", "", "__proto__", 'q"k', "format"]) | st.text(max_size=4)
TEXTS = (
    st.text(max_size=6)
    | st.sampled_from([L, "é" * 63, '\x00\x1f\x7f\b\f\n\r\t"\\', "\ud800", "\udfff" * 12, "x" * 61, "x" * 62])
    | st.sampled_from(["😀" * 40, "$gh:ref"])
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, 1e16, 1e22])
    | TEXTS
)
JSON = st.recursive(LEAVES, lambda c: st.lists(c, max_size=5) | st.dictionaries(KEYS, c, max_size=5), max_leaves=25)


@settings(max_examples=600, deadline=None)
@given(JSON, st.integers(min_value=0, max_value=2))
def test_nothing_changes_on_the_way_there_and_back(value: object, times: int) -> None:
    whole = [value, *[copy.deepcopy(value) for _ in range(times)], {"again": value}]
    text = plain.encode(whole)
    found = pack_recording(whole)
    assert plain.encode(whole) == text  # 51: the input is left alone
    assert plain.encode(there_and_back(whole)) == text
    assert plain_size(found) == len(text)  # 45
    again = plain.loads(plain.encode(found))
    assert plain.encode(unpack_recording(again, max_bytes=len(text), parsed=True)) == text
    with pytest.raises(PackedRecordingTooLargeError):
        unpack_recording(again, max_bytes=len(text) - 1, parsed=True)
    assert unpack_recording(found, max_bytes=len(text)) is not None
    with pytest.raises(PackedRecordingTooLargeError):
        unpack_recording(found, max_bytes=len(text) - 1)
    assert plain.encode(pack_recording(whole)) == plain.encode(found)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=6))
def test_values_taken_in_one_by_one_are_packed_as_one(items: list[object]) -> None:
    packer = Packer()
    handles = [packer.add(copy.deepcopy(i)) for i in items]
    assert plain.encode(packer.packed({"events": handles, "n": None})) == plain.encode(
        pack_recording({"events": items, "n": None})
    )


# --- 40 to 43, 51, 52 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chars", "pooled"), [(63, False), (64, True)])
def test_how_long_a_pooled_text_is_at_least(chars: int, pooled: bool) -> None:
    text = "x" * (chars - 2)
    assert (pack_recording({"a": text, "b": [text]})["values"] == [text]) is pooled
    assert pack_recording({"a": text, "b": []})["values"] == []
    escaped = "\n" * ((chars - 2) // 2) + "x" * ((chars - 2) % 2)
    assert (pack_recording([escaped, {"k": escaped}])["values"] == [escaped]) is pooled
    inside = {"n": 1, "t": text}  # a text in an object of scalars is pooled just so
    assert bool(pack_recording([inside, {"m": text}])["values"]) is pooled


def test_members_of_a_repeated_container_are_not_pooled_for_themselves() -> None:
    row = {"a": "y" * 80, "b": {"c": "z" * 80, "d": [1, {"e": 2}]}}
    assert pack_recording([row, copy.deepcopy(row)])["values"] == [row]


def test_order_of_keys_counts() -> None:
    one, other = {"a": L, "b": 1}, {"b": 1, "a": L}
    found = pack_recording([one, other, dict(one), dict(other)])
    assert found["recording"] == [{"$gh:ref": 0}, {"$gh:ref": 2}, {"$gh:ref": 0}, {"$gh:ref": 2}]
    assert found["values"] == [{"a": {"$gh:ref": 1}, "b": 1}, L, {"b": 1, "a": {"$gh:ref": 1}}]


@pytest.mark.parametrize(
    "value",
    [
        {"$gh:ref": 0, "x": 1}, {"$gh:esc": "s"}, {"$gh:esc": {"$gh:esc": {"$gh:ref": 7}}}, {"$gh:ref": {"$gh:ref": True}},
        {"__proto__": {"": 1, 'a"b\\': L}, "l": [L]}, {"$gh:esc": [L, L]}, [], {}, "x", None, -0.0, [[], [{}], {"a": []}],
    ],
)  # fmt: skip
def test_data_that_looks_like_the_format_survives(value: object) -> None:
    assert plain.encode(there_and_back(value)) == plain.encode(value)


@pytest.mark.parametrize(
    "value",
    [{1: 2}, (1,), {"a": {2}}, b"x", math.nan, [math.inf], {"a": [{"b": -math.inf}]}, {None: 1}, "\ud83d\ude00"],
)
def test_what_is_no_json_is_not_packed(value: object) -> None:
    with pytest.raises(TypeError):
        plain.encode(pack_recording(value))


def test_cycles_and_depth() -> None:
    cycle: list[Any] = [{"a": [1]}]
    cycle[0]["a"].append(cycle)
    deep: Any = []
    for _ in range(999):
        deep = [deep]
    for refused in (cycle, [deep], {"a": {"b": deep}}):
        with pytest.raises(TypeError):
            pack_recording(refused)
        with pytest.raises(TypeError):
            plain.check(refused)
    plain.check(deep)
    assert plain.encode(there_and_back(deep)) == plain.encode(deep)
    shared: Any = [1]  # deep only where it hangs
    for _ in range(500):
        shared = [shared]
    under = shared
    for _ in range(500):
        under = [under]
    with pytest.raises(TypeError):
        pack_recording([shared, under])


# --- reading ---------------------------------------------------------------------------------------------------------


def test_plain_recordings_pass_whatever_the_bound() -> None:
    for value in ({"snapshot": {}}, [], None, {"format": "guardhook.recording.packedX"}, {"format": 3}):
        assert unpack_recording(value, max_bytes=0) is value
        assert not is_packed_recording(value)


@pytest.mark.parametrize("bound", [-1, math.nan, "5", True, None])
def test_bounds_that_are_none(bound: Any) -> None:
    for value in ({}, pack_recording([])):
        with pytest.raises(TypeError, match="max_bytes"):
            unpack_recording(value, max_bytes=bound)


def test_no_bound() -> None:
    assert unpack_recording(pack_recording([L, L]), max_bytes=math.inf) == [L, L]


CHAIN = [{"$gh:ref": k + 1} for k in range(5)]


@pytest.mark.parametrize(
    "value",
    [
        *[packed([L], {"$gh:ref": bad}) for bad in (-1, 1, 1.0, 0.0, "0", True, False, None, [0], {})],
        packed([{"$gh:ref": 0}], {"$gh:ref": 0}), packed([{"$gh:ref": 1}, [{"$gh:ref": 0}]], {"$gh:ref": 0}),
        packed([{"a": {"$gh:ref": 0}}], 1), packed([L, {"$gh:ref": 9}], 1), packed([*CHAIN, {"$gh:ref": 0}], 1),
        packed([], {"a": math.nan}), packed([(1,)], 1), packed([], {1: 2}), packed([], [{"$gh:ref": 0}]),
        {"format": FORMAT, "recording": 1}, {"format": FORMAT, "values": {}, "recording": 1}, {"format": FORMAT, "values": []},
        {**packed([], 1), "format": "guardhook.recording.packed.v2"}, {**packed([], 1), "format": "guardhook.recording.packed."},
    ],
)  # fmt: skip
def test_packed_recordings_that_stand_for_nothing(value: object) -> None:
    with pytest.raises(PackedRecordingError):
        unpack_recording(value)


def test_another_format_is_named() -> None:
    with pytest.raises(PackedRecordingError, match=r"packed\.v7"):
        unpack_recording({"format": "guardhook.recording.packed.v7"})


def test_depth_by_text_and_by_references() -> None:
    with pytest.raises(UnreadableError, match="deeper"):
        plain.loads("[" * 100_000 + "]" * 100_000)
    values: list[Any] = [[1]]
    values += [[{"$gh:ref": k}] for k in range(100_000)]
    for value in (packed(values, {"$gh:ref": 100_000}), packed(values[::-1], 1), packed(values, 1)):
        with pytest.raises(PackedRecordingError):
            unpack_recording(value)
    straight: list[Any] = [{"$gh:ref": k + 1} for k in range(1500)]
    assert unpack_recording(packed([*straight, [L]], {"$gh:ref": 0})) == [L]
    deep: Any = [1]
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(PackedRecordingError):
        unpack_recording(packed([], deep))
    with pytest.raises(PackedRecordingError):
        unpack_recording(packed([], deep), max_bytes=math.inf)


def test_depth_of_parsed_documents_is_exact() -> None:
    for levels in (1, 5, 23, 24, 25, 500, 999):
        deep: Any = [{"a": "[[{"}]
        for _ in range(levels - 1):
            deep = [deep, "x"]
        data = plain.encode(deep)
        assert plain.height(data) in ((levels + 1, None) if levels > 20 else (levels + 1,))
        assert unpack_recording(packed([], deep), parsed=True) == deep
        around: Any = {"$gh:ref": 0}
        for _ in range(999 - levels):
            around = [around]
        assert unpack_recording(packed([deep], around), parsed=True) is not None
        with pytest.raises(PackedRecordingError, match="deeper"):
            unpack_recording(packed([deep], [around]), parsed=True)


def test_references_give_one_object_unless_copied() -> None:
    found = unpack_recording(pack_recording([{"a": L}, {"a": L}]))
    assert isinstance(found, list) and found[0] is found[1]
    found = unpack_recording(pack_recording([{"a": L}, {"a": L}]), copy=True)
    assert isinstance(found, list) and found[0] == found[1] and found[0] is not found[1]


@pytest.mark.parametrize("text", ["é" * 40, "😀" * 20, '"' * 40, "\x01\x1f\x7f\b" * 20, "\ud800" * 30, "\u2028" * 30])
def test_the_bound_is_exact_to_the_byte(text: str) -> None:
    value = {"k" + text: [text, {"t": text}]}
    found = pack_recording(value)
    size = len(plain.encode(value))
    assert unpack_recording(found, max_bytes=size) == value
    with pytest.raises(PackedRecordingTooLargeError):
        unpack_recording(found, max_bytes=size - 1)


def history(turns: int) -> dict[str, object]:
    """A session that sends its whole history again at every turn, with results of about 20 KB."""
    said: list[object] = []
    events: list[object] = []
    for turn in range(turns):
        rows = [{"id": turn * 1000 + n, "name": f"customer {n} of {turn}", "city": "Somewhere"} for n in range(320)]
        said = [*said, {"role": "tool", "content": rows}]
        events.append({"ts": f"2026-01-01T00:00:{turn:02d}Z", "seq": turn, "type": "t", "data": {"messages": said}})
    return {"snapshot": {}, "events": events, "structure": None}


def test_packed_size_grows_with_the_session_not_with_its_square() -> None:
    small, large = history(10), history(40)
    sizes = [len(plain.encode(pack_recording(s))) for s in (small, large)]
    assert sizes[1] < 5 * sizes[0]
    assert len(plain.encode(large)) > 12 * len(plain.encode(small))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('{"a":1,"b":1.0,"c":-0.0,"d":true,"e":1e+22}', True), ('{"z":1,"a":{"c":[],"b":{}}}', True), ('["\\ud800","é\\u0000"]', True),
        ("[123456789012345678901234567890]", True),
    ],
)  # fmt: skip
def test_text_that_is_read_comes_out_as_it_was(text: str, same: bool) -> None:
    assert (plain.encode(plain.loads(text)).decode() == text) is same
    assert json.loads(plain.pretty(plain.loads(text))) == json.loads(text)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"{", b"[1,]", b'{"a":1,"a":2}', b"[NaN]", b"[-Infinity]", b"[1e400]", b"[" + b"9" * 5000 + b"]", b"1 2", b"\xef\xbb\xbf{}", b'["a\nb"]'],
)  # fmt: skip
def test_bytes_that_are_no_document(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        plain.loads(data)
