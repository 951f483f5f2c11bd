"""guardhook for the whole machine (`--scope system`): what users, projects and flags can switch off elsewhere stays on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from realclients import machine
from realclients.driver import Home, run
from realclients.install import Pin
from realclients.product import INSTALLABLE, POLICIES, Product, gate_lines

pytestmark = pytest.mark.skipif(
    not machine.possible(), reason="REAL CLIENT NOT TESTED: system scope: needs root and namespaces"
)
installable = pytest.mark.dialects(*INSTALLABLE)


@pytest.fixture
def managed(row: Pin, homes: Callable[[Pin, str], Home], product: Product) -> Home:
    home = homes(row, "system")
    if not home.binds:
        etc = machine.own_machine(home)
        policies = etc / "guardhook/policies/test.toml"
        policies.parent.mkdir(parents=True)
        policies.write_text(POLICIES)
        product.run(home, "install", row.dialect, "--scope", "system")
    return home


@installable
@pytest.mark.parametrize("word, runs", [("GH-PLAIN", True), ("GH-DENY", False), ("GH-ASK", False)])
def test_verdicts(managed: Home, product: Product, word: str, runs: bool) -> None:
    result = run(managed, word=word)
    assert result.ran is runs and result.rc == 0, result.story()
    assert (f"{word} files" in result.told) is not runs, result.story()
    assert gate_lines(product.journal(managed), result.work.name)


OFF: dict[str, dict[str, object]] = {
    "claude-code": {".claude/settings.json": {"disableAllHooks": True, "env": {"CLAUDE_CODE_SIMPLE": "1"}}},
    # Its bare mode, which that variable switches on, runs no hooks at all, the administrator's neither.
    "claude-code-old": {".claude/settings.json": {"disableAllHooks": True}},
    "codex": {".codex/config.toml": "[features]\nhooks = false\n"},
    "gemini": {".gemini/settings.json": {"hooksConfig": {"enabled": False}, "hooks": None}},
}
FLAGS = {"claude-code": ["--setting-sources", "project"], "codex": ["--disable", "hooks"], "gemini": []}


@installable
def test_a_project_and_flags_cant_switch_it_off(managed: Home, row: Pin) -> None:
    dialect = managed.driver.dialect
    work = managed.work()
    for name, value in OFF[row.row.partition("@")[0]].items():
        path = work / name
        path.parent.mkdir()
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    if dialect == "codex":
        settings = managed.path / managed.driver.settings
        text = settings.read_text()
        settings.write_text(f'{text}\n[projects."{work}"]\ntrust_level = "trusted"\n')
    result = run(managed, word="GH-DENY", work=work, arguments=FLAGS[dialect])
    assert not result.ran and "GH-DENY files" in result.told, result.story()


@pytest.mark.dialects("claude-code")
@pytest.mark.parametrize("flag", ["--safe-mode", "--bare"])
def test_claude_code_without_user_hooks_still_has_ours(managed: Home, row: Pin, flag: str) -> None:
    if row.row == "claude-code-old" and flag == "--bare":
        pytest.skip("2.1.197 runs no hooks at all in this mode, the administrator's neither")
    result = run(managed, word="GH-DENY", arguments=[flag])
    assert not result.ran and "GH-DENY files" in result.told, result.story()
