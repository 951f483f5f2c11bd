"""install.sh: checks what it is given, puts it in place, updates, removes. The executable is a fake, the files are real."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "install" / "install.sh"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="install.sh is for POSIX systems")


def fake(version: str, *, uninstalls: bool = True) -> bytes:
    return (
        f'#!/bin/sh\ncase $1 in\n--version) echo "guardhook, version {version}" ;;\n'
        f'uninstall) echo "$@" > "${{0%/*}}/../uninstalled"; exit {0 if uninstalls else 1} ;;\nesac\n'
    ).encode()


class Place:
    """A download folder and a prefix."""

    def __init__(self, root: Path) -> None:
        self.downloads = root / "down loads"
        self.prefix = root / "pre fix"
        self.downloads.mkdir()
        self.target = self.prefix / "bin" / "guardhook"

    def offer(self, data: bytes, *, listed: bytes | None = None) -> Path:
        path = self.downloads / "guardhook"
        path.write_bytes(data)
        digest = hashlib.sha256(data if listed is None else listed).hexdigest()
        (self.downloads / "SHA256SUMS").write_text(f"{'0' * 64}  launcher\n{digest}  guardhook\n")
        return path

    def run(self, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(SCRIPT), *words]
        if "--prefix" not in words:
            command += ["--prefix", str(self.prefix)]
        environment = {"PATH": "/usr/bin:/bin"} if env is None else env
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_checked_file_is_put_in_place(place: Place) -> None:
    source = place.offer(fake("1.0"))
    done = place.run("--from", str(source))
    assert done.returncode == 0, done.stderr
    assert place.target.read_bytes() == fake("1.0")
    assert stat.S_IMODE(place.target.stat().st_mode) == 0o755
    assert "is in place (guardhook, version 1.0)" in done.stderr
    assert "is not in PATH" in done.stderr
    assert os.listdir(place.target.parent) == ["guardhook"]


def test_again_and_update(place: Place) -> None:
    place.run("--from", str(place.offer(fake("1.0"))))
    again = place.run("--from", str(place.offer(fake("1.0"))))
    assert "is up to date" in again.stderr
    update = place.run("--from", str(place.offer(fake("2.0"))))
    assert update.returncode == 0
    assert place.target.read_bytes() == fake("2.0")


def test_given_hash_counts_more_than_the_list(place: Place) -> None:
    source = place.offer(fake("1.0"), listed=b"other")
    digest = hashlib.sha256(fake("1.0")).hexdigest().upper()
    assert place.run("--from", str(source), "--sha256", digest).returncode == 0


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("wrong hash in the list", "expected"),
        ("wrong hash given", "expected"),
        ("no list", "no SHA256SUMS"),
        ("not in the list", "says nothing about"),
        ("no such file", "there is no file"),
        ("does not run", "does not run"),
        ("address without a hash", "--url needs --sha256"),
        ("address that anybody on the way can answer", "https://"),
    ],
)
def test_refused_and_nothing_left_behind(place: Place, case: str, said: str) -> None:
    source = place.offer(fake("1.0"), listed=b"other" if case == "wrong hash in the list" else None)
    words = ["--from", str(source)]
    if case == "wrong hash given":
        words += ["--sha256", "0" * 64]
    elif case == "no list":
        (place.downloads / "SHA256SUMS").unlink()
    elif case == "not in the list":
        (place.downloads / "SHA256SUMS").write_text(f"{'0' * 64}  something-guardhook\n")
    elif case == "no such file":
        source.unlink()
    elif case == "does not run":
        words = ["--from", str(place.offer(b"#!/bin/sh\nexit 1\n"))]
    elif case == "address without a hash":
        words = ["--url", "https://localhost/guardhook"]
    elif case == "address that anybody on the way can answer":
        words = ["--url", "http://localhost/guardhook", "--sha256", "0" * 64]
    done = place.run(*words)
    assert done.returncode == 1
    assert said in done.stderr and "can't be fetched" not in done.stderr
    assert not place.target.exists()


def test_a_refused_update_leaves_the_old_one(place: Place) -> None:
    place.run("--from", str(place.offer(fake("1.0"))))
    place.run("--from", str(place.offer(fake("2.0"), listed=b"other")))
    assert place.target.read_bytes() == fake("1.0")


def test_remove_unregisters_first(place: Place) -> None:
    place.run("--from", str(place.offer(fake("1.0"))))
    done = place.run("--remove")
    assert done.returncode == 0, done.stderr
    assert not place.target.exists()
    assert (place.prefix / "uninstalled").read_text() == "uninstall --all\n"


def test_remove_stops_when_harnesses_are_still_registered(place: Place) -> None:
    place.run("--from", str(place.offer(fake("1.0", uninstalls=False))))
    done = place.run("--remove")
    assert done.returncode == 1
    assert place.target.exists()


def test_remove_of_nothing(place: Place) -> None:
    done = place.run("--remove")
    assert done.returncode == 1
    assert "there is no" in done.stderr


@pytest.mark.parametrize("words", [("--what",), ("--from",), ("--from", ""), ("--help",)])
def test_usage(place: Place, words: tuple[str, ...]) -> None:
    done = place.run("--prefix", "/nowhere", *words)
    assert done.returncode == 2
    assert "install.sh [--from FILE" in done.stderr


def test_without_home_and_prefix(place: Place) -> None:
    done = subprocess.run(
        ["sh", str(SCRIPT), "--remove"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60
    )
    assert done.returncode == 1
    assert "HOME is not set" in done.stderr


def test_home_is_the_default(place: Place, tmp_path: Path) -> None:
    source = place.offer(fake("1.0"))
    env = {"PATH": f"/usr/bin:/bin:{tmp_path}/.local/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", str(SCRIPT), "--from", str(source)], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".local" / "bin" / "guardhook").exists()
    assert "is not in PATH" not in done.stderr


def test_unwritable_prefix(place: Place) -> None:
    source = place.offer(fake("1.0"))
    place.prefix.write_text("a file")
    done = place.run("--from", str(source))
    assert done.returncode == 1
    assert "can't be made" in done.stderr
