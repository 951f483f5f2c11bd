"""Escaping, measuring and cutting; the words for times and sums; the shape of trees."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardhook.store import jsonout, steps_json
from guardhook.store.model import Happening, Step
from guardhook.views import text, timeline, tree

PLAIN = text.Paint(False)


def columns(said: str) -> int:
    """Columns by the terminal's own table, as an independent measure."""
    from rich.cells import cell_len

    return cell_len(said)


@given(st.text(), st.integers(1, 40))
def test_one_line_is_harmless_and_fits(said: str, most: int) -> None:
    line = text.one_line(said, most)
    assert text.cells(line) <= most
    assert line.isprintable()
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in line)


@given(st.text(alphabet="ab漢字ｆ😀é🔧ー한", max_size=60), st.integers(1, 40))
def test_wide_characters_are_measured_as_terminals_do_and_never_split(said: str, most: int) -> None:
    line = text.fit(said, most)
    assert columns(line) == text.cells(line) <= most
    assert line == said or (line.endswith("…") and said.startswith(line[:-1]))
    assert text.cells(text.pad(said, most)) == most


def test_what_is_cut_is_marked_and_what_fits_is_not() -> None:
    assert text.one_line("abcdef", 6) == "abcdef"
    assert text.one_line("abcdefg", 6) == "abcde…"
    assert text.one_line("漢字漢字", 7) == "漢字漢…"
    assert text.one_line("漢字漢字", 8) == "漢字漢字"
    assert text.one_line("a\x1b[2J\n\u202e", 40) == "a\\x1b[2J\\n\\u202e"
    assert text.one_line("x" * 100_000, 10) == "xxxxxxxxx…"


def test_blocks_keep_their_lines() -> None:
    assert text.block("a\r\nb\tc\rd\n\x07", 40) == ["a", "b    c\\rd", "\\x07"]
    assert text.block("\n".join("abcdef"), 40, 3) == ["a", "b", "c", "… 3 more lines"]


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0ms"), (999, "999ms"), (1000, "1.0s"), (59_940, "59.9s"), (60_000, "1m 0s"), (184_000, "3m 4s"), (7_500_000, "2h 5m"),
        (None, "-"), (-1, "-"), (float("nan"), "-"), (float("inf"), "-"),
    ],
)  # fmt: skip
def test_durations(ms: float | None, said: str) -> None:
    assert text.duration(ms) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "just now"), (59, "just now"), (60, "1m ago"), (3599, "59m ago"), (7200, "2h ago"), (86_400 * 29, "29d ago"), (86_400 * 65, "2mo ago"), (-60, "in the future")],
)  # fmt: skip
def test_how_long_ago(seconds: int, said: str) -> None:
    assert text.relative(10**15, 10**15 + seconds * 1_000_000) == said


def test_costs() -> None:
    assert [text.cost(v) for v in (None, 0.0, 1.5, 0.00001)] == ["-", "$0.0000", "$1.5000", "$0.00001000"]


@given(
    st.lists(
        st.tuples(st.text(alphabet="abc", min_size=1, max_size=8), st.text(alphabet="x漢😀 ", max_size=60)),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 90),
)
def test_boxes_have_straight_sides(rows: list[tuple[str, str]], width: int) -> None:
    lines = text.box(rows, width)
    assert all(text.cells(line) <= max(width, 1) for line in lines)
    if lines[0].startswith("╭"):
        assert len({text.cells(line) for line in lines}) == 1


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(_json)
def test_json_reads_back_and_is_ascii(value: object) -> None:
    said = jsonout.pretty(value)
    assert json.loads(said) == value
    assert said.isascii() and "\x7f" not in said
    assert said == json.dumps(value, indent=2)


def step(number: int = 1, **fields: object) -> Step:
    made = Step(number, "tool_call", "Bash", "{}", None, None, None, None, None, None, None, "{}", None, None, None, None, None, None, None)  # fmt: skip
    return made._replace(**fields)  # type: ignore[arg-type]


@given(_json, st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_streamed_steps_say_the_same_as_parsed_ones(value: object, name: str) -> None:
    made = step(input_json=json.dumps(value, ensure_ascii=True), name=name, error=name)
    said = steps_json.step_text(made, "trc_x")
    assert json.loads(said) == made.as_dict("trc_x") and said.isascii()
    parts: list[str] = []
    steps_json.write(parts.append, {"id": "x"}, "trc_x", [made, made], {"evals": []})
    assert json.loads("".join(parts)) == {"id": "x", "steps": [made.as_dict("trc_x")] * 2, "evals": []}


def test_a_trace_without_steps_is_whole_json() -> None:
    for tail in ({}, {"evals": []}):
        parts: list[str] = []
        steps_json.write(parts.append, {"id": "x"}, "x", [], dict(tail))
        assert json.loads("".join(parts)) == {"id": "x", "steps": [], **tail}


def test_a_column_that_is_no_json_does_not_break_the_document() -> None:
    assert json.loads(steps_json.step_text(step(input_json="{", metadata_json="nope"), "t"))["input"] == {}


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=30))
def test_a_tree_shows_every_step_once_and_parents_first(parents: list[int | None]) -> None:
    links = [(number, parent) for number, parent in enumerate(parents, 1)]
    walked = list(tree.Shape(links).walk())
    assert sorted(n for n, _ in walked) == [n for n, _ in links]
    place = {n: index for index, (n, _) in enumerate(walked)}
    depth = dict(walked)
    for number, parent in links:
        if parent is not None and 1 <= parent < number:
            assert place[parent] < place[number] and depth[number] == depth[parent] + 1
        else:
            assert depth[number] == 0


def test_a_chain_of_100_000_steps_renders() -> None:
    shape = tree.Shape((n, n - 1 or None) for n in range(1, 100_001))
    last = ""
    for line in tree.lines(shape, lambda n: step(n), 80, PLAIN):
        last = line
    assert "[depth 99999]" in last and text.cells(last) < 140


def test_happenings_stand_before_their_step_and_after_the_last() -> None:
    said = [
        Happening(1, "t", "user_prompt", None, 1, "go", "{}"),
        Happening(5, "t", "session_end", None, 3, None, '{"reason":"exit"}'),
    ]
    lines = list(timeline.lines([step(1), step(2)], iter(said), 80, PLAIN))
    assert [line[:7].strip() for line in lines] == ["◇ Promp", "│ go", "├─ 1 🔧", "├─ 2 🔧", "◇ Sessi"]


def test_notes_tell_what_a_reader_must_know() -> None:
    marked = step(metadata_json='{"rewritten":true,"redacted":["/x"],"interrupted":false,"unpaired":false}')
    assert timeline.notes(marked) == ["input was rewritten after it was judged", "redacted"]
    assert timeline.notes(step()) == []


def test_colours_only_when_asked_for() -> None:
    assert "\x1b" in text.Paint(True).status("failed") and "\x1b" not in PLAIN.status("failed")
