"""The parser against bash and tree-sitter-bash, on the corpus and on generated commands."""

from __future__ import annotations

import shutil
import subprocess

import analysing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.analysis.nodes import Unparsable
from guardhook.analysis.parser import parse
from guardhook.analysis.tree import simple_commands
from guardhook.core import limits

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="no bash")


def bash_accepts(commands: list[str]) -> list[bool]:
    """Whether `bash -n` accepts each command; one process for all of them."""
    script = 'while IFS= read -r -d "" c; do if bash -n -O extglob -c "$c" >/dev/null 2>&1 </dev/null; then echo y; else echo n; fi; done'
    data = b"".join(c.encode() + b"\0" for c in commands)
    out = subprocess.run([BASH or "bash", "-c", script], input=data, capture_output=True, check=True).stdout
    return [line == b"y" for line in out.split()]


def accepts(command: str) -> bool:
    try:
        parse(command)
    except Unparsable:
        return False
    return True


@needs_bash
def test_agrees_with_bash_on_the_corpus() -> None:
    commands = [c for c in analysing.commands() if c.isascii()]
    differing = [(c, b) for c, b in zip(commands, bash_accepts(commands), strict=True) if accepts(c) != b]
    assert not differing


WORDS = st.sampled_from([
    "ls", "a", "-l", "'q r'", '"d $x"', "$x", "${x:-y}", "$(ls)", "`pwd`", "a\\ b", "*.c", "{a,b}", "x=1", "$((1+2))", "<(ls)", "\\", "#", "a#b", "!", "{", "}", "if", "fi", "do", "done", "in", "for",
    "then", "case", "esac", "((", "))", "(", ")", "$'\\n'", '$"x"', "a=(1 2)", "~", "''", '""', "time", "function", "2", "&&", "||", "|", ";", "&", "\n", "|&", ";;", ">", ">>", "<", "2>&1", "<<<", "&>", ">|", "x()", "$@", "${#x}", "${x//a/b}", "[", "]", "while", "true",
])  # fmt: skip


@needs_bash
@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=7).map(" ".join), min_size=20, max_size=20))
def test_everything_that_bash_accepts_parses(commands: list[str]) -> None:
    found = zip(commands, bash_accepts(commands), strict=True)
    # An arithmetic `for` without its end is passed over by bash in silence: nothing of such a text runs, nor is it wrong to refuse it.
    refused = [
        c for c, b in found if b and not accepts(c) and not ("for ((" in c and "))" not in c.partition("for ((")[2])
    ]
    assert not refused


SIMPLE = st.lists(st.sampled_from(["a", "'b c'", '"$x y"', "$x", "-f", "$(d e)", "`f`", "<(g)", "2>&1", ">h", "i=1", "j\\ k"]), min_size=1, max_size=4).map(lambda w: "cmd " + " ".join(w))  # fmt: skip
COMMANDS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || ", " | ", "; ", " & ", "\n", " |& "]), inner).map("".join),
        inner.map(lambda c: f"({c})"), inner.map(lambda c: f"{{ {c}; }}"), inner.map(lambda c: f"if {c}; then {c}; fi"),
        inner.map(lambda c: f"while {c}; do {c}; done"), inner.map(lambda c: f"for v in a b; do {c}; done"), inner.map(lambda c: f"case $x in a|b) {c};; *) {c} ;; esac"),
        inner.map(lambda c: f"f() {{ {c}; }}"), inner.map(lambda c: f"echo $({c})"), inner.map(lambda c: f'echo "$({c})"'), inner.map(lambda c: f"! {c}"), inner.map(lambda c: f"{c} # it's a\n:"), inner.map(lambda c: f"[[ -n $({c}) ]]"),
        inner.map(lambda c: f"cat <<E\n$({c})\nE"), inner.map(lambda c: f"cat <<'E'\n{c}\nE"),
    ),
    max_leaves=6,
)  # fmt: skip


