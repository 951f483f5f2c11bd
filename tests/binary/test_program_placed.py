"""Putting the hook program in place: versions, links, launchers, and finding what was tampered with."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from binary_rig import TABLE

from guardhook.core.folders import Folders
from guardhook.dialects import table
from guardhook.harness import contents, intact, launcher, program
from guardhook.harness.contents import Item

NAMES = sorted(f"{dialect}.{mode}" for dialect in table.MODULES for mode in ("enforce", "observe"))


def items(text: str = "one", *, form: str = "c") -> list[Item]:
    """A small program. Its launcher is a script, which is enough for what is tested here."""
    made = [
        Item("guardhook-hook", 0o500, f"#!/bin/sh\necho {text}\n".encode()),
        Item("regex/_regex.so", 0o400, b"engine"),
        Item("policies/DIGEST", 0o400, text.encode()),
    ]
    if form == "c":
        return [*made, Item("launcher", 0o500, b"#!/bin/sh\necho launched\n")]
    template = (launcher.source_folder() / "launcher.sh.in").read_text()
    return [*made, Item("launcher.sh", 0o400, launcher.render_sh(TABLE, template).encode(), note="no compiler")]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    base = tmp_path / "home"
    return Folders(str(base / "config"), str(base / "data"), "/etc/guardhook")


def version_folder(folders: Folders) -> Path:
    return Path(folders.data, "versions", program.current_version(folders) or "none")


def test_layout(folders: Folders) -> None:
    placed = program.place(folders, items())
    base = Path(folders.data)
    assert os.readlink(base / "current") == f"versions/{placed.version}"
    assert sorted(os.listdir(base / "bin")) == NAMES
    assert subprocess.run([base / "current" / "guardhook-hook"], capture_output=True).stdout == b"one\n"
    assert (version_folder(folders) / "folders").read_text() == (
        f"config={folders.config}\ndata={folders.data}\nsystem=/etc/guardhook\n"
    )
    assert program.launcher_path(folders, "codex", "observe") == f"{folders.data}/bin/codex.observe"
    modes = {
        path.relative_to(base).as_posix(): stat.S_IMODE(path.lstat().st_mode)
        for path in [base, base / "versions", *version_folder(folders).rglob("*"), base / "bin" / "gemini.enforce"]
    }
    root = f"versions/{placed.version}"
    assert modes == {
        ".": 0o700, "versions": 0o700, "bin/gemini.enforce": 0o500, f"{root}/guardhook-hook": 0o500,
        f"{root}/regex": 0o500, f"{root}/regex/_regex.so": 0o400, f"{root}/policies": 0o500, f"{root}/policies/DIGEST": 0o400,
        f"{root}/folders": 0o400, f"{root}/MANIFEST": 0o400, f"{root}/launcher": 0o500,
    }  # fmt: skip
    assert program.verify(folders) == []


def test_again_changes_nothing(folders: Folders) -> None:
    first = program.place(folders, items())
    before = {path: path.lstat().st_mtime_ns for path in Path(folders.data).rglob("*") if path.name != "place.lock"}
    second = program.place(folders, items())
    after = {path: path.lstat().st_mtime_ns for path in Path(folders.data).rglob("*") if path.name != "place.lock"}
    assert (first.changed, second.changed, first.version) == (True, False, second.version)
    assert before == after


def test_upgrade_swaps_the_link_and_keeps_the_version_before(folders: Folders) -> None:
    versions = [program.place(folders, items(text)).version for text in ("one", "two", "three")]
    assert program.current_version(folders) == versions[2]
    assert sorted(os.listdir(Path(folders.data, "versions"))) == sorted(versions[1:])
    back = program.place(folders, items("two"))
    assert back.changed
    assert program.verify(folders) == []
    assert subprocess.run([Path(folders.data, "current", "guardhook-hook")], capture_output=True).stdout == b"two\n"


def test_unfinished_versions_are_cleaned_away(folders: Folders) -> None:
    program.place(folders, items())
    base = Path(folders.data)
    partial = base / "versions" / ".0123456789abcdef.1234.tmp"
    (partial / "regex").mkdir(parents=True)
    (partial / "regex" / "x").write_text("x")
    (partial / "regex").chmod(0o500)
    (base / "bin" / ".codex.enforce.1234.tmp").write_text("")
    (base / ".current.1234.tmp").symlink_to("versions/gone")
    program.place(folders, items())
    assert os.listdir(base / "versions") == [program.current_version(folders)]
    assert sorted(os.listdir(base / "bin")) == NAMES
    assert not os.path.lexists(base / ".current.1234.tmp")


def test_at_the_same_time(folders: Folders) -> None:
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda n: program.place(folders, items(str(n % 2))), range(16)))
    assert len({p.version for p in placed}) == 2
    assert program.verify(folders) == []
    assert len(os.listdir(Path(folders.data, "versions"))) == 2


def edit(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o600)
    path.write_bytes(data)
    path.chmod(mode)


def tamper_manifest(base: Path, version: Path) -> None:
    edit(version / "MANIFEST", (version / "MANIFEST").read_bytes().replace(b" 0400 ", b" 0500 ", 1))


def add(path: Path, data: bytes = b"x") -> None:
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    path.parent.chmod(0o700)
    path.write_bytes(data)
    path.parent.chmod(mode)


def replace(path: Path, target: str) -> None:
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    path.parent.chmod(0o700)
    path.unlink()
    path.symlink_to(target)
    path.parent.chmod(mode)


TAMPERING: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "hook program changed": (lambda b, v: edit(v / "guardhook-hook", b"#!/bin/sh\nexit 0\n"), "guardhook-hook was changed"),
    "library changed": (lambda b, v: edit(v / "regex/_regex.so", b"evil"), "_regex.so was changed"),
    "baked folders changed": (lambda b, v: edit(v / "folders", b"config=/x\ndata=/x\nsystem=/x\n"), "folders"),
    "file missing": (lambda b, v: (v.chmod(0o700), (v / "folders").unlink(), v.chmod(0o500)), "folders is missing"),
    "file added": (lambda b, v: add(v / "sitecustomize.py"), "sitecustomize.py does not belong there"),
    "file added below": (lambda b, v: add(v / "regex" / "_json.so"), "_json.so does not belong there"),
    "manifest changed": (tamper_manifest, "MANIFEST was changed"),
    "made writable": (lambda b, v: (v / "guardhook-hook").chmod(0o755), "mode 0755 instead of 0500"),
    "folder made writable": (lambda b, v: v.chmod(0o777), "mode 0777"),
    "file became a link": (lambda b, v: replace(v / "regex/_regex.so", "/tmp/evil.so"), "not a regular file"),
    "launcher replaced": (lambda b, v: edit(b / "bin/gemini.enforce", b"#!/bin/sh\n"), "launcher was changed"),
    "launcher a link": (lambda b, v: replace(b / "bin/codex.enforce", "claude-code.observe"), "codex.enforce is not a"),
    "launcher missing": (lambda b, v: (b / "bin/codex.enforce").unlink(), "codex.enforce is missing"),
    "launcher not executable": (lambda b, v: (b / "bin/codex.enforce").chmod(0o400), "codex.enforce has mode 0400"),
    "launcher added": (lambda b, v: add(b / "bin" / "python"), "python does not belong there"),
    "current elsewhere": (lambda b, v: replace(b / "current", "/tmp/evil"), "current is missing or is not a link"),
    "current gone": (lambda b, v: (b / "current").unlink(), "current is missing"),
    "data folder open to others": (lambda b, v: b.chmod(0o777), "has mode 0777"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found_and_put_right(folders: Folders, what: str) -> None:
    program.place(folders, items())
    change, said = TAMPERING[what]
    change(Path(folders.data), version_folder(folders))
    problems = program.verify(folders)
    assert any(said in problem for problem in problems), problems
    if what == "data folder open to others":
        with pytest.raises(program.ProgramError):
            program.place(folders, items())
        return
    program.place(folders, items())
    left = program.verify(folders)
    if what == "launcher added":  # not ours to delete
        Path(folders.data, "bin", "python").unlink()
        left = program.verify(folders)
    assert left == []


def test_nothing_placed_yet(folders: Folders) -> None:
    assert program.current_version(folders) is None
    assert program.verify(folders) != []
    assert program.remove(folders) == []


def test_remove_takes_only_what_place_put_there(folders: Folders) -> None:
    program.place(folders, items())
    base = Path(folders.data)
    (base / "journal").mkdir()
    (base / "journal" / "x.jsonl").write_text("line\n")
    (base / "bin" / "mine.txt").write_text("mine")
    removed = program.remove(folders)
    assert str(base / "versions") in removed
    left = sorted(path.relative_to(base).as_posix() for path in base.rglob("*"))
    assert left == ["bin", "bin/mine.txt", "journal", "journal/x.jsonl"]


def test_links_in_the_way_are_not_followed(folders: Folders, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("precious")
    Path(folders.data).mkdir(parents=True, mode=0o700)
    Path(folders.data, "versions").symlink_to(elsewhere)
    with pytest.raises(program.ProgramError):
        program.place(folders, items())
    program.remove(folders)
    assert os.listdir(elsewhere) == ["precious"]


def test_sh_launchers_know_their_own_path(folders: Folders) -> None:
    placed = program.place(folders, items(form="sh"))
    assert (placed.form, placed.note) == ("sh", "no compiler")
    text = Path(folders.data, "bin", "codex.enforce").read_text()
    assert f"self='{folders.data}/bin/codex.enforce'" in text
    assert Path(folders.data, "run").is_dir()
    assert program.verify(folders) == []
    edit(Path(folders.data, "bin", "codex.enforce"), Path(folders.data, "bin", "gemini.enforce").read_bytes())
    assert any("codex.enforce" in problem for problem in program.verify(folders))


def test_shared_by_all_users(folders: Folders) -> None:
    placed = program.place(folders, items(), shared=True)
    base = Path(folders.data)
    assert not (Path(placed.folder) / "folders").exists()
    assert stat.S_IMODE((base / "bin" / "codex.enforce").stat().st_mode) == 0o555
    assert stat.S_IMODE(Path(placed.folder).stat().st_mode) == 0o555
    assert stat.S_IMODE(base.stat().st_mode) == 0o755
    assert program.verify(folders) == []
    (base / "bin" / "codex.enforce").chmod(0o775)
    assert program.verify(folders) != []
    with pytest.raises(program.ProgramError, match="can't be shared"):
        program.place(folders, items(form="sh"), shared=True)


def test_private_and_shared_versions_differ(folders: Folders) -> None:
    assert program.place(folders, items()).version != program.place(folders, items(), shared=True).version


def test_packed_program_is_unpacked_as_it_was() -> None:
    made = items()
    assert contents.unpack(contents.pack(made)) == made


def test_failures_are_said_in_words(folders: Folders) -> None:
    with pytest.raises(program.ProgramError, match="two files of one name"):
        program.place(folders, [*items(), Item("launcher", 0o500, b"")])
    broken = Folders(folders.config, folders.data + "\n", folders.system)
    with pytest.raises(program.ProgramError):
        program.place(broken, items())


@pytest.mark.skipif(os.name != "posix", reason="the source form is for POSIX systems")
def test_installed_from_source_it_judges(folders: Folders) -> None:
    """Launcher, sh script, this interpreter, the gate, the compiler."""
    placed = program.place(folders)
    assert program.verify(folders) == []
    assert placed.form in ("c", "sh")

    def ask(payload: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [program.launcher_path(folders, "claude-code", "enforce"), "PreToolUse"]
        env = {"PYTHONPATH": "/evil", "PYTHONHOME": "/evil"}
        for _ in range(4):  # on a crowded machine compiling takes too long at times, and the block is right
            done = subprocess.run(command, input=payload, capture_output=True, env=env, timeout=30)
            if b"compiling the policies took longer" not in done.stderr:
                break
        return done

    call = (
        b'{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"/h/.claude/projects/p/s.jsonl","cwd":"/",'
    )
    call += b'"tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"true"}}'
    passed = ask(call)
    assert (passed.returncode, passed.stdout, passed.stderr) == (0, b"", b"")
    assert list(Path(folders.data, "journal").rglob("*.jsonl"))
    broken = ask(call[:-1])
    assert broken.returncode == 2
    assert b'"deny"' in broken.stdout
    assert b"gave no verdict" not in broken.stderr


def test_policies_are_compiled_ahead_of_the_first_call(folders: Folders) -> None:
    program.prepare(folders)
    file = Path(folders.data, "compiled", "policies.bin")
    before = file.stat().st_mtime_ns
    program.prepare(folders)
    assert file.stat().st_mtime_ns == before
    Path(folders.user_policies).mkdir(parents=True)
    Path(folders.user_policies, "broken.toml").write_text("[[policy")
    program.prepare(folders)  # said by the hook, with the file's name


def test_windows_registers_the_hook_program_itself(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intact, "WINDOWS", True)
    made = [Item("guardhook-hook.exe", 0o500, b"MZ")]
    placed = program.place(folders, made)
    assert placed.form == "none"
    assert os.listdir(Path(folders.data, "bin")) == []
    path = program.launcher_path(folders, "codex", "enforce")
    assert path == os.path.join(folders.data, "current", "guardhook-hook.exe")
    assert Path(path).read_bytes() == b"MZ"


def test_interpreter_that_is_a_script_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python"
    shim.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(shim))
    with pytest.raises(ValueError, match="script"):
        contents.source_contents()
