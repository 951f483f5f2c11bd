"""Host names that are not what they seem."""

from __future__ import annotations

import analysing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.analysis.hosts import label, reads_as
from guardhook.analysis.programs.network import host_flags, host_of


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


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/", "HTTP://2852039166/", "http://0xA9FEA9FE/", "http://0251.0376.0251.0376/", "http://169.254.43518/",
        "http://0xa9.254.0251.0xfe/x", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]:80/", "http:/169.254.169.254/",
        "http:\\\\169.254.169.254\\latest", "http:////169.254.169.254/", " http://169.254.169.254/", "//169.254.169.254/x", "169.254.169.254/x",
    ],
)  # fmt: skip
def test_every_spelling_of_an_address_is_that_address(url: str) -> None:
    """As programs read them: any slashes after `http:`, and numbers as inet_aton takes them."""
    assert "metadata" in host_flags(host_of(url), url)


@pytest.mark.parametrize(
    ("url", "host", "flags"),
    [
        ("http://127.1/", "127.1", {"ip", "local"}), ("http://0177.1/", "0177.1", {"ip", "local"}), ("http://10.1/", "10.1", {"ip", "private"}),
        ("http://3com.com/", "3com.com", set()), ("http://1.2.3.4.5/", "1.2.3.4.5", set()), ("http://08.1/", "08.1", set()),
        ("git@github.com:a/b", "github.com", set()), ("example.com:443", "example.com", set()), ("localhost:3000/x", "localhost", {"local"}),
        ("s3://bucket/http://x", "bucket", set()), ("https://example.com/a:b//c", "example.com", set()), ("http://999999999999/", "999999999999", {"ip"}),
    ],
)  # fmt: skip
def test_other_hosts_stay_what_they_are(url: str, host: str, flags: set[str]) -> None:
    assert host_of(url) == host and host_flags(host, url) == flags
