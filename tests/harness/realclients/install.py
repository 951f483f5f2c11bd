"""Installs the clients of versions.toml from npm into a cache folder, once per machine, safely from parallel test workers.

The folder is GUARDHOOK_CLIENTS, by default ~/.cache/guardhook-clients. Which registry is used is npm's own configuration.
Install scripts never run: the packages carry their programs ready-made.
"""

from __future__ import annotations

import fcntl
import functools
import os
import platform
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSIONS = Path(__file__).resolve().parent.parent / "versions.toml"
READY = ".installed"
# As the test run was started: single tests run with another HOME, npm's configuration and our cache do not.
ENVIRONMENT = dict(os.environ)
HOME = Path.home()
NPM_SECONDS = 600


class Unavailable(Exception):
    """The client can't be had on this machine; the text says why."""


@dataclass(frozen=True)
class Pin:
    """One row of versions.toml. blocking is False for the newest version, which may differ from what was measured."""

    row: str
    dialect: str
    version: str
    packages: tuple[str, ...]
    program: str
    node: int | None
    blocking: bool = True

    def fill(self, template: str, version: str) -> str:
        return template.format(version=version, os=_os_name(), cpu=_cpu_name())


@dataclass(frozen=True)
class Installed:
    """A client on disk: the version that it is, and the words that start it."""

    pin: Pin
    version: str
    argv: tuple[str, ...]


def rows(newest: bool = False) -> dict[str, Pin]:
    """The rows of versions.toml by id; with newest also `<id>@newest` for the rows that want one."""
    table = tomllib.loads(VERSIONS.read_text("utf-8"))
    found: dict[str, Pin] = {}
    for row, entry in table.items():
        if row == "node":
            continue
        pin = Pin(
            row, entry["dialect"], entry["version"], tuple(entry["packages"]), entry["program"], entry.get("node")
        )
        found[row] = pin
        if newest and entry.get("newest"):
            found[row + "@newest"] = Pin(
                row + "@newest", pin.dialect, "latest", pin.packages, pin.program, pin.node, blocking=False
            )
    return found


def install(pin: Pin) -> Installed:
    """Makes sure that the client is in the cache. Raises Unavailable, the second time without a second try."""
    outcome = _try(pin)
    if isinstance(outcome, Unavailable):
        raise outcome
    return outcome


@functools.cache
def _try(pin: Pin) -> Installed | Unavailable:
    try:
        return _install(pin)
    except Unavailable as error:
        return error


def _install(pin: Pin) -> Installed:
    version = _newest_version(pin) if pin.version == "latest" else pin.version
    folder = _fetch(pin, version)
    program = folder / pin.fill(pin.program, version)
    if not program.exists():
        raise Unavailable(f"{pin.row} {version}: npm installed no {program.name}")
    if pin.node is None:
        program.chmod(program.stat().st_mode | 0o555)
        return Installed(pin, version, (str(program),))
    return Installed(pin, version, (_node(pin.node), str(program)))


def cache() -> Path:
    """Where the clients are kept between test runs."""
    chosen = ENVIRONMENT.get("GUARDHOOK_CLIENTS")
    return Path(chosen).absolute() if chosen else HOME / ".cache" / "guardhook-clients"


def _fetch(pin: Pin, version: str) -> Path:
    name = pin.row.partition("@")[0].removesuffix("-old")
    folder = cache() / f"{name}-{version}"
    with _locked(folder):
        if not (folder / READY).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "package.json").write_text('{"private": true}\n')
            packages = [pin.fill(package, version) for package in pin.packages]
            # --force: some packages name a newer Node.js than runs npm here; the client gets its own.
            _npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--force", *packages], folder)
            (folder / READY).write_text("\n".join(packages) + "\n")
    return folder


@functools.cache
def _newest_version(pin: Pin) -> str:
    package = pin.fill(pin.packages[0], "latest")
    answer = _npm(["view", package, "version"], Path.cwd())
    version = answer.strip().splitlines()[-1].strip("'\" ") if answer.strip() else ""
    if not version or "/" in version:
        raise Unavailable(f"{pin.row}: npm names no newest version of {package}")
    return version


@functools.cache
def _node(oldest: int) -> str:
    """A Node.js of at least this major version: the machine's, else one from npm."""
    own = shutil.which("node")
    if own:
        answer = subprocess.run([own, "--version"], capture_output=True, text=True, timeout=60)
        major = answer.stdout.strip().lstrip("v").partition(".")[0]
        if major.isdigit() and int(major) >= oldest:
            return own
    entry = tomllib.loads(VERSIONS.read_text("utf-8"))["node"]
    pin = Pin("node", "node", entry["version"], tuple(entry["packages"]), entry["program"], None)
    return install(pin).argv[0]


def _npm(arguments: list[str], folder: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    try:
        done = subprocess.run(
            [npm, *arguments], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=NPM_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm {arguments[0]} did not finish in {NPM_SECONDS} s") from None
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        raise Unavailable(f"npm {arguments[0]} failed: {' / '.join(told[:3])[:300]}")
    return done.stdout


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One installer at a time per folder, across processes; the lock goes with the process."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.parent / f".{folder.name}.lock", os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        raise Unavailable(f"the cache folder can't be written: {error}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _os_name() -> str:
    return {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), platform.system().lower())


def _cpu_name() -> str:
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
