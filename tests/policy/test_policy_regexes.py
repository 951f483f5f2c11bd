"""Regular expressions: what is refused, and that the literal prefilter never loses a match."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from guardhook.core.text import fold, skeleton
from guardhook.policy import regexes

ACCEPTED = [
    r"(\d{3}){2}",
    r"(a+){2}",
    r"(a+)?",
    r"(abc)+",
    r"^(get|list)_x$",
    r"[a|+*]+",
    r"\(a\+\)+",
    r"(?:ab)*",
    r"(a+){0,9}",
]
REFUSED = [
    r"(a+)+",
    r"(a*)*",
    r"(a{2,})+",
    r"(x+){2,}",
    r"^(a|aa)+$",
    r"(\s*\w)*$",
    r"^(.*,)*$",
    r"(foo|bar)+",
    r"(?:a|b)*",
]
REFUSED += [r"((a|b)c)+", r"(?P<n>a+)*", r"((a+))+"]


@pytest.mark.parametrize("source", ACCEPTED)
def test_accepted(source: str) -> None:
    regexes.compile_regex(source)


@pytest.mark.parametrize("source", REFUSED)
def test_refused_for_repeating_without_a_bound(source: str) -> None:
    with pytest.raises(regexes.RegexError, match="without a bound"):
        regexes.compile_regex(source)


@pytest.mark.parametrize("source", ["", "(", "a{2,1}", "[", "(?P<1>x)", r"\p{Nope}"])
def test_refused_for_not_being_an_expression(source: str) -> None:
    with pytest.raises(regexes.RegexError):
        regexes.compile_regex(source)


@pytest.mark.parametrize(
    ("source", "literals"),
    [
        (r"\brm\b\s+-rf", {"-rf"}),
        (r"(?m)^git\s+push", {"push"}),
        (r"curl|wget", {"curl", "wget"}),
        (r"(?:foo|bar)x", {"foo", "bar"}),
        (r"FooBar", {"foobar"}),
        (r"(?x) foo  bar # note", {"foobar"}),
        (r"a{3}bcd?", {"bc"}),
        (r"(?:secret)?token", {"token"}),
    ],
)
def test_literals_are_found(source: str, literals: set[str]) -> None:
    assert set(regexes.required_literals(source) or ()) == literals


@pytest.mark.parametrize(
    "source",
    [
        r"a|b", r"\w+", r"(?:foo){e<=1}", r"(?e)(?:foobar){i<=2}x?", r"(?r)abcdef", r"(?!abc)", r"(?:abc)?", r"abc|", r"[^a]",
        "привет", r"(?(?=a)bcd|efg)", r"(?:abc)*",
    ],
)  # fmt: skip
def test_no_literal_where_none_is_certain(source: str) -> None:
    assert regexes.required_literals(source) is None


def test_a_negated_character_is_no_literal() -> None:
    assert regexes.required_literals(r"[^a]bcd") == ("bcd",)
    assert regexes.required_literals(r"ab[^c]de") in (("ab",), ("de",))


# Letters with unusual case pairs, marks and ligatures are where a prefilter could go wrong.
LETTERS = "aksiKSİıſKßﬁéx-/ "
atoms = st.one_of(
    st.text("aksix-/", min_size=1, max_size=4).map(re.escape),
    st.sampled_from([".", r"\s", r"\w", "[ak]", "[^a]", "k", "ss", "fi", "i", "é", r"\b", "(?=a)", "(?!k)", "^", "$"]),
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: "(?:" + "|".join(p) + ")"),
        st.tuples(inner, st.sampled_from(["?", "*", "{2}", "{1,3}", "{0,2}", "+?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
        inner.map(lambda p: f"({p})"),
        inner.map(lambda p: f"(?>{p})"),
        inner.map(lambda p: f"(?-i:{p})"),
    ),
    max_leaves=6,
)
texts = st.text(st.one_of(st.sampled_from(LETTERS), st.sampled_from("́̇\u200b\u00ad\x00\n")), max_size=14)


def passes(source: str, text: str) -> bool:
    literals = regexes.required_literals(source)
    return literals is None or any(literal in skeleton(fold(text)) for literal in literals)


@settings(max_examples=600, deadline=None)
@given(patterns, texts)
@example("ski", "ſKı")
@example("kiss", "KİSS")
def test_what_matches_passes_the_prefilter(source: str, text: str) -> None:
    try:
        compiled = regex.compile(source, regexes.FLAGS)
    except regex.error:
        assume(False)
    for form in (text, fold(text), skeleton(fold(text))):
        if compiled.search(form, timeout=1):
            assert passes(source, text), (source, form)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_generated_matches_pass_the_prefilter(data: st.DataObject) -> None:
    source = data.draw(patterns)
    try:
        plain = re.compile(source, re.IGNORECASE)
        compiled = regex.compile(source, regexes.FLAGS)
    except (re.error, regex.error):
        assume(False)
    text = data.draw(st.from_regex(plain))
    if compiled.search(text, timeout=1):
        assert passes(source, text), (source, text)


def test_shipped_expressions_all_have_literals(shipped: list) -> None:  # type: ignore[type-arg]
    without = [
        f.policy.name
        for f in shipped
        if f.policy.match.input_regex and regexes.required_literals(f.policy.match.input_regex) is None
    ]
    assert without == []
