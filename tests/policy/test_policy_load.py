"""Policy files: every mistake is told with file, line and field; layers, presets, overrides, exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from policy_rig import bash

from guardhook.core.folders import Folders
from guardhook.policy import compile as compiler
from guardhook.policy import compiled, load, match

Put = Callable[[str, str], Path]


def error_of(folders: Folders) -> str:
    """The first error, with the path cut to its name."""
    loaded = load.load(folders, time.time())
    assert loaded.errors, "no error was found"
    return str(loaded.errors[0]).replace(folders.config + "/", "").replace(folders.system + "/", "system/")


HEAD = '[[policy]]\nname = "a"\naction = "deny"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[policy]\nname = "a"\n', "policies/x.toml:1: not valid TOML"),
        (HEAD + ".".join("a" * 300) + " = 1\n", "policies/x.toml:4: not valid TOML: a dotted key of more than 100 parts"),
        (HEAD + "priority = " + "1" * 5000, "policies/x.toml:4: not valid TOML: Exceeds the limit (4300 digits)"),
        (HEAD + 'match = { input_contains = "x"\n\n', "policies/x.toml:4: not valid TOML"),
        (HEAD + 'match = { input_contain = "x" }\n', "policies/x.toml:4: policy[0].match.input_contain: unknown key; the keys here are step_type,"),
        (HEAD + '[policy.match]\ntool = "shell"\ninput_contain = "x"\n', "policies/x.toml:6: policy[0].match.input_contain: unknown key"),
        (HEAD + 'prio = 1\nmatch = { tool = "shell" }\n', "policies/x.toml:4: policy[0].prio: unknown key; the keys here are name,"),
        ('[[polcy]]\nname = "a"\n', "policies/x.toml:1: polcy: unknown key; the keys here are policy"),
        ('[[policy]]\naction = "deny"\nmatch = { tool = "shell" }\n', "policies/x.toml:1: policy[0]: `name` is missing"),
        ('[[policy]]\nname = "a"\naction = "block"\nmatch = { tool = "x" }\n', "policies/x.toml:3: policy[0].action: Invalid enum value 'block'"),
        (HEAD + 'priority = "high"\nmatch = { tool = "x" }\n', "policies/x.toml:4: policy[0].priority: Expected `int`"),
        (HEAD + "match = { input_contains = 5 }\n", "policies/x.toml:4: policy[0].match.input_contains: Expected `str | null`, got `int`"),
        (HEAD + 'match = { input_contains = "" }\n', "policies/x.toml:4: policy[0].match.input_contains (a): an empty text is in everything"),
        (HEAD + 'match = { input_contains = "\u200b\u2060" }\n', "policies/x.toml:4: policy[0].match.input_contains (a): nothing is left of it"),
        (HEAD + 'match = { name_regex = "(" }\n', "policies/x.toml:4: policy[0].match.name_regex (a): not a valid regular expression: missing )"),
        (HEAD + 'match = { input_regex = "(a|b)+" }\n', "policies/x.toml:4: policy[0].match.input_regex (a): a group that holds"),
        (HEAD + 'match = { step_type = "toolcall" }\n', "policies/x.toml:4: policy[0].match.step_type (a): 'toolcall' is not a step type"),
        (HEAD + 'match = { event = "pre-tool" }\n', "policies/x.toml:4: policy[0].match.event (a): 'pre-tool' is not known"),
        (HEAD + 'match = { effect = "remove" }\n', "policies/x.toml:4: policy[0].match.effect (a): 'remove' is not known"),
        (HEAD + 'match = { effect = "delete:recursiv" }\n', "policies/x.toml:4: policy[0].match.effect (a): an effect 'delete' has no flag 'recursiv'"),
        (HEAD + 'match = { path_class = "hom" }\n', "policies/x.toml:4: policy[0].match.path_class (a): 'hom' is not known"),
        (HEAD + 'match = { harness = "claude" }\n', "policies/x.toml:4: policy[0].match.harness (a): 'claude' is not known"),
        (HEAD + "match = { tool = [] }\n", "policies/x.toml:4: policy[0].match.tool (a): expected text"),
        (HEAD + 'match = { program = "a[" }\n', "policies/x.toml:4: policy[0].match.program (a): a `[` in a glob"),
        (HEAD + 'match = { event = "user_prompt", tool = "shell" }\n', "policies/x.toml:4: policy[0].match.tool (a): the events in `event` call no tool"),
        (HEAD + 'match = { event = "user_prompt", step_type = "tool_call" }\n', "policies/x.toml:4: policy[0].match.step_type (a): no event in `event` is a step"),
        (HEAD + 'match = { step_type = "thought", effect = "delete" }\n', "policies/x.toml:4: policy[0].match.effect (a): step_type thought call no tool"),
        (HEAD + 'match = { event = "notification", input_contains = "x" }\n', "policies/x.toml:4: policy[0].match.event (a): notification is never judged"),
        (HEAD + 'match = { effect = "connect", path = "/x" }\n', "policies/x.toml:4: policy[0].match.path (a): an effect connect has no path"),
        (HEAD + 'match = { tool = "shell" }\nunless = { tool = "shell" }\n', "policies/x.toml:5: policy[0].unless (a): it holds whenever `match` does"),
        (HEAD + 'match = { tool = "shell" }\nunless = { path = "/x" }\n', "policies/x.toml:5: policy[0].unless (a): it asks about effects"),
        (HEAD + 'match = { tool = "shell" }\nunless = { }\n', "policies/x.toml:5: policy[0].unless (a): it is empty"),
        (HEAD + 'match = { tool = "x" }\n' + HEAD + 'match = { tool = "y" }\n', "policies/x.toml:5: name: 'a' is already defined in"),
        ('[[policy]]\nname = ""\naction = "deny"\nmatch = { tool = "x" }\n', "policies/x.toml:2: policy[0].name (): it is empty"),
        ('[[policy]]\nname = "a\\u0007"\naction = "deny"\nmatch = { tool = "x" }\n', "policies/x.toml:2: policy[0].name"),
        (HEAD + 'match = { tool = "x" }\n[[policy.example]]\ncommand = "ls"\n', "policies/x.toml:5: policy[0].example[0]: `expect` is missing"),
        (
            HEAD + 'match = { tool = "x" }\n[[policy.example]]\ncommand = "ls"\nexpect = "deny"\n[[policy.example]]\ncomand = "ls"\nexpect = "deny"\n',
            "policies/x.toml:9: policy[0].example[1].comand: unknown key; the keys here are expect,",
        ),
        (HEAD + 'match = { tool = "x" }\n\n[[policy]]\nname = "b"\naction = "deny"\n\n[policy.match]\nname_regx = "x"\n', "policies/x.toml:11: policy[1].match.name_regx"),
        (HEAD + "match = { tool = 'x' }\nreason = '''\n[[policy]]\nname = 1\n'''\n[[policy]]\nname = 2\n", "policies/x.toml:10: policy[1].name: Expected `str`"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_file_line_and_field(folders: Folders, put: Put, text: str, expected: str) -> None:
    put("policies/x.toml", text)
    assert error_of(folders).replace("Expected text", "Expected `str`").startswith(expected)


def test_a_file_that_is_not_utf8_is_told(folders: Folders, put: Put) -> None:
    put("policies/x.toml", "").write_bytes(b'[[policy]]\nname = "\xff"\n')
    assert error_of(folders) == "policies/x.toml:2: not valid UTF-8; save the file as UTF-8"


def test_an_unreadable_thing_is_told(folders: Folders, put: Put) -> None:
    (Path(folders.config) / "policies" / "dir.toml").mkdir()
    assert error_of(folders) == "policies/dir.toml: not a plain file; policies are plain files"


def test_a_fifo_does_not_hang_the_loader(folders: Folders) -> None:
    os.mkfifo(f"{folders.config}/policies/f.toml")
    assert "not a plain file" in error_of(folders)


def test_an_empty_pattern_is_inert_and_reported(folders: Folders, put: Put) -> None:
    put("policies/x.toml", HEAD + "match = {}\n")
    loaded = load.load(folders, time.time())
    assert loaded.errors == []
    assert "has an empty match and does nothing" in loaded.problems[0]
    made = compiled.load_bytes(compiler.compile_main(folders).blob)
    assert match.judge([made], bash("ls"), []).action == "allow"


def test_all_files_of_a_layer_count_and_others_do_not(folders: Folders, put: Put) -> None:
    put("policies/b.toml", HEAD.replace('"a"', '"b"') + 'match = { tool = "x" }\n')
    put("policies/a.toml", HEAD + 'match = { tool = "x" }\n')
    put("policies/.hidden.toml", "broken [")
    put("policies/notes.md", "broken [")
    loaded = load.load(folders, time.time())
    assert [f.policy.name for f in loaded.ordered()] == ["a", "b"]


@pytest.mark.parametrize("name", ["mine.tml", "mine.toml.bak", "mine.TOML", "mine"])
def test_a_rule_in_a_file_of_another_name_is_told(folders: Folders, put: Put, name: str) -> None:
    put(f"policies/{name}", HEAD + 'match = { tool = "x" }\n')
    put("policies/notes.md", "x")
    put("policies/.swap.tml", "x")
    loaded = load.load(folders, time.time())
    assert not loaded.errors
    (problem,) = loaded.problems
    assert name in problem and ".toml" in problem


def test_the_same_name_in_two_layers_is_two_policies(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text(HEAD + 'match = { tool = "x" }\n')
    put("policies/a.toml", HEAD + 'match = { tool = "x" }\n')
    assert [f.layer for f in load.load(folders, time.time()).ordered()] == ["system", "user"]


def test_a_broken_system_file_is_an_error_too(folders: Folders) -> None:
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text("[")
    assert error_of(folders).startswith("system/policies/s.toml:1: not valid TOML")


def shipped_layer(text: str) -> None:
    Path(compiled.shipped_folder(), "s.toml").write_text(text)


SHIPPED = """
[[policy]]
name = "always"
action = "deny"
match = { tool = "shell" }
[[policy]]
name = "strict-only"
action = "deny"
presets = ["strict"]
match = { tool = "shell" }
"""


def names_on(folders: Folders) -> list[str]:
    return [f.policy.name for f in load.load(folders, time.time()).ordered() if f.on]


@pytest.mark.parametrize(
    ("preset", "on"),
    [("balanced", ["always"]), ("strict", ["always", "strict-only"]), ("observe", ["always"])],
)
def test_presets_choose_shipped_policies(folders: Folders, put: Put, preset: str, on: list[str]) -> None:
    shipped_layer(SHIPPED)
    put("config.toml", f'[gate]\npreset = "{preset}"\n')
    assert names_on(folders) == on


def test_overrides_switch_shipped_policies_both_ways(folders: Folders, put: Put) -> None:
    shipped_layer(SHIPPED)
    put(
        "overrides.toml",
        '[[override]]\npolicy = "always"\nenabled = false\n[[override]]\npolicy = "strict-only"\nenabled = true\n',
    )
    assert names_on(folders) == ["strict-only"]


def test_overrides_do_not_reach_system_policies(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text(HEAD + 'match = { tool = "x" }\n')
    put("overrides.toml", '[[override]]\npolicy = "a"\nenabled = false\n')
    assert names_on(folders) == ["a"]
    assert "there is no shipped policy 'a'" in load.load(folders, time.time()).problems[0]


EXCEPTION = (
    '[[exception]]\npolicy = "{policy}"\nmatch = {{ input_contains = "build" }}\nreason = "ours"\nexpires = {expires}\n'
)


def verdict(folders: Folders, command: str, now: float) -> str:
    result = compiler.compile_main(folders, now=now)
    assert result.error is None
    return match.judge([compiled.load_bytes(result.blob)], bash(command), [], now).action


def test_an_exception_narrows_until_the_end_of_its_day(folders: Folders, put: Put) -> None:
    put("policies/a.toml", HEAD + 'match = { input_contains = "rm" }\n')
    put("exceptions.toml", EXCEPTION.format(policy="a", expires="2030-06-15"))
    noon = time.mktime((2030, 6, 15, 12, 0, 0, 0, 0, -1))
    assert verdict(folders, "rm build", noon) == "allow"
    assert verdict(folders, "rm src", noon) == "deny"
    assert verdict(folders, "rm build", noon + 86400) == "deny"
    loaded = load.load(folders, noon + 86400)
    assert [e.policy for e in loaded.expired] == ["a"]
    assert "expired on" in loaded.problems[0]


def test_an_exception_that_expires_between_compiling_and_judging_is_over(folders: Folders, put: Put) -> None:
    put("policies/a.toml", HEAD + 'match = { input_contains = "rm" }\n')
    put("exceptions.toml", EXCEPTION.format(policy="a", expires="2030-06-15"))
    noon = time.mktime((2030, 6, 15, 12, 0, 0, 0, 0, -1))
    made = compiled.load_bytes(compiler.compile_main(folders, now=noon).blob)
    assert match.judge([made], bash("rm build"), [], noon).action == "allow"
    assert match.judge([made], bash("rm build"), [], noon + 86400).action == "deny"


def test_system_policies_can_not_be_excepted(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text(HEAD + 'match = { input_contains = "rm" }\n')
    put("exceptions.toml", EXCEPTION.format(policy="a", expires="2099-01-01"))
    assert verdict(folders, "rm build", time.time()) == "deny"
    assert "is a system policy, which a user can't except" in load.load(folders, time.time()).problems[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EXCEPTION.format(policy="a", expires='"soon"'), "exceptions.toml:5: exception[0].expires: 'soon' is not a date"),
        ('[[exception]]\npolicy = "a"\nmatch = {}\nreason = "x"\nexpires = 2030-01-01\n', "exceptions.toml:3: exception[0].match: it is empty"),
        ('[[exception]]\npolicy = "a"\nmatch = { tool = "x" }\nexpires = 2030-01-01\n', "exceptions.toml:1: exception[0]: `reason` is missing"),
        ('[[exception]]\npolicy = "a"\nmatch = { tool = "x" }\nreason = "x"\n', "exceptions.toml:1: exception[0]: `expires` is missing"),
    ],
)  # fmt: skip
def test_mistakes_in_exceptions(folders: Folders, put: Put, text: str, expected: str) -> None:
    put("policies/a.toml", HEAD + 'match = { input_contains = "rm" }\n')
    put("exceptions.toml", text)
    assert error_of(folders).startswith(expected)


def test_an_exception_from_no_policy_is_reported(folders: Folders, put: Put) -> None:
    put("exceptions.toml", EXCEPTION.format(policy="gone", expires="2099-01-01"))
    assert "there is no policy 'gone'" in load.load(folders, time.time()).problems[0]


# -- config.toml -------------------------------------------------------------------------------------------------------------


def test_config_defaults(folders: Folders) -> None:
    assert load.load(folders, 0).config == {
        "preset": "balanced",
        "watchdog": 3.0,
        "oversize": 8 * 1024 * 1024,
        "mode": "redacted",
        "redaction": {},
    }


def test_the_user_changes_what_the_system_does_not_lock(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system)
    Path(folders.system, "config.toml").write_text(
        '[gate]\nlocked = true\npreset = "strict"\n[capture]\nmode = "hashed"\n[capture.redaction]\nstop = "full"\n'
    )
    put(
        "config.toml",
        '[gate]\npreset = "observe"\nwatchdog = 2\n[capture]\nmode = "full"\n[capture.redaction]\npre_tool = "none"\n',
    )
    config = load.load(folders, 0).config
    assert config["preset"] == "strict"
    assert config["watchdog"] == 2.0
    assert config["mode"] == "full"
    assert config["redaction"] == {"stop": "full", "pre_tool": "none"}


def test_a_lock_at_the_top_locks_all_that_is_set(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system)
    Path(folders.system, "config.toml").write_text('locked = true\n[capture]\nmode = "redacted"\n')
    put("config.toml", '[capture]\nmode = "full"\n[capture.redaction]\npre_tool = "none"\n')
    config = load.load(folders, 0).config
    assert (config["mode"], config["redaction"]) == ("redacted", {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[gate]\npreset = "lax"\n', "config.toml:2: gate.preset: Invalid enum value 'lax'"),
        ("[gate]\nwatchdog = 9\n", "config.toml:2: gate.watchdog: must be at least 0.5 and below 4.0 seconds"),
        ("[gate]\noversize = 1\n", "config.toml:2: gate.oversize: must lie between"),
        ("[gate]\n\nprest = 1\n", "config.toml:3: gate.prest: unknown key"),
        ('[capture.redaction]\nPreToolUse = "none"\n', "config.toml:2: capture.redaction.PreToolUse: no such event"),
        ("[gate\n", "config.toml:1: not valid TOML"),
    ],
)
def test_mistakes_in_config(folders: Folders, put: Put, text: str, expected: str) -> None:
    put("config.toml", text)
    assert error_of(folders).startswith(expected)


def test_sections_of_other_commands_are_left_alone(folders: Folders, put: Put) -> None:
    put("config.toml", '[archive]\nanything = 1\n[capture]\nretention = "90d"\n')
    assert load.load(folders, 0).errors == []


def test_a_user_can_not_switch_system_policies_to_observing(folders: Folders, put: Put) -> None:
    """`preset = "observe"` in the user's file took every system policy off, which no override or exception may do."""
    put("config.toml", '[gate]\npreset = "observe"\n')
    assert "system_enforced" not in load.load(folders, 0).config
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text(HEAD + 'match = { tool = "x" }\n')
    loaded = load.load(folders, 0)
    assert loaded.config["system_enforced"] is True
    assert any("stay enforced" in p for p in loaded.problems)
    Path(folders.system, "config.toml").write_text('[gate]\npreset = "observe"\n')
    assert "system_enforced" not in load.load(folders, 0).config


def test_a_user_can_not_switch_system_policies_off_by_another_preset(folders: Folders, put: Put) -> None:
    os.makedirs(folders.system_policies)
    Path(folders.system_policies, "s.toml").write_text(HEAD + 'presets = ["strict"]\nmatch = { tool = "x" }\n')
    assert names_on(folders) == []
    Path(folders.system, "config.toml").write_text('[gate]\npreset = "strict"\n')
    put("config.toml", '[gate]\npreset = "balanced"\n')
    assert names_on(folders) == ["a"]
