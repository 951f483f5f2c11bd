"""Texts on their way to a model and back: whatever they hold, nothing breaks and no marker gets through."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core.text import fold, skeleton
from guardhook.evals.ai import framing, reply
from guardhook.evals.ai.cleaning import Cleaner
from guardhook.evals.ai.presets import PRESETS
from guardhook.journal.rules import freeze_rules

MARKER = re.compile(r"untrusted[\W_]{0,8}data", re.IGNORECASE)
PIECES = st.sampled_from(
    ["<", "/", "untrusted", "UNTRUSTED", "_", " ", "data", "u n", "trusted", "\u200b", "ｄａｔａ", ">", "\n", "é", "x"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=15,
)
FIELDS = (
    "relevance", "completeness", "coherence", "accuracy", "confidence", "failing_step", "severity", "risk_level", "findings", "issues", "optimizations",
    "efficiency_score", "root_cause", "contributing_factors", "safe",
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=200, deadline=None)
def test_no_marker_survives(text: str) -> None:
    clean = framing.neutral(text)
    assert not MARKER.search(clean)
    assert all(not MARKER.search(skeleton(fold(line))) for line in clean.split("\n"))
    frame = framing.Frame()
    framed = frame.around(text + frame.number)
    assert framed.count(frame.number) == 2


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_reply_is_read(text: str) -> None:
    found = reply.found_object(text)
    assert found is None or isinstance(found, dict)


@given(
    st.text(alphabet='ab {}"`\n:,', max_size=60),
    st.dictionaries(st.text(max_size=5), st.integers(), min_size=1, max_size=3),
)
@settings(max_examples=100, deadline=None)
def test_a_fenced_object_at_the_end_is_found(before: str, value: dict[str, int]) -> None:
    before = before.replace("`", "'")
    assert reply.found_object(f"{before}\n```json\n{json.dumps(value)}\n```\n") == value


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8))
@settings(max_examples=200, deadline=None)
def test_scores_of_any_reply_lie_between_0_and_1(value: dict[str, object]) -> None:
    for preset in PRESETS:
        score, details = preset.read(value)
        assert 0 <= score <= 1
        json.dumps(details, allow_nan=False)


@given(VALUES, st.integers(5, 50))
@settings(max_examples=100, deadline=None)
def test_any_value_becomes_one_short_line(value: object, most: int) -> None:
    said = Cleaner(freeze_rules()).anything(value, most)
    assert len(said) <= most and said.isprintable()
