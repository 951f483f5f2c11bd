"""guardhook in whole sessions of the real clients: sub-agents, code mode, several calls at once, hostile projects, the way in and out."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable

import pytest
from realclients import terminal
from realclients.claude import ClaudeCode
from realclients.codex import CODE_MODE_MODEL, Codex
from realclients.driver import RAN, Home, run
from realclients.install import Pin
from realclients.modelserver import Call
from realclients.product import INSTALLABLE, Product, gate_lines

Homes = Callable[[Pin, str], Home]
needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="REAL CLIENT NOT TESTED: Claude Code at a terminal: no tmux"
)


@pytest.mark.dialects("claude-code", "codex", "gemini")
@pytest.mark.parametrize("word, runs", [("GH-PLAIN", True), ("GH-DENY", False), ("GH-ASK", False)])
def test_a_sub_agents_call_is_judged(guarded: Home, product: Product, word: str, runs: bool) -> None:
    work = guarded.work()
    call = guarded.driver.call("shell", work / f"{word}.marker")
    result = run(
        guarded, word=word, work=work, turns=guarded.driver.delegate("SUBTASK"), threads={"SUBTASK": [(call,)]}
    )
    assert result.ran is runs and result.rc == 0, result.story()
    assert (f"{word} files" in result.told) is not runs, result.story()
    lines = [
        line for line in gate_lines(product.journal(guarded), work.name) if word in json.dumps(line["data"]["payload"])
    ]
    assert lines, "the journal does not know the sub-agent's call"
    if guarded.driver.dialect != "gemini":  # whose payloads do not tell who calls
        assert lines[-1]["data"]["agent"], lines[-1]


@pytest.mark.dialects("codex")
@pytest.mark.parametrize("word, runs", [("GH-PLAIN", True), ("GH-DENY", False), ("GH-ASK", False)])
def test_calls_nested_in_a_code_mode_cell_are_judged(guarded: Home, word: str, runs: bool) -> None:
    driver = guarded.driver
    assert isinstance(driver, Codex)
    work = guarded.work()
    cell = driver.cell(f"printf %s '{RAN}' > '{work / word}.marker'")
    result = run(guarded, word=word, work=work, turns=[(cell,)], arguments=["-c", f'model="{CODE_MODE_MODEL}"'])
    assert result.ran is runs and result.rc == 0, result.story()
    assert "the cell went on" in result.told and ("caught: " in result.told) is not runs, result.story()


def test_of_two_calls_in_one_turn_only_the_denied_one_is_stopped(guarded: Home) -> None:
    work = guarded.work()
    driver = guarded.driver
    calls = (driver.call("shell", work / "GH-PLAIN.marker"), driver.call("write", work / "GH-DENY.marker"))
    result = run(guarded, "shell", "GH-PLAIN", work=work, turns=[calls])
    assert result.ran, result.story()
    assert not (work / "GH-DENY.marker").exists() and "GH-DENY files" in result.told, result.story()


def test_a_large_write_is_judged_to_its_end(guarded: Home) -> None:
    """Three megabytes with the forbidden word as the last thing in them."""
    work = guarded.work()
    marker = work / "GH-PLAIN.marker"
    text = RAN + "\n" + "0123456789abcde\n" * 200_000
    assert run(guarded, work=work, turns=[(guarded.driver.write(marker, text),)]).ran
    marker.unlink()
    result = run(guarded, work=work, turns=[(guarded.driver.write(marker, text + "GH-DENY"),)])
    assert not result.ran and "GH-DENY files" in result.told, result.story()


def test_an_oversized_write_is_blocked(guarded: Home) -> None:
    work = guarded.work()
    text = RAN + "\n" + "0123456789abcde\n" * 600_000
    result = run(guarded, work=work, turns=[(guarded.driver.write(work / "GH-PLAIN.marker", text),)])
    assert not result.ran and result.rc == 0, result.story()


def test_shipped_policies_stop_the_removal_of_a_home(row: Pin, homes: Homes, product: Product) -> None:
    """With nothing configured at all. Should it run after all, it removes a scratch home and nothing else."""
    home = homes(row, "shipped")
    product.ensure_installed(home, policies=None)
    keep = home.path / "Documents" / "letter.txt"
    keep.parent.mkdir(exist_ok=True)
    keep.write_text("dear reader")
    command = f'test "$HOME" = "{home.path}" && rm -rf ~/'
    result = run(home, turns=[(home.driver.shell(command),)])
    assert keep.exists() and result.rc == 0, result.story()
    assert gate_lines(product.journal(home), "rm -rf")[-1]["data"]["verdict"]["action"] in ("deny", "require_review")
    assert run(home).ran


CLOSED_WITHOUT_LAUNCHER = {
    "claude-code": True,
    "claude-code-old": False,
    "codex": False,
    "gemini": True,
    "qwen-code": False,
}


def test_what_is_left_when_the_launcher_itself_is_gone(row: Pin, homes: Homes, product: Product) -> None:
    """The last layer is the client's own: Claude Code's `onFailure`, Gemini's reading of a shell's exit 127. Others stay open,
    and `doctor` says so; if one of them closes, this test tells."""
    home = homes(row, "nolauncher")
    product.ensure_installed(home)
    folder = product.data(home) / "bin"
    folder.rename(folder.with_name("bin-hidden"))
    try:
        result = run(home)
    finally:
        folder.with_name("bin-hidden").rename(folder)
    assert result.ran is not CLOSED_WITHOUT_LAUNCHER[row.row.partition("@")[0]], result.story()
    assert not run(home, word="GH-DENY").ran


@pytest.mark.dialects(*INSTALLABLE)
def test_in_and_out_again(row: Pin, homes: Homes, product: Product) -> None:
    """install, install again, uninstall: guarded, guarded, and as it was before."""
    home = homes(row, "inout")
    before = home.settings_text()
    product.ensure_installed(home)
    once = home.settings_text()
    product.run(home, "install", home.driver.dialect)
    assert home.settings_text() == once
    assert not run(home, word="GH-DENY").ran
    product.run(home, "uninstall", home.driver.dialect)
    assert home.settings_text() == before
    assert run(home, word="GH-DENY").ran


@pytest.mark.dialects(*INSTALLABLE)
def test_capture_only_records_and_stops_nothing(row: Pin, homes: Homes, product: Product) -> None:
    home = homes(row, "capture")
    product.ensure_installed(home, "--capture-only")
    result = run(home, word="GH-DENY")
    assert result.ran and result.rc == 0, result.story()
    assert gate_lines(product.journal(home), result.work.name)
    with product.broken(home, "hangs"):
        result = run(home, word="GH-DENY")
    assert result.ran and result.rc == 0 and not result.leftovers, result.story()


@pytest.mark.dialects(*INSTALLABLE)
def test_doctor_finds_the_real_client_guarded(guarded: Home, product: Product) -> None:
    dialect = guarded.driver.dialect
    done = product.run(guarded, "doctor", dialect, "--json", check=False)
    report = next(entry for entry in json.loads(done.stdout)["harnesses"] if entry["harness"] == dialect)
    assert report["ok"] and done.returncode == 0, done.stdout
    assert report["client"]["version"] == guarded.driver.installed.version
    assert {entry["mode"] for entry in report["registered"]} == {"enforce", "observe"}
    with product.broken(guarded, "empty"):
        done = product.run(guarded, "doctor", dialect, "--json", check=False)
    assert done.returncode != 0, done.stdout


@pytest.mark.dialects("claude-code")
def test_no_objection_is_no_approval(row: Pin, homes: Homes, product: Product) -> None:
    """A user who allowed nothing beforehand is still asked, which without a terminal means no."""
    home = homes(row, "nothing-allowed")
    product.ensure_installed(home)
    settings = home.read_json(home.driver.settings)
    home.write(home.driver.settings, {**settings, "permissions": {}})
    work = home.work()
    marker = home.base / "outside.marker"
    result = run(home, turns=[(home.driver.call("shell", marker),)], work=work)
    assert not marker.exists() and result.rc == 0 and "guardhook" not in result.told, result.story()
    assert gate_lines(product.journal(home), work.name)[0]["data"]["verdict"]["action"] == "allow"


@pytest.mark.dialects("claude-code")
@needs_tmux
@pytest.mark.parametrize("key, runs", [("Enter", True), ("Escape", False)])
def test_review_at_a_terminal_is_the_persons_choice(guarded: Home, key: str, runs: bool) -> None:
    assert isinstance(guarded.driver, ClaudeCode)
    with terminal.claude(guarded, "shell", "GH-ASK") as session:
        session.wait("GH-ASK files")
        assert not session.ran
        session.press(key)
        if runs:
            session.wait_until_model_asked(2)
        else:
            session.wait("Interrupted|interrupted|rejected")
        assert session.ran is runs, session.screen()


@pytest.mark.dialects("claude-code")
def test_a_session_cant_switch_the_guard_off_for_its_next_call(guarded: Home) -> None:
    """Newer versions load changed settings at once; whether the write or the change is refused, the next call is judged."""
    work = guarded.work()
    driver = guarded.driver
    off = driver.shell("mkdir -p .claude && echo '{\"disableAllHooks\": true}' > .claude/settings.local.json; sleep 1")
    result = run(guarded, word="GH-DENY", work=work, turns=[(off,), (driver.call("shell", work / "GH-DENY.marker"),)])
    assert not result.ran and "GH-DENY files" in result.told, result.story()


@pytest.mark.dialects("gemini", "qwen-code")
def test_noise_around_the_hooks_shell_does_not_open_it(guarded: Home) -> None:
    """A project's .env that names a BASH_ENV file, and a .bashrc that prints: both reach the shell that starts the hook."""
    work = guarded.work()
    noise = work / "noise.sh"
    noise.write_text("echo noise from the project\n")
    (work / ".env").write_text(f"BASH_ENV={noise}\nENV={noise}\n")
    bashrc = guarded.path / ".bashrc"
    bashrc.write_text("echo noise from .bashrc\n")
    try:
        result = run(guarded, word="GH-DENY", work=work)
    finally:
        bashrc.unlink()
    assert not result.ran and "GH-DENY files" in result.told, result.story()


