"""Folding: both sides of a comparison lose their tricks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core import text

HIDERS = [
    "\u200b", "\u200c", "\u200d", "\ufeff", "\u00ad", "\u2060", "\ufe0f", "\u180e", "\u200e", "\u200f", "\u034f", "\u115f",
    "\u0332", "\u0301", "\u20e3", "\x00", "\x08", "\x7f", "\U000e0041", "\u202e", "\u2066", "\u3164", "\u17b4", "\U000e01ef",
]  # fmt: skip


@pytest.mark.parametrize("hider", HIDERS)
def test_invisible_characters_do_not_hide_a_word(hider: str) -> None:
    assert text.fold("del" + hider + "ete") == "delete"
    assert text.fold(hider + "RM" + hider) == "rm"


@pytest.mark.parametrize(
    "spelled",
    ["DELETE", "ｄｅｌｅｔｅ", "𝐝𝐞𝐥𝐞𝐭𝐞", "𝓭𝓮𝓵𝓮𝓽𝓮", "dé\u0332lete".replace("é", "e"), "ⓓⓔⓛⓔⓣⓔ", "Ｄ\u200bＥＬＥＴＥ"],
)
def test_compatibility_forms_fold(spelled: str) -> None:
    assert text.fold(spelled) == "delete"


@pytest.mark.parametrize(
    "spelled", ["dеlete", "deletе", "ԁelete", "dеlеtе", "delετε".replace("τ", "t"), "dᴇlete", "deⅼete"]
)
def test_look_alikes_have_the_skeleton_of_what_they_imitate(spelled: str) -> None:
    assert text.skeleton(text.fold(spelled)) == "delete"


def test_line_ends_stay_in_texts_and_go_from_names() -> None:
    assert text.fold("a\n\tB\r") == "a\n\tb\r"
    assert text.fold_name("del\nete\t") == "delete"


@pytest.mark.parametrize("dash", ["‐", "‑", "–", "—", "−", "﹣", "－"])
def test_dashes_read_as_options(dash: str) -> None:
    assert text.skeleton(text.fold(dash + "rf")) == "-rf"


def test_invisible_names_what_hides() -> None:
    assert text.invisible("a\u200bb\u202ec") == ["\u200b", "\u202e"]
    assert text.invisible("plain\n\ttext") == []
    assert text.invisible("a\x00b") == ["\x00"]


@given(st.text(max_size=60))
@settings(max_examples=400, deadline=None)
def test_folding_is_idempotent_and_total(value: str) -> None:
    once = text.fold(value)
    assert text.fold(once) == once
    assert text.skeleton(text.skeleton(once)) == text.skeleton(once)
    assert not text.invisible(once)


@given(
    st.text(alphabet="abcxyz -/.", max_size=20),
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from(HIDERS)), max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_sprinkled_invisibles_never_change_the_folded_form(word: str, where: list[tuple[int, str]]) -> None:
    spelled = word
    for position, hider in where:
        spelled = spelled[:position] + hider + spelled[position:]
    assert text.fold(spelled) == text.fold(word)


@pytest.mark.parametrize(
    "run",
    ["\u0301\u0316", "\u0f73", "\u0f81\u0f75", "\u0345\u0301", "\uff9e\u0301"],
)
def test_a_long_run_of_marks_is_no_longer_than_a_short_one(run: str) -> None:
    """Normalising sorts a run of marks by insertion: these 200,000 characters took minutes, and no signal gets through to that."""
    assert text.fold("DEL" + run * 100_000 + "ete") == "delete"


def test_many_different_marks_do_not_multiply_the_work() -> None:
    from unicodedata import combining

    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if not c.isascii() and combining(c))
    assert text.fold("de" + marks * 100 + "lete") == "delete"


def test_a_ligature_of_many_letters_stays_short() -> None:
    assert len(text.fold("\ufdfa" * 1000)) == 1000


_ODD = st.sampled_from(
    "AZ aé\n\0İıßſ\u212aｄ𝐝ⓓﬃ㈱がガハ\u3099\u309a가각\u1100\u1161\u11a8ㄱﾡ\u09c7\u09be\u0b47\u0b57\u102e\u1025\u0f73\uff9e\ufdfa\u0344\u0301\u200b\u202e"
    "\ud800ꭰᎠΣς。；“—\U0001f600\U000e0041漢字"
)


@given(st.lists(_ODD | st.characters(), max_size=30).map("".join), st.lists(_ODD, max_size=6).map("".join))
@settings(max_examples=600, deadline=None)
def test_a_long_text_folds_like_a_short_one(value: str, end: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "LONG", 1 << 40)
        folded = text.fold(value + end)
        seen, hidden = text.skeleton(folded), text.invisible(value + end)
        patch.setattr(text, "LONG", 2)
        assert text.fold(value + end) == folded
        assert text.skeleton(folded) == seen
        assert text.skeleton(text.fold(value + end)) == seen
        assert text.invisible(value + end) == hidden


@given(st.text(max_size=20), st.text(max_size=20))
@settings(deadline=None)
def test_nothing_folds_across_a_line_end(one: str, other: str) -> None:
    assert text.fold(f"{one}\n{other}") == f"{text.fold(one)}\n{text.fold(other)}"


@pytest.mark.parametrize("pad", ["plain words\n", "naïve façade ", "漢字とかなの文章。", "한국어 문장 ", "emoji 😀\n"])
@pytest.mark.parametrize("trick", ["ＤＥＬＥＴＥ", "dе\u200blete", "𝐝𝐞𝐥𝐞𝐭𝐞", "de\u0332lete", "DELETE"])
def test_tricks_in_long_texts_are_seen(pad: str, trick: str) -> None:
    around = pad * (2 * text.LONG // len(pad))
    assert "delete" in text.skeleton(text.fold(around + trick + around))
    assert "delete" not in text.skeleton(text.fold(around))
