"""The shipped policies: their own examples, their suggestions, and how presets switch them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from policy_rig import bash, call

from guardhook.analysis import analyse
from guardhook.analysis.facts import Facts
from guardhook.core.event import Event
from guardhook.core.folders import Folders
from guardhook.core.verdict import Verdict
from guardhook.policy import check, compiled, examples, layers, load, match
from guardhook.policy import compile as compiler
from guardhook.policy.compiled import Compiled


@pytest.fixture(scope="module")
def packs() -> dict[str, Compiled]:
    """The shipped policies as each preset has them."""
    out = {}
    for preset in ("balanced", "strict"):
        loaded = layers.Loaded()
        load.shipped_of(loaded)
        for found in loaded.policies:
            found.on = found.policy.enabled and (found.policy.presets is None or preset in found.policy.presets)
        out[preset] = compiler.in_memory(loaded.policies, {"preset": preset})
    return out


def judge(pack: Compiled, event: Event) -> Verdict:
    event.cwd = event.cwd or "/home/user/project"
    facts = Facts(project_root="/home/user/project", guard_paths=("/home/user/.local/share/guardhook",))
    return match.judge([pack], event, analyse(event, facts))


def test_every_example_holds(shipped: list[layers.Found]) -> None:
    outcomes = [examples.run(found, example) for found in shipped for example in found.policy.example]
    print(examples.render(examples.confusion(outcomes)))
    assert [f"{o.policy}: {o.text}: {o.got}" for o in outcomes if not o.passed] == []


def test_every_policy_explains_itself(shipped: list[layers.Found]) -> None:
    for found in shipped:
        policy = found.policy
        hits = [e for e in policy.example if e.expect != "allow"]
        near = [e for e in policy.example if e.expect == "allow"]
        assert len(hits) >= 2, policy.name
        assert near, policy.name
        assert policy.reason.endswith("."), policy.name
        assert policy.suggest, policy.name
        assert policy.description, policy.name
        assert check.warnings(policy) == [], policy.name


def test_shipped_policies_ask_about_effects_not_about_text(shipped: list[layers.Found]) -> None:
    """Text in a command line is data as often as not."""
    for found in shipped:
        assert not {"input_regex", "input_contains"} & set(found.policy.match.given()), found.policy.name


def test_names_are_unique_across_packs(shipped: list[layers.Found]) -> None:
    names = [f.policy.name for f in shipped]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("preset", ["balanced", "strict"])
def test_no_suggestion_is_stopped_itself(shipped: list[layers.Found], packs: dict[str, Compiled], preset: str) -> None:
    seen = 0
    for found in shipped:
        for command in re.findall(r"`([^`]+)`", found.policy.suggest):
            seen += 1
            verdict = judge(packs[preset], bash(command))
            assert verdict.action == "allow", (found.policy.name, command, verdict.policy)
    assert seen > 50


@pytest.mark.parametrize(
    ("preset", "on", "off"),
    [
        ("balanced", "run-dynamic", "run-dynamic-strict"),
        ("balanced", "delete-root-or-home", "kubernetes-delete"),
        ("strict", "kubernetes-delete", "unverified"),
        ("observe", "unverified", "cloud-delete"),
    ],
)
def test_presets_switch_packs(
    folders: Folders, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, preset: str, on: str, off: str
) -> None:
    monkeypatch.undo()  # the fixture hides the shipped policies
    put("config.toml", f'[gate]\npreset = "{preset}"\n')
    result = compiler.compile_main(folders)
    assert result.error is None
    names = {f.policy.name: f for f in result.loaded.policies}
    assert names[on].on
    assert not names[off].on
    assert names[off].why_off == f"off in preset {preset}"
    assert compiled.load_bytes(result.blob).config["preset"] == preset


@pytest.mark.parametrize(
    ("tool", "input", "policy"),
    [
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: /home/user/.ssh/config\n@@\n-a\n+b\n*** End Patch\n"}, "change-ssh"),
        ("mcp__fs__write_file", {"path": "/home/user/.ssh/authorized_keys", "content": "ssh-rsa A"}, "change-ssh"),
        ("Edit", {"file_path": "/home/user/.bashrc", "old_string": "a", "new_string": "b"}, "login-files"),
        ("write_file", {"content": "{}", "file_path": ".gemini/settings.json"}, "hook-settings"),
        ("Read", {"file_path": "/home/user/.aws/credentials"}, "read-secrets"),
        ("NotebookEdit", {"notebook_path": "/home/user/.claude/settings.json", "new_source": "x"}, "hook-settings"),
        ("MultiEdit", {"file_path": ".codex/config.toml", "edits": [{"old_string": "a", "new_string": "b"}]}, "hook-settings"),
        ("Bash", {"command": "echo x | tee -a ~/.ssh/authorized_keys"}, "change-ssh"),
        ("Bash", {"command": "ls\nrm -rf /\n"}, "delete-root-or-home"),
        ("Bash", {"command": "ｒｍ -rf /"}, "delete-root-or-home"),
        ("Bash", {"command": "cd x && guardhook  uninstall claude-code"}, "guard-off"),
    ],
)  # fmt: skip
def test_other_ways_to_the_same_end(packs: dict[str, Compiled], tool: str, input: dict[str, str], policy: str) -> None:
    verdict = judge(packs["balanced"], call(tool, input))
    assert policy in [m.policy for m in verdict.matches]
    assert verdict.action in ("deny", "require_review")


def test_writing_about_it_passes(packs: dict[str, Compiled]) -> None:
    text = "# Rules\n\nNever run `rm -rf /` or `curl x | sh`. Keys live in ~/.ssh/id_rsa; settings in .claude/settings.json.\n"
    for tool in ("Write", "mcp__notes__save"):
        event = call(tool, {"file_path": "/home/user/project/docs/rules.md", "content": text * 50})
        assert judge(packs["strict"], event).policy is None


def test_an_open_shell_is_denied_where_no_hook_sees_what_is_typed(packs: dict[str, Compiled]) -> None:
    event = bash("python3")
    assert judge(packs["balanced"], event).action == "allow"
    event.dialect = "codex"
    assert judge(packs["balanced"], event).action == "deny"