@pytest.mark.dialects("codex")
def test_codex_trusts_what_install_registered(guarded: Home) -> None:
    """Without trust Codex skips a hook silently; the session says that it ran ours."""
    result = run(guarded, word="GH-DENY")
    assert not result.ran and any("PreToolUse" in line for line in result.reported), result.story()
    assert "bypass-hook-trust" not in result.stderr


@pytest.mark.dialects("gemini")
def test_review_without_a_person_neither_hangs_nor_asks(guarded: Home) -> None:
    """Gemini's own ask hangs a headless session until it is killed."""
    result = run(guarded, word="GH-ASK", limit=45)
    assert not result.ran and result.rc == 0, result.story()
    assert '"status":"success"' in result.stdout.splitlines()[-1], result.story()


@pytest.mark.dialects(*INSTALLABLE)
def test_the_journal_has_the_session_from_start_to_end(guarded: Home, product: Product) -> None:
    result = run(guarded)
    lines = [line for line in product.journal(guarded) if result.work.name in json.dumps(line["data"].get("cwd"))]
    events = [line["data"]["event"] for line in lines]
    assert events[0] in ("session_start", "user_prompt") and "pre_tool" in events and "post_tool" in events, events
    assert len({(line["data"]["session"], line["data"]["run"]) for line in lines}) == 1
    assert [line["seq"] for line in lines] == sorted({line["seq"] for line in lines})
    shown = product.run(guarded, "journal", "show", "--json", "--session", lines[0]["data"]["session"])
    assert result.work.name in shown.stdout
    assert product.run(guarded, "journal", "verify").returncode == 0


def test_a_tool_that_the_model_repeats_is_stopped_each_time(guarded: Home) -> None:
    work = guarded.work()
    call: Call = guarded.driver.call("shell", work / "GH-DENY.marker")
    result = run(guarded, word="GH-DENY", work=work, turns=[(call,), (call,), (call,)])
    assert not result.ran and result.told.count("GH-DENY files") == 3, result.story()


@pytest.mark.dialects("claude-code", "gemini")
def test_after_weeks_of_silence_a_session_begins_with_a_word_of_it(row: Pin, homes: Homes, product: Product) -> None:
    """The client shows it to the person, never to the model, and goes on as ever."""
    home = homes(row, "silent")
    product.ensure_installed(home)
    said = "nothing was recorded of this agent for 40 days"
    first = run(home)
    assert first.ran and said not in first.stdout + first.stderr, first.story()
    for file in (product.data(home) / "journal").rglob("*.jsonl"):
        os.utime(file, (time.time() - 40 * 86_400,) * 2)
    second = run(home)
    assert second.ran and second.rc == 0 and said in second.stdout + second.stderr, second.story()
    assert said not in second.told
    third = run(home, word="GH-DENY")
    assert not third.ran and said not in third.stdout + third.stderr, third.story()
