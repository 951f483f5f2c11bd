"""The launcher in hostile or broken surroundings: closed descriptors, signals, planted environments, full disks."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from binary_installed import child_of
from binary_rig import DENY, TABLE, Rig

from guardhook.harness import launcher

CLOSING = """
import os, sys
for fd in map(int, sys.argv[1].split(",")):
    os.close(fd)
os.execv(sys.argv[2], sys.argv[2:])
"""


def run_closed(rig: Rig, closed: str, *words: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-c", CLOSING, closed, str(rig.launcher("alpha.enforce")), *words],
        input=b"{}",
        capture_output=True,
        timeout=20,
    )
    return done.returncode, done.stdout, done.stderr


def wait_for(path: Path) -> None:
    for _ in range(500):
        if path.exists() and path.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never appeared")


def test_closed_stdin_is_an_empty_payload(rig: Rig) -> None:
    rig.hook("v; wc -c; exit 2")
    status, out, _ = run_closed(rig, "0", "PreToolUse")
    assert (status, out.strip()) == (2, b"0")


def test_closed_stdout_keeps_a_block_a_block(rig: Rig) -> None:
    rig.hook("v; echo json; echo reason >&2; exit 2")
    assert run_closed(rig, "1", "PreToolUse") == (2, b"", b"reason\n")


def test_closed_stdout_turns_an_answer_that_needs_it_into_a_block(rig: Rig) -> None:
    rig.hook("v; echo ask; exit 0")
    status, out, _ = run_closed(rig, "1", "PreToolUse")
    assert (status, out) == (2, b"")


def test_closed_stderr_keeps_the_answer(rig: Rig) -> None:
    rig.hook("v; echo json; echo reason >&2; exit 2")
    assert run_closed(rig, "2", "PreToolUse") == (2, b"json\n", b"")


def test_nothing_of_the_hook_program_lands_on_descriptors_that_were_closed(rig: Rig) -> None:
    rig.hook("v; echo answer; exit 2")
    assert run_closed(rig, "0,1,2", "PreToolUse") == (2, b"", b"")


def test_all_closed_and_no_hook_program(rig: Rig) -> None:
    assert run_closed(rig, "0,1,2", "PreToolUse")[0] == 2


def test_a_reader_that_went_away_blocks_an_ask(c_rig: Rig) -> None:
    c_rig.hook("v; sleep 0.2; echo ask; exit 0")
    process = c_rig.start("alpha.enforce", "PreToolUse")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=10) == 2
    process.stderr.close()


def test_full_device_on_stdout_blocks_an_ask(rig: Rig) -> None:
    rig.hook("v; echo ask; exit 0")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [rig.launcher("alpha.enforce"), "PreToolUse"], input=b"{}", stdout=full, stderr=subprocess.PIPE, timeout=20
        )
    assert done.returncode == 2


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2],
)
def test_being_told_to_stop_is_answered_with_a_block(rig: Rig, number: signal.Signals) -> None:
    rig.hook('echo $$ > "${0%/*}/../started"; exec sleep 60')
    process = rig.start("alpha.enforce", "PreToolUse")
    wait_for(rig.root / "started")
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == tuple(DENY[1:4])


@pytest.mark.parametrize("number", sorted({*signal.valid_signals()} - {signal.SIGKILL, signal.SIGSTOP}))
def test_no_signal_that_can_be_caught_ends_it_without_an_answer(c_rig: Rig, number: int) -> None:
    """SIGUSR1, a clock's or a limit's signal ended it, and a client that only knows status 2 ran the call."""
    c_rig.hook(
        'v; echo $$ > "${0%/*}/../started"; while [ ! -e "${0%/*}/../go" ]; do sleep 0.02; done; echo json; exit 2'
    )
    process = c_rig.start("alpha.enforce", "PreToolUse")
    wait_for(c_rig.root / "started")
    process.send_signal(number)
    if number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        process.send_signal(signal.SIGCONT)
    (c_rig.root / "go").touch()
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) in ((2, b"json\n", b""), tuple(DENY[1:4]))


@pytest.mark.parametrize("number", [signal.SIGFPE, signal.SIGSEGV, signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_the_child_before_it_is_the_hook_program(c_rig: Rig, number: signal.Signals) -> None:
    """Between fork and exec it is still this program: it answered as well, and the client saw two answers."""
    c_rig.hook("sleep 60")
    for _ in range(25):
        process = c_rig.start("alpha.enforce", "PreToolUse")
        os.kill(child_of(process.pid), number)
        out, err = process.communicate(b"{}", timeout=10)
        assert (process.returncode, out, err) == tuple(DENY[1:4])


def test_the_hook_program_starts_with_no_signal_ignored(c_rig: Rig) -> None:
    c_rig.hook(
        "v; while read -r name value; do case $name in SigIgn:) echo $value ;; esac; done < /proc/self/status; exit 2"
    )
    assert int(c_rig.run("alpha.enforce", "PreToolUse").stdout, 16) == 0


def test_being_told_to_stop_kills_the_hook_program(c_rig: Rig, alive: object) -> None:
    c_rig.hook('echo $$ > "${0%/*}/../started"; trap "" TERM; sleep 60')
    process = c_rig.start("alpha.enforce", "PreToolUse")
    wait_for(c_rig.root / "started")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    pid = int((c_rig.root / "started").read_text())
    for _ in range(200):
        if not alive(pid):  # type: ignore[operator]
            break
        time.sleep(0.01)
    assert not alive(pid)  # type: ignore[operator]


def test_signals_that_the_parent_ignores_or_blocks_change_nothing(c_rig: Rig) -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM})\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    # Read by the shell itself: it blocks signals while it waits for another program.
    c_rig.hook('v; while read -r line; do case $line in Sig*) echo "$line" ;; esac; done < /proc/self/status; exit 2')
    done = subprocess.run(
        [sys.executable, "-c", code, c_rig.launcher("alpha.enforce"), "PreToolUse"],
        input=b"{}",
        capture_output=True,
        timeout=20,
    )
    assert done.returncode == 2
    masks = dict(line.split(b":") for line in done.stdout.splitlines())
    assert int(masks[b"SigBlk"], 16) == 0
    assert int(masks[b"SigIgn"], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGCHLD - 1)) == 0


def test_environment_is_rebuilt_from_an_allow_list(rig: Rig) -> None:
    rig.hook("v; exec env")
    planted = {
        "PATH": "/evil", "LD_PRELOAD": "", "PYTHONPATH": "/evil", "PYTHONHOME": "/evil", "BASH_ENV": "/evil/rc", "ENV": "/evil/rc",
        "NODE_OPTIONS": "--require /evil.js", "_PYI_ARCHIVE_FILE": "/evil", "_PYI_APPLICATION_HOME_DIR": "/evil", "HOME": "/evil",
        "GUARDHOOK_DIR": "/evil", "LANG": "C.UTF-8", "LC_ALL": "../../evil", "TZ": "/evil/zone", "IFS": "x", "GLIBC_TUNABLES": "a=b",
        "CLAUDE_PROJECT_DIR": "/pro ject", "GEMINI_SESSION_ID": "s1", "BASH_FUNC_echo%%": "() { :; }",
    }  # fmt: skip
    seen = dict(
        line.split("=", 1) for line in rig.run("alpha.enforce", "PreToolUse", env=planted).stdout.decode().splitlines()
    )
    for name in ("PWD", "SHLVL", "_", "OLDPWD"):  # what the fake's own shell adds
        seen.pop(name, None)
    path = seen.pop("PATH")
    assert "/evil" not in path
    assert seen == {"LANG": "C.UTF-8", "CLAUDE_PROJECT_DIR": "/pro ject", "GEMINI_SESSION_ID": "s1"}


@pytest.mark.parametrize("env", [{}, {"SHLVL": "0"}, {"HOME": "/nonexistent"}, {"PATH": ""}])
def test_bare_environments(rig: Rig, env: dict[str, str]) -> None:
    rig.hook("v; echo answer; exit 2")
    assert rig.run("alpha.enforce", "PreToolUse", env=env)[:3] == (2, b"answer\n", b"")


def test_planted_shell_start_up_files_do_not_run(rig: Rig, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.write_text("echo planted; exit 0\n")
    rig.hook("v; echo answer; exit 2")
    env = {"PATH": "/usr/bin:/bin", "BASH_ENV": str(planted), "ENV": str(planted), "BASH_FUNC_exec%%": "() { exit 0; }"}
    assert rig.run("alpha.enforce", "PreToolUse", env=env)[:3] == (2, b"answer\n", b"")


def test_planted_preload_library_does_not_reach_the_c_launcher(c_rig: Rig, tmp_path: Path) -> None:
    source = tmp_path / "evil.c"
    source.write_text("#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(0); }\n")
    library = tmp_path / "evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    c_rig.hook("v; echo answer; exit 2")
    env = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(library)}
    assert c_rig.run("alpha.enforce", "PreToolUse", env=env)[:3] == (2, b"answer\n", b"")


def test_leaked_descriptors_do_not_reach_the_hook_program(c_rig: Rig) -> None:
    c_rig.hook("v; ls /proc/self/fd; exit 2")
    read_end, write_end = os.pipe()
    process = c_rig.start("alpha.enforce", "PreToolUse", pass_fds=(read_end, write_end))
    out, _ = process.communicate(b"{}", timeout=10)
    os.close(read_end)
    os.close(write_end)
    # 0, 1, 2, the verdict pipe, and the one with which `ls` reads the folder
    assert out.split() == [b"0", b"1", b"2", b"3", b"4"]


def test_deleted_while_running_still_knows_its_name(c_rig: Rig) -> None:
    """An upgrade replaces the launcher's file while some harness is starting the old one."""
    c_rig.hook('v; sleep 0.1; echo "$@"; exit 2')
    path = c_rig.launcher("alpha.enforce")
    for _ in range(5):
        process = c_rig.start("alpha.enforce", "PreToolUse")
        replacement = path.with_name("new")
        shutil.copy(c_rig.built, replacement)
        os.rename(replacement, path)
        out, _ = process.communicate(b"{}", timeout=10)
        assert (process.returncode, b"--dialect alpha" in out) == (2, True)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder]).returncode:
        pytest.skip("a full disk is made with a mount, which needs root here")
    yield folder
    subprocess.run(["umount", "-l", folder])


