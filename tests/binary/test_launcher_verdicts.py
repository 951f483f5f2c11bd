"""The launcher as a program: what a verdict must look like, and what every other end of the hook program turns into."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from binary_rig import DENY, ENFORCING, OBSERVING, Rig


def denied(result: object) -> bool:
    return result[:3] == (DENY.exit, DENY.stdout, DENY.stderr)  # type: ignore[index]


def test_verdict_is_forwarded(rig: Rig) -> None:
    rig.hook('v; echo reason >&2; echo "{\\"ok\\":1}"; exit 2')
    assert rig.run("alpha.enforce", "PreToolUse")[:3] == (2, b'{"ok":1}\n', b"reason\n")


def test_silence_with_a_verdict_is_silence(rig: Rig) -> None:
    rig.hook("v; exit 0")
    assert rig.run("alpha.enforce", "PreToolUse")[:3] == (0, b"", b"")


def test_payload_reaches_the_hook_program(rig: Rig) -> None:
    rig.hook("v; cat")
    payload = b"x" * 700_000
    assert rig.run("alpha.enforce", "PreToolUse", payload=payload).stdout == payload


def test_arguments_of_the_hook_program(rig: Rig) -> None:
    rig.hook('v; echo "$@"')
    said = [
        rig.run(name, *words).stdout
        for name, words in (
            ("alpha.enforce", ("PreToolUse", "--dir", "/tmp")),
            ("alpha.enforce", ("--dir=/tmp",)),
            ("alpha.enforce", ("Pre Tool",)),
            ("alpha.enforce", ()),
        )
    ]
    assert said == [
        b"hook PreToolUse --enforce --dialect alpha --verdict-fd 3\n",
        *[b"hook --enforce --dialect alpha --verdict-fd 3\n"] * 3,
    ]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 0", id="silent without verdict"),
        pytest.param("echo '{}'; exit 0", id="output without verdict"),
        pytest.param("exit 2", id="block without verdict"),
        pytest.param("v; exit 1", id="status 1"),
        pytest.param("v; exit 127", id="status 127"),
        pytest.param("v; exit 255", id="status 255"),
        pytest.param("v; echo half; kill -9 $$", id="SIGKILL"),
        pytest.param("v; kill -SEGV $$", id="SIGSEGV"),
        pytest.param("kill -TERM $$", id="SIGTERM"),
        pytest.param("v; v; exit 0", id="two verdict bytes"),
        pytest.param("printf N >&3; exit 0", id="wrong verdict byte"),
        pytest.param("v; head -c 1200000 /dev/zero; exit 0", id="too much output"),
    ],
)
def test_anything_else_is_the_fallback(rig: Rig, script: str) -> None:
    rig.hook(script)
    assert denied(rig.run("alpha.enforce", "PreToolUse"))


def test_endless_output_is_cut_short(c_rig: Rig) -> None:
    c_rig.hook("v; exec cat /dev/zero")
    result = c_rig.run("alpha.enforce", "PreToolUse")
    assert denied(result)
    assert result.seconds < ENFORCING


def test_endless_noise_on_stderr_is_no_verdict(c_rig: Rig) -> None:
    c_rig.hook("v; exec cat /dev/zero >&2")
    assert denied(c_rig.run("alpha.enforce", "PreToolUse"))


@pytest.mark.parametrize("what", ["missing", "not executable", "corrupt", "empty", "folder", "dangling current"])
def test_no_usable_hook_program(rig: Rig, what: str) -> None:
    if what == "not executable":
        rig.hook("v; exit 0")
        rig.program.chmod(0o600)
    elif what == "corrupt":
        rig.program.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 100)
        rig.program.chmod(0o700)
    elif what == "empty":
        rig.program.write_bytes(b"")
        rig.program.chmod(0o700)
    elif what == "folder":
        rig.program.mkdir()
    elif what == "dangling current":
        (rig.root / "current").rmdir()
        (rig.root / "current").symlink_to("versions/gone")
    assert denied(rig.run("alpha.enforce", "PreToolUse"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("PermissionRequest", (0, b'{"behavior":"deny"}\n', b"blocked\n")),
        ("Stop", (0, b"", b"")),
        ("PostToolUse", (0, b"", b"")),
    ],
)
def test_fallback_by_event(rig: Rig, event: str, expected: tuple[int, bytes, bytes]) -> None:
    assert rig.run("alpha.enforce", event)[:3] == expected


@pytest.mark.parametrize("words", [(), ("NeverHeardOf",), ("a b",)])
def test_without_a_known_event_one_plain_line_blocks(rig: Rig, words: tuple[str, ...]) -> None:
    result = rig.run("alpha.enforce", *words)
    assert result.status == 2
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    assert b"blocked" in result.stderr


@pytest.mark.parametrize("script", ["v; echo x; echo y >&2; exit 2", "exit 1", "kill -9 $$", None])
def test_observing_says_nothing_whatever_happens(rig: Rig, script: str | None) -> None:
    if script is not None:
        rig.hook(script)
    assert rig.run("alpha.observe", "PreToolUse")[:3] == (0, b"", b"")


def test_observing_where_the_client_demands_an_answer(rig: Rig) -> None:
    rig.hook("v; echo '{}'")
    assert rig.run("talker.observe", "pre")[:2] == (0, b"{}\n")
    rig.hook("exit 1")
    assert rig.run("talker.observe", "pre")[:2] == (0, b'{"permission":"allow"}\n')
    assert rig.run("talker.enforce", "pre")[:2] == (1, b'{"permission":"deny"}\n')


def test_statuses_beyond_the_usual_two(rig: Rig) -> None:
    rig.hook("v; echo said; exit 1")
    assert rig.run("talker.enforce", "pre")[:2] == (1, b"said\n")


@pytest.mark.parametrize("name", ["alpha.loud", "alpha", "unknown.enforce", "alpha.enforce.bak"])
def test_unknown_own_name_blocks(rig: Rig, name: str) -> None:
    rig.hook("v; exit 0")
    result = rig.run(name, "PreToolUse")
    assert result.status == 2
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1


def test_own_name_is_not_taken_from_argv0(c_rig: Rig) -> None:
    c_rig.hook('v; echo "$@"')
    path = c_rig.launcher("alpha.enforce")
    done = subprocess.run(["/elsewhere/alpha.observe", "PreToolUse"], executable=path, capture_output=True, input=b"{}")
    assert b"--enforce" in done.stdout


def test_a_link_with_another_name_changes_nothing(c_rig: Rig) -> None:
    c_rig.hook('v; echo "$@"')
    link = c_rig.root / "alpha.observe"
    link.symlink_to(c_rig.launcher("alpha.enforce"))
    done = subprocess.run([link, "PreToolUse"], capture_output=True, input=b"{}")
    assert b"--enforce" in done.stdout


def test_hang_is_answered_in_time_and_killed_with_its_children(c_rig: Rig, alive: object) -> None:
    c_rig.hook("sleep 60 & echo $! > \"${0%/*}/../child\"; trap '' TERM; wait; sleep 60")
    result = c_rig.run("alpha.enforce", "PreToolUse")
    assert denied(result)
    assert ENFORCING <= result.seconds < ENFORCING + 3
    child = int((c_rig.root / "child").read_text())
    for _ in range(100):
        if not alive(child):  # type: ignore[operator]
            break
        os.sched_yield()
        subprocess.run(["sleep", "0.02"])
    assert not alive(child)  # type: ignore[operator]


def test_hang_in_sh_form(tmp_path: Path, rig: Rig) -> None:
    rig.hook("exec sleep 60")
    assert denied(rig.run("alpha.enforce", "PreToolUse"))


def test_observing_hang_is_cut_earlier(rig: Rig) -> None:
    rig.hook("exec sleep 60")
    result = rig.run("alpha.observe", "PreToolUse")
    assert result[:3] == (0, b"", b"")
    assert OBSERVING <= result.seconds < OBSERVING + 3


def test_grandchild_that_keeps_the_streams_open_is_not_waited_for(rig: Rig) -> None:
    (rig.root / "pids").mkdir()
    rig.hook('sleep 30 & : > "${0%/*}/../pids/$!"; v; echo answer; exit 2')
    result = rig.run("alpha.enforce", "PreToolUse")
    assert result[:3] == (2, b"answer\n", b"")
    assert result.seconds < 20
