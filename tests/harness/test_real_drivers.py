"""The drivers themselves, with small stand-in hooks: a test with a real client is only worth something if it can see both outcomes."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from realclients import process, terminal
from realclients.driver import KINDS, RAN, Home, run

DENY = "cat > /dev/null\necho 'stand-in says no' >&2\nexit 2\n"
RECORD = 'cat > "$(dirname "$0")/seen"\nexit 0\n'
KILLED = "cat > /dev/null\nkill -KILL $$\n"


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_hook_the_tool_runs(plain: Home, kind: str) -> None:
    result = run(plain, kind)
    assert result.ran, result.story()
    assert result.rc == 0 and len(result.model_got) == 1 and not result.leftovers, result.story()


@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_blocks_is_seen_as_blocking(stand_in: Callable[[str], Home], kind: str) -> None:
    result = run(stand_in(DENY), kind)
    assert not result.ran, result.story()
    assert result.rc == 0 and "stand-in says no" in result.told, result.story()


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_hook_lets_the_tool_run_and_saw_the_call(stand_in: Callable[[str], Home], kind: str) -> None:
    home = stand_in(RECORD)
    seen = home.base / "programs" / "seen"
    seen.unlink(missing_ok=True)
    result = run(home, kind, "GH-SEEN")
    assert result.ran, result.story()
    payload = seen.read_text()
    assert f'"hook_event_name":"{home.driver.gate_event}"' in payload and "GH-SEEN.marker" in payload


def test_all_clients_run_the_tool_when_a_bare_hook_dies(stand_in: Callable[[str], Home]) -> None:
    """Why the launcher exists: without it, a guard that is killed guards nothing."""
    result = run(stand_in(KILLED))
    assert result.ran, result.story()


def test_a_session_that_hangs_is_ended_and_leaves_nothing_behind(stand_in: Callable[[str], Home]) -> None:
    home = stand_in("cat > /dev/null\nexec sleep 300\n")
    result = run(home, limit=6)
    assert result.rc is None and not result.ran, result.story()
    assert process.running_below(home.base) == []


@pytest.mark.skipif(not process.namespaces(), reason="no network namespaces here: loopback of the machine is used")
def test_the_client_reaches_nothing_but_the_scripted_model(plain: Home) -> None:
    """The shell tool shares the client's network: it sees loopback only."""
    work = plain.work()
    call = plain.driver.shell(f"ip -o link > '{work}/links'; cat /proc/net/dev > '{work}/dev'")
    result = run(plain, turns=[(call,)], work=work)
    names = [line.partition(":")[0].strip() for line in (work / "dev").read_text().splitlines()[2:]]
    assert names == ["lo"], result.story()


def test_the_mark_of_a_tool_is_its_own_text(plain: Home) -> None:
    """An empty or foreign file is not taken for a tool that ran."""
    work = plain.work()
    (work / "GH-PLAIN.marker").write_text("")
    result = run(plain, turns=[], work=work)
    assert not result.ran and result.rc == 0, result.story()
    (work / "GH-PLAIN.marker").write_text(RAN)
    assert run(plain, turns=[], work=work).ran


@pytest.mark.dialects("claude-code", "codex", "gemini")
@pytest.mark.parametrize("word, runs", [("GH-PLAIN", True), ("GH-DENY", False)])
def test_a_sub_agents_call_reaches_the_hook(stand_in: Callable[[str], Home], word: str, runs: bool) -> None:
    home = stand_in("! grep -q GH-DENY && exit 0\necho 'stand-in says no' >&2\nexit 2\n")
    work = home.work()
    call = home.driver.call("shell", work / f"{word}.marker")
    result = run(home, word=word, work=work, turns=home.driver.delegate("SUBTASK"), threads={"SUBTASK": [(call,)]})
    assert result.ran is runs and result.rc == 0, result.story()
    assert ("stand-in says no" in result.told) is not runs, result.story()


ASK = """cat > /dev/null
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"stand-in wonders"}}'
"""


@pytest.mark.dialects("claude-code")
@pytest.mark.skipif(shutil.which("tmux") is None, reason="REAL CLIENT NOT TESTED: Claude Code at a terminal: no tmux")
@pytest.mark.parametrize("key, runs", [("Enter", True), ("Escape", False)])
def test_an_asked_person_decides(stand_in: Callable[[str], Home], key: str, runs: bool) -> None:
    with terminal.claude(stand_in(ASK), "shell", "GH-ASK") as session:
        session.wait("stand-in wonders")
        assert not session.ran
        session.press(key)
        if runs:
            session.wait_until_model_asked(2)
        else:
            session.wait("Interrupted|interrupted|rejected")
        assert session.ran is runs, session.screen()


@pytest.mark.dialects("gemini")
def test_noise_in_the_users_shell_file_reaches_the_hooks_shell(stand_in: Callable[[str], Home]) -> None:
    """What the test with the product is about: bash reads .bashrc before a hook, and a line in front of the JSON voids it."""
    home = stand_in("""cat > /dev/null\necho '{"decision":"deny","reason":"stand-in says no"}'\n""")
    bashrc = home.path / ".bashrc"
    assert not run(home).ran
    bashrc.write_text("echo noise from .bashrc\n")
    try:
        assert run(home).ran
    finally:
        bashrc.unlink()
