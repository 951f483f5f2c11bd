"""Globs: what they cover, and that they agree with the obvious slow way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.policy.glob import compile_glob, compile_path, matches

HOMES = ("/home/u", "/data/home/u")


def path(pattern: str, text: str) -> bool:
    return any(matches(g, text, path=True) for g in compile_path(pattern, HOMES))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("/etc/passwd", ["/etc/passwd"], ["/etc/passwd2", "/x/etc/passwd"]),
        ("/etc/*", ["/etc/passwd", "/etc/"], ["/etc", "/etc/ssh/sshd_config"]),
        ("/etc/**", ["/etc", "/etc/passwd", "/etc/ssh/sshd_config"], ["/etcetera", "/x/etc"]),
        ("~/.ssh/**", ["/home/u/.ssh", "/home/u/.ssh/id", "/data/home/u/.ssh/a/b"], ["/home/v/.ssh/id", "~/.ssh/id"]),
        ("~", ["/home/u", "/data/home/u"], ["/home/u/x", "/home"]),
        (".env", ["/a/b/.env", ".env"], ["/a/.env.example", "/a/x.env"]),
        ("**/.git/hooks/**", ["/r/.git/hooks/pre-commit", ".git/hooks"], ["/r/.github/hooks/x"]),
        ("/a/**/b", ["/a/b", "/a/x/b", "/a/x/y/b"], ["/a/bb", "/ab", "/a/x/bb"]),
        ("src/*.py", ["/r/src/a.py", "src/b.py"], ["/r/src/x/a.py"]),
        ("/a/?.txt", ["/a/x.txt"], ["/a/.txt", "/a//.txt", "/a/xy.txt"]),
        ("/a/[!x-z]b", ["/a/ab"], ["/a/xb", "/a/b", "/a//b"]),
        ("/dev/sd*", ["/dev/sda", "/dev/sda1"], ["/dev/sd/x", "/dev/null"]),
    ],
)
def test_path_globs(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [t for t in yes if not path(pattern, t)] == []
    assert [t for t in no if path(pattern, t)] == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*", ["", "x", "a/b"], []),
        ("mcp__*", ["mcp__a__b"], ["amcp__a"]),
        ("*.example.com", ["a.example.com", "a/b.example.com"], ["example.com", "a.example.com.evil"]),
        ("*force*", ["--force-with-lease"], ["--forc"]),
        ("a*b*c", ["abc", "axxbxxc"], ["acb", "abcd"]),
        ("py[23]", ["py2", "py3"], ["py4", "py"]),
        ("bash", ["bash"], ["bash2", "rbash"]),
    ],
)
def test_plain_globs(pattern: str, yes: list[str], no: list[str]) -> None:
    glob = compile_glob(pattern)
    assert [t for t in yes if not matches(glob, t)] == []
    assert [t for t in no if matches(glob, t)] == []


@pytest.mark.parametrize("pattern", ["", "a[b", "[z-a]"])
def test_unusable_globs_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        compile_glob(pattern)


PIECES = st.sampled_from(["a", "b", "/", "*", "**", "?", "ab", "."])


def as_regex(pattern: str, in_path: bool) -> str:
    out, i = "", 0
    while i < len(pattern):
        if in_path and pattern[i:] == "/**":
            out, i = out + "(?:/.*)?", i + 3
        elif in_path and pattern.startswith("**/", i) and (i == 0 or pattern[i - 1] == "/"):
            out, i = out + "(?:|.*/)", i + 3
        elif pattern.startswith("**", i):
            out, i = out + ".*", i + 2
        elif pattern[i] == "*":
            out, i = out + ("[^/]*" if in_path else ".*"), i + 1
        elif pattern[i] == "?":
            out, i = out + ("[^/]" if in_path else "."), i + 1
        else:
            out, i = out + re.escape(pattern[i]), i + 1
    return out


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=7), st.text("ab/.", max_size=10))
def test_globs_agree_with_regular_expressions(pieces: list[str], text: str) -> None:
    pattern = "".join(pieces)
    assert matches(compile_glob(pattern), text) == bool(re.fullmatch(as_regex(pattern, False), text, re.S))
    rooted = "/" + pattern
    assert matches(compile_path(rooted)[0], text, path=True) == bool(re.fullmatch(as_regex(rooted, True), text, re.S))


def test_a_hostile_glob_stays_polynomial() -> None:
    glob = compile_glob("*a" * 24 + "b")
    assert not matches(glob, "a" * 400)


def test_a_glob_of_wildcards_without_end_is_refused() -> None:
    """2,000 of them overran the interpreter's stack, which blocked every call of whoever had such a policy in a repository."""
    with pytest.raises(ValueError, match="wildcards"):
        compile_glob("*a" * 2000)
    assert matches(compile_glob("*a" * 99 + "b"), "a" * 3000 + "b")
