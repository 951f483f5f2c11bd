"""The built executable, installed: what the registered command answers, and what it takes to make it fail open (nothing)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from binary_installed import DEADLY, HARMLESS, PATH, Installed, call, child_of, is_deny

pytestmark = pytest.mark.binary

SILENT = (0, b"", b"")


def test_harmless_call_passes_in_silence(installed: Installed) -> None:
    assert installed.ask(call(HARMLESS)) == SILENT


def test_deadly_call_is_blocked(installed: Installed) -> None:
    assert is_deny(installed.ask(call(DEADLY)))


def test_observing_says_nothing_and_records(own_install: Installed) -> None:
    assert own_install.ask(call(DEADLY), own_install.observer, "PreToolUse") == SILENT
    (line,) = own_install.lines()
    assert line["data"]["payload"]["tool_input"] == {"command": DEADLY}  # type: ignore[index]


def test_hook_program_without_any_argument_enforces(installed: Installed) -> None:
    assert is_deny(installed.ask(call(DEADLY), installed.program))
    assert installed.ask(call(HARMLESS), installed.program) == SILENT


def test_verdict_is_in_the_journal(own_install: Installed) -> None:
    own_install.ask(call(DEADLY))
    (line,) = own_install.lines()
    verdict = line["data"]["verdict"]  # type: ignore[index]
    assert verdict["action"] == "deny"
    assert verdict["answer"]["exit"] == 2


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n", id="blank"),
        pytest.param(call()[:-20], id="truncated"),
        pytest.param(b"[]", id="array"),
        pytest.param(b"null", id="null"),
        pytest.param(b"17", id="number"),
        pytest.param(b'"text"', id="string"),
        pytest.param(call().replace(b"git", b"g\xffit"), id="not UTF-8"),
        pytest.param(call().replace(b'"cwd"', b'"session_id": "x", "cwd"'), id="duplicate key"),
        pytest.param(call(["rm", 7]), id="command of a wrong type"),
        pytest.param(b'{"a":' * 3000 + b"1" + b"}" * 3000, id="too deep"),
        pytest.param(call() + call(), id="two documents"),
        pytest.param(call("true", pad="x" * (9 * 1024 * 1024)), id="over 8 MiB"),
        pytest.param(b"\x7fELF" + bytes(range(256)) * 50, id="garbage"),
    ],
)
def test_unusable_payloads_are_blocked(installed: Installed, payload: bytes) -> None:
    assert is_deny(installed.ask(payload))


@pytest.mark.parametrize(
    "payload", [b"", b"[]", call()[:-20], b"\xff\xfe", b'{"a":' * 3000], ids=["empty", "array", "cut", "bytes", "deep"]
)
def test_observing_unusable_payloads_says_nothing(installed: Installed, payload: bytes) -> None:
    assert installed.ask(payload, installed.observer, "PreToolUse") == SILENT


def test_payload_with_mark_and_other_scripts(installed: Installed) -> None:
    assert installed.ask(b"\xef\xbb\xbf" + call("echo zażółć 漢字 😀")) == SILENT
    assert is_deny(installed.ask(call("ｒｍ -rf /")))


def test_no_payload_at_all_is_answered_in_time(installed: Installed) -> None:
    process = installed.start()
    out, err = process.stdout, process.stderr  # stdin stays open and silent
    assert out is not None and err is not None
    assert is_deny((process.wait(timeout=3.9), out.read(), err.read()))
    for stream in (process.stdin, out, err):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT, signal.SIGFPE])
def test_killed_while_it_runs(installed: Installed, number: signal.Signals) -> None:
    process = installed.start()
    os.kill(child_of(process.pid), number)
    out, err = process.communicate(call(), timeout=10)
    assert is_deny((process.returncode, out, err))


def test_stopped_for_ever(installed: Installed) -> None:
    process = installed.start()
    os.kill(child_of(process.pid), signal.SIGSTOP)
    out, err = process.communicate(call(), timeout=10)
    assert is_deny((process.returncode, out, err))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_launcher_told_to_stop(installed: Installed, number: signal.Signals) -> None:
    process = installed.start()
    child_of(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert is_deny((process.returncode, out, err))


def unseal(path: Path) -> None:
    path.parent.chmod(0o700)
    path.chmod(0o700)


@pytest.mark.parametrize(
    "what", ["missing", "not executable", "empty", "corrupt", "cut", "wrong library", "no version"]
)
def test_broken_hook_program(own_install: Installed, what: str) -> None:
    program = Path(os.path.realpath(own_install.program))
    unseal(program)
    if what == "missing":
        program.unlink()
    elif what == "not executable":
        program.chmod(0o600)
    elif what == "empty":
        program.write_bytes(b"")
    elif what == "corrupt":
        data = bytearray(program.read_bytes())
        data[4096 : len(data) // 2] = b"\xcc" * (len(data) // 2 - 4096)
        program.write_bytes(bytes(data))
    elif what == "cut":
        program.write_bytes(program.read_bytes()[: program.stat().st_size // 2])
    elif what == "wrong library":
        library = next(program.parent.rglob("_json*"))
        library.chmod(0o700)
        library.write_bytes(b"not a library")
    else:
        (own_install.data / "current").unlink()
    assert is_deny(own_install.ask(call()))
    assert own_install.ask(call(), own_install.observer, "PreToolUse") == SILENT
    done = own_install.command("doctor", "claude-code")
    assert done.returncode == 1


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"HOME": "/nonexistent"},
        {"HOME": ""},
        {"SHLVL": "0", "LANG": "xx_YY.nothing", "LC_ALL": "tr_TR.ISO-8859-9"},
        {"PYTHONPATH": "/tmp", "PYTHONHOME": "/tmp", "PYTHONSTARTUP": "/tmp/x", "PYTHONMALLOC": "debug"},
        {"GUARDHOOK_DIR": "/nonexistent", "XDG_DATA_HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"},
        {"_PYI_ARCHIVE_FILE": "/tmp/x", "_PYI_PARENT_PROCESS_LEVEL": "0", "_PYI_APPLICATION_HOME_DIR": "/tmp/_MEIx"},
        {"TMPDIR": "/nonexistent"},
        {"TZ": "Antarctica/Troll"},
    ],
)
def test_environment_changes_nothing(installed: Installed, env: dict[str, str]) -> None:
    assert installed.ask(call(HARMLESS), env=env) == SILENT
    assert is_deny(installed.ask(call(DEADLY), env=env))


def test_planted_modules_in_the_working_folder_are_not_loaded(installed: Installed, tmp_path: Path) -> None:
    for name in ("guardhook", "_json", "encodings", "regex", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("import os; os._exit(0)\n")
    env = {"PYTHONPATH": str(tmp_path)}
    assert is_deny(installed.ask(call(DEADLY), env=env, cwd=tmp_path))
    assert is_deny(installed.ask(call(DEADLY), installed.program, env=env, cwd=tmp_path))


def test_planted_library_does_not_reach_the_hook(installed: Installed, tmp_path: Path) -> None:
    source = tmp_path / "evil.c"
    source.write_text("#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(0); }\n")
    library = tmp_path / "evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert is_deny(installed.ask(call(DEADLY), env={"LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(tmp_path)}))


CLOSING = (
    "import os, sys\nfor fd in map(int, sys.argv[1].split(',')): os.close(fd)\nos.execv(sys.argv[2], sys.argv[2:])"
)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0,1,2"])
def test_closed_streams(installed: Installed, closed: str) -> None:
    status, _, _ = installed.ask(call(DEADLY), sys.executable, "-c", CLOSING, closed, installed.launcher, "PreToolUse")
    assert status == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "none", folder]).returncode:
        pytest.skip("a small disk is made with a mount, which needs root here")
    yield folder
    subprocess.run(["umount", "-l", folder])


def test_full_disk_blocks_and_says_so(executable: Path, small_disk: Path) -> None:
    place = Installed(small_disk / "home", executable)
    assert place.ask(call()) == SILENT
    filler = os.open(small_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(filler, bytes(1 << 20))
    with pytest.raises(OSError):
        while True:
            os.write(filler, b"x")
    os.close(filler)
    assert is_deny(place.ask(call("echo " + "y" * 20_000)))
    assert is_deny(place.ask(call(DEADLY)))
    assert place.ask(call(), place.observer, "PreToolUse") == SILENT
    (small_disk / "filler").unlink()
    assert place.ask(call()) == SILENT


def test_read_only_home(executable: Path, small_disk: Path) -> None:
    place = Installed(small_disk / "home", executable)
    place.ask(call())
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert is_deny(place.ask(call()))
    assert is_deny(place.ask(call(DEADLY)))
    assert place.ask(call(), place.observer, "PreToolUse") == SILENT


def test_many_at_once_lose_nothing(own_install: Installed) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: own_install.ask(call(HARMLESS, tool_use_id=f"toolu_{n}")), range(80)))
    assert results == [SILENT] * 80
    lines = own_install.lines()
    assert {line["data"]["call"] for line in lines if line["type"] == "hook.received"} == {  # type: ignore[index]
        f"toolu_{n}" for n in range(80)
    }
    assert sorted(line["seq"] for line in lines) == list(range(1, len(lines) + 1))  # type: ignore[type-var]


def test_installing_again_changes_nothing(own_install: Installed) -> None:
    before = os.readlink(own_install.data / "current")
    done = own_install.command("install", "claude-code")
    assert done.returncode == 0
    assert os.readlink(own_install.data / "current") == before
    assert os.listdir(own_install.data / "versions") == [Path(before).name]


def test_policy_that_the_user_adds_counts_at_once(own_install: Installed) -> None:
    assert own_install.ask(call("make deploy")) == SILENT
    folder = own_install.home / ".config" / "guardhook" / "policies"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(
        '[[policy]]\nname = "mine"\naction = "deny"\nreason = "not today"\nmatch = { input_contains = "make deploy" }\n'
    )
    assert is_deny(own_install.ask(call("make deploy")))
    (folder / "mine.toml").write_text("[[policy]\n")
    status, out, _ = own_install.ask(call("true"))
    assert status == 2
    assert "mine.toml" in json.loads(out)["hookSpecificOutput"]["permissionDecisionReason"]


def test_checksums_and_bill_of_materials(executable: Path) -> None:
    sums = executable.parent / "SHA256SUMS"
    if not sums.exists():
        pytest.skip("the executable was not made by build/release: no SHA256SUMS beside it")
    for line in sums.read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((executable.parent / name).read_bytes()).hexdigest() == digest
    bill = json.loads((executable.parent / "sbom.cdx.json").read_text())
    names = {component["name"] for component in bill["components"]}
    assert {"cpython", "msgspec", "regex", "click", "platformdirs", "tomlkit", "rich"} <= names
    assert all(component["version"] for component in bill["components"])


def test_path_of_the_client_does_not_matter(installed: Installed) -> None:
    assert is_deny(installed.ask(call(DEADLY), env={"PATH": "/nonexistent"}))
    assert PATH.startswith("/usr/local")


def test_commands_in_utf_16_are_read(own_install: Installed) -> None:
    encoded = base64.b64encode("Get-ChildItem C:\\Temp".encode("utf-16-le")).decode()
    own_install.ask(call(f"pwsh -NoProfile -EncodedCommand {encoded}"))
    (line,) = own_install.lines()
    kinds = [effect["kind"] for effect in line["data"]["effects"]]  # type: ignore[index]
    assert "unverified" not in kinds
    assert "run" in kinds


@pytest.mark.parametrize("name", ["\u0416-\u00e9", "\U0001f600", "\udcff\udc80"], ids=["letters", "emoji", "not UTF-8"])
def test_folders_of_any_name(own_install: Installed, tmp_path: Path, name: str) -> None:
    project = tmp_path / name / "sub"
    project.mkdir(parents=True)
    (tmp_path / name / ".git").mkdir()
    assert own_install.ask(call(HARMLESS, cwd=str(project))) == SILENT
    assert is_deny(own_install.ask(call(DEADLY, cwd=str(project))))
    assert [line["data"]["root"] for line in own_install.lines()] == [str(tmp_path / name)] * 2
