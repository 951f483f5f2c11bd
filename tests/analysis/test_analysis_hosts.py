"""Host names that are not what they seem."""

from __future__ import annotations

import analysing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.analysis.hosts import label, reads_as


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abcz-09üñжяі漢字ａ𝒂", min_size=1, max_size=12))
def test_labels_are_read_as_they_were_written(text: str) -> None:
    coded = text.encode("punycode").decode()
    if not text.isascii() and len(coded) < 60:
        assert label("xn--" + coded) == text


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abcz-0989XYZ_é", max_size=70))
def test_no_label_breaks_it(text: str) -> None:
    assert label("xn--" + text)


@pytest.mark.parametrize("host", ["gіthub.com", "xn--" + "gіthub".encode("punycode").decode() + ".com"])
def test_a_host_that_reads_as_another(host: str) -> None:
    assert reads_as(host) == "github.com"
    assert analysing.having(analysing.shell(f"curl https://{host}/x"), "lookalike:host")


@pytest.mark.parametrize("host", ["github.com", "пример.example", "xn--e1afmkfd.example", "xn--", "xn--zz--.com"])
def test_a_host_that_is_what_it_seems(host: str) -> None:
    assert reads_as(host) == ""
