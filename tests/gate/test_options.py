"""The hook's command line."""

from __future__ import annotations

import pytest

from guardhook.gate import options


def test_no_arguments_at_all_enforce() -> None:
    assert options.parse([]).enforce


@pytest.mark.parametrize("argv", [["hook"], ["hook", "PreToolUse"], ["hook", "--dialect", "codex"]])
def test_without_the_flag_it_observes(argv: list[str]) -> None:
    assert not options.parse(argv).enforce


def test_everything_is_understood() -> None:
    parsed = options.parse(
        [
            "hook",
            "PreToolUse",
            "--enforce",
            "--dialect",
            "codex",
            "--dir=/x",
            "--no-input",
            "--allow-empty",
            "--verdict-fd",
            "3",
        ]
    )
    assert (parsed.event, parsed.enforce, parsed.dialect, parsed.directory) == ("PreToolUse", True, "codex", "/x")
    assert (parsed.no_input, parsed.allow_empty, parsed.verdict_fd) == (True, True, 3)


@pytest.mark.parametrize(
    "argv",
    [
        ["--enforec"],
        ["-x"],
        ["--dialect"],
        ["--dialect", ""],
        ["--dir="],
        ["--verdict-fd", "2"],
        ["--verdict-fd", "x"],
        ["--verdict-fd", "99999"],
        ["--no-input=1"],
        ["PreToolUse", "PostToolUse"],
    ],
)
def test_typos_are_errors(argv: list[str]) -> None:
    with pytest.raises(options.OptionError):
        options.parse(["hook", *argv])


@pytest.mark.parametrize("name", ["--dialect", "--verdict-fd"])
def test_a_value_left_out_takes_no_other_option_with_it(name: str) -> None:
    """`--dialect --dir X` took `--dir` for the dialect, and recorded in the user's own folder."""
    with pytest.raises(options.OptionError) as caught:
        options.parse(["hook", "PreToolUse", name, "--dir", "/x", "--enforce"])
    kept = caught.value.options
    assert str(caught.value) == f"{name} needs a value"
    assert (kept.event, kept.directory, kept.dialect, kept.enforce) == ("PreToolUse", "/x", None, True)


def test_what_is_understood_counts_although_something_else_is_wrong() -> None:
    with pytest.raises(options.OptionError) as caught:
        options.parse(["hook", "PreToolUse", "--enforec", "--dir", "/x", "--dialect", "codex", "--verdict-fd", "3"])
    kept = caught.value.options
    assert (kept.event, kept.directory, kept.dialect, kept.verdict_fd) == ("PreToolUse", "/x", "codex", 3)