@needs_bash
@settings(max_examples=20, deadline=None)
@given(st.lists(COMMANDS, min_size=10, max_size=10))
def test_generated_commands_agree_with_bash(commands: list[str]) -> None:
    # A here-document in one with the same delimiter ends it early; bash doesn't read bodies with -n, we do.
    commands = [c for c in commands if c.count("<<") < 2]
    differing = [(c, b) for c, b in zip(commands, bash_accepts(commands), strict=True) if b and not accepts(c)]
    assert not differing


def _names(command: str) -> list[str]:
    """First words of all simple commands, as written, sorted."""
    return sorted(command[c.words[0].start : c.words[0].end] for c in simple_commands(parse(command)) if c.words)


def test_simple_commands_agree_with_tree_sitter() -> None:
    tree_sitter = pytest.importorskip("tree_sitter")
    grammar = pytest.importorskip("tree_sitter_bash")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    compared = 0
    differing = []
    for command in analysing.commands():
        # Backticks and declarations are shaped differently in that grammar; here-documents it can't always read.
        if (
            not command.isascii()
            or not accepts(command)
            or any(
                w in command
                for w in (
                    "`",
                    "<<",
                    "declare",
                    "export",
                    "unset",
                    "local",
                    "coproc",
                    "readonly",
                    "printf -v",
                    "[[",
                    "((",
                    "[ ",
                )
            )
        ):
            continue
        root = parser.parse(command.encode()).root_node
        if root.has_error:
            continue
        names = []
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "command_name":
                names.append(node.text.decode())
            stack.extend(node.children)
        compared += 1
        mine = _names(command)
        if sorted(names) != mine and not any(word in command for word in ("time ", "!", "select", "function ")):
            differing.append((command, sorted(names), mine))
    assert compared > 900
    assert len(differing) <= compared * 0.01, differing[:10]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("r\\m -rf /", ["rm", "-rf", "/"]),
        ("'a b'\"c d\"e", ["a bc de"]),
        ("$'\\x41\\102\\u0043\\n'", ["ABC\n"]),
        ("a\\\nb", ["ab"]),
        ("a # b", ["a"]),
        ("a#b", ["a#b"]),
        ("[ a ]", ["[", "a", "]"]),
        ('""', [""]),
    ],
)
def test_words_as_a_program_gets_them(command: str, words: list[str]) -> None:
    [only] = simple_commands(parse(command))
    assert [w.literal for w in only.words] == words


def test_here_documents_go_to_their_redirections() -> None:
    commands = simple_commands(parse("a <<X <<-'Y'\none\nX\n\ttwo $z\n\tY\nb\n"))
    assert [[r.target.literal for r in c.redirects] for c in commands] == [["one\n", "two $z\n"], []]


@pytest.mark.parametrize(
    "text",
    [
        "$(" * 100,
        "(" * 100,
        "{ " * 100,
        "`" * 20_000,
        "if a; then " * 100,
        "x;" * 6000,
        "a " * 25_000,
        "${x:-" * 100,
        "$x" * 30_000,
        "((" * 5000,
    ],
)
def test_caps_are_errors_of_their_own(text: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse(text)
    assert caught.value.cap


def test_what_lies_below_the_caps_is_read() -> None:
    parse("(" * 60 + "ls" + ")" * 60)
    parse("echo " + "a" * 200_000)
    parse("ls;" * (limits.COMMAND_SIMPLE - 1) + "ls")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("echo a `rm -rf x` b", "rm"),
        ("cat <<E\none $(rm x) two\nE\n", "rm"),
        ("cat <<E\none `rm x` two\nE\n", "rm"),
        ('echo "$(a `rm x`)"', "rm"),
        ("echo `a \\`rm x\\``", "`a \\`rm x\\``"),
    ],
)
def test_words_know_their_place_in_the_source(text: str, source: str) -> None:
    [word] = [c.words[0] for c in simple_commands(parse(text)) if c.words and c.words[0].literal == "rm"]
    assert text[word.start : word.end] == source
