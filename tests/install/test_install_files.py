"""Replacing files safely: links, owners, races, faults."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from install_rig import Person, put, tree

from guardhook.harness import files as module
from guardhook.harness.apply import files_of
from guardhook.harness.errors import HarnessError

D = "claude-code"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root can write system places")


def test_a_link_inside_the_home_is_followed_and_stays(person: Person) -> None:
    real = put(person.home / "dotfiles/claude.json", b'{"a": 1}\n')
    link = person.home / ".claude/settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    person.install(D)
    assert link.is_symlink() and b"claude-code.enforce" in real.read_bytes()
    person.uninstall(D)
    assert link.is_symlink() and real.read_bytes() == b'{"a": 1}\n'


def test_a_linked_folder_inside_the_home_is_followed(person: Person) -> None:
    (person.home / "dotfiles/claude").mkdir(parents=True)
    (person.home / ".claude").symlink_to("dotfiles/claude")
    person.install(D)
    assert (person.home / "dotfiles/claude/settings.json").exists()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_home_is_refused(person: Person, what: str) -> None:
    outside = put(person.base / "outside/settings.json", b"{}")
    if what == "file":
        (person.home / ".claude").mkdir()
        (person.home / ".claude/settings.json").symlink_to(outside)
    else:
        (person.home / ".claude").symlink_to(outside.parent)
    before = tree(person.base)
    for dry_run in (True, False):
        with pytest.raises(HarnessError, match="out of your home"):
            person.install(D, dry_run=dry_run)
    assert tree(person.base) == before


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_project_may_not_use_links_at_all(person: Person, what: str) -> None:
    inside = put(person.project / "real/settings.local.json", b"{}")
    if what == "file":
        (person.project / ".claude").mkdir()
        (person.project / ".claude/settings.local.json").symlink_to(inside)
    else:
        (person.project / ".claude").symlink_to("real")
    before = tree(person.base)
    with pytest.raises(HarnessError, match="link"):
        person.install(D, "project")
    assert tree(person.base) == before


def test_a_link_that_leads_nowhere_is_judged_by_where_it_leads(person: Person) -> None:
    (person.home / ".claude").mkdir()
    (person.home / ".claude/settings.json").symlink_to(person.base / "outside.json")
    with pytest.raises(HarnessError, match="out of your home"):
        person.install(D)
    assert not (person.base / "outside.json").exists()


def test_a_hard_linked_file_is_refused(person: Person) -> None:
    path = put(person.home / ".claude/settings.json", b"{}")
    os.link(path, person.base / "other-name")
    with pytest.raises(HarnessError, match="hard links"):
        person.install(D)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_only_regular_files_are_read(person: Person, kind: str) -> None:
    path = person.home / ".claude/settings.json"
    path.parent.mkdir()
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    with pytest.raises(HarnessError, match="not a regular file"):
        person.install(D)


def test_a_file_of_absurd_size_is_refused(person: Person) -> None:
    put(person.home / ".claude/settings.json", b" " * (module.MOST + 1))
    with pytest.raises(HarnessError, match="larger"):
        person.install(D)


@pytest.mark.parametrize("change", ["content", "replaced", "appeared", "removed"])
def test_a_change_by_others_between_reading_and_writing_wins(
    person: Person, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = person.home / ".claude/settings.json"
    if change != "appeared":
        put(path, b'{"mine": 1}')
    real_fsync = os.fsync

    def meanwhile(fd: int) -> None:  # the last thing before the new file takes its place
        real_fsync(fd)
        if change == "replaced":  # same bytes, another file
            put(path.with_name("new"), path.read_bytes())
            os.replace(path.with_name("new"), path)
        elif change == "removed":
            path.unlink()
        else:
            put(path, b'{"theirs": 2}')

    monkeypatch.setattr(module.os, "fsync", meanwhile)
    with pytest.raises(HarnessError, match="changed by somebody else"):
        person.install(D)
    monkeypatch.undo()
    expected = {"content": b'{"theirs": 2}', "appeared": b'{"theirs": 2}', "replaced": b'{"mine": 1}'}
    assert (path.read_bytes() if path.exists() else None) == expected.get(change)
    assert [p.name for p in path.parent.iterdir()] == ([] if change == "removed" else ["settings.json"])


@pytest.mark.parametrize("fault", ["write", "fsync", "replace"])
def test_a_fault_leaves_the_old_file_and_no_litter(person: Person, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    path = put(person.home / ".claude/settings.json", b'{"mine": 1}')

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, fault, full)
    with pytest.raises(HarnessError, match="no space left"):
        person.install(D)
    monkeypatch.undo()
    assert path.read_bytes() == b'{"mine": 1}' and [p.name for p in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_a_read_only_folder_is_told(person: Person) -> None:
    path = put(person.home / ".claude/settings.json", b"{}")
    path.parent.chmod(0o500)
    try:
        with pytest.raises(HarnessError, match="denied"):
            person.install(D)
    finally:
        path.parent.chmod(0o700)


@needs_root
def test_a_file_of_another_user_is_refused(person: Person) -> None:
    path = put(person.home / ".claude/settings.json", b"{}")
    os.chown(path, 12345, 12345)
    with pytest.raises(HarnessError, match="another user"):
        person.install(D)


@needs_root
def test_system_scope_writes_a_file_that_all_can_read(person: Person) -> None:
    person.install(D, "system")
    path = person.root / "etc/claude-code/managed-settings.json"
    assert path.stat().st_mode & 0o777 == 0o644 and path.parent.stat().st_mode & 0o777 == 0o755
    person.uninstall(D, "system")
    assert list(person.root.rglob("*")) == []


@needs_root
@pytest.mark.parametrize("how", ["group-writable folder", "foreign folder", "foreign file", "foreign link"])
def test_system_scope_refuses_what_others_can_write(person: Person, how: str) -> None:
    path = put(person.root / "etc/claude-code/managed-settings.json", b"{}")
    if how == "group-writable folder":
        path.parent.chmod(0o775)
    elif how == "foreign folder":
        os.chown(path.parent, 12345, 12345)
    elif how == "foreign file":
        os.chown(path, 12345, 12345)
    else:
        path.rename(path.with_name("real"))
        path.symlink_to("real")
        os.lchown(path, 12345, 12345)
    with pytest.raises(HarnessError, match="others than root"):
        person.install(D, "system")


@pytest.mark.skipif(ROOT, reason="needs another user than root")
def test_system_scope_needs_root(person: Person) -> None:
    with pytest.raises(HarnessError, match="only root"):
        person.install(D, "system")


def test_what_could_not_be_written_is_not_remembered_as_done(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    put(person.home / ".claude/settings.json", b"{}")
    monkeypatch.setattr(
        module.os, "replace", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EROFS, "Read-only file system"))
    )
    with pytest.raises(HarnessError):
        person.install(D)
    monkeypatch.undo()
    assert not person.data.exists()


def test_reading_twice_looks_once(person: Person) -> None:
    path = put(person.home / "x.json", b"{}")
    found = files_of(person.machine, "user")
    assert found.read(str(path)) == b"{}"
    Path(path).write_bytes(b"[]")
    assert found.read(str(path)) == b"{}"
    found.forget(str(path))
    assert found.read(str(path)) == b"[]"


def test_a_folder_that_is_swapped_for_a_link_while_writing_leads_nowhere(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a repository's own process could try: our edit stays in the folder that was looked at."""
    folder = put(person.project / ".claude/settings.local.json", b"{}").parent
    outside = put(person.base / "outside/settings.local.json", b"{}").parent
    real_fsync = os.fsync
    swapped: list[int] = []

    def swap(fd: int) -> None:
        real_fsync(fd)
        if not swapped:
            swapped.append(fd)
            folder.rename(person.project / "moved")
            folder.symlink_to(outside)

    monkeypatch.setattr(module.os, "fsync", swap)
    try:
        person.install(D, "project")
    except HarnessError:
        pass
    assert swapped and tree(outside) == {"settings.local.json": b"{}"}


def test_a_folder_that_was_swapped_before_writing_is_refused(person: Person) -> None:
    path = put(person.project / ".claude/settings.local.json", b"{}")
    found = files_of(person.machine, "project")
    found.read(str(path))
    path.parent.rename(person.project / "moved")
    path.parent.symlink_to(person.project / "moved")
    with pytest.raises(HarnessError, match="link"):
        found.write(str(path), b"{ }")
    assert (person.project / "moved/settings.local.json").read_bytes() == b"{}"