def test_sh_form_on_a_full_disk_blocks(tiny_disk: Path) -> None:
    rig = Rig(tiny_disk, "sh", tiny_disk)
    rig.hook("v; exit 0")
    rig.launcher("alpha.enforce")
    filler = os.open(tiny_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(filler, b"x" * 512)
    os.close(filler)
    result = rig.run("alpha.enforce", "PreToolUse")
    assert result[:3] == tuple(DENY[1:4])


def test_sh_form_quotes_its_own_path(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder" $HOME `id`'
    folder.mkdir()
    rig = Rig(folder, "sh", folder)
    rig.hook("v; echo answer; exit 2")
    assert rig.run("alpha.enforce", "PreToolUse")[:3] == (2, b"answer\n", b"")


def test_sh_form_parses_everywhere(tmp_path: Path) -> None:
    script = tmp_path / "launcher.sh"
    script.write_text(launcher.shell_form(TABLE, "/x/alpha.enforce"))
    for shell in ("dash", "bash --posix", "busybox sh"):
        words = shlex.split(shell)
        if subprocess.run(["which", words[0]], capture_output=True).returncode == 0:
            subprocess.run([*words, "-n", str(script)], check=True)


def test_awkward_bytes_survive_the_generated_table() -> None:
    data = bytes(range(256)) + b"??/ %s \\0123 'quoted'"
    done = subprocess.run(
        ["sh", "-c", f"printf %b {launcher.sh_quote(data.replace(bytes(1), b''))}"], capture_output=True
    )
    assert done.stdout == data.replace(bytes(1), b"")
    assert launcher.c_string(b'a"\\?\n1') == '"a\\042\\134\\077\\0121"'
