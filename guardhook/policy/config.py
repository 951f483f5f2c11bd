"""The parts of config.toml that the hook needs: `[gate]` and `[capture]`. Cold.

The system file gives defaults, the user's file changes them; where the system file (or one of its sections) says `locked = true`,
it wins. Other sections belong to other commands and are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from guardhook.core import limits
from guardhook.core.event import EVENTS
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.policy.load import Loaded

SECTIONS = ("gate", "capture")
Mode = Literal["redacted", "full", "hashed", "none"]


class Gate(msgspec.Struct, forbid_unknown_fields=True):
    """preset: how strictly is judged. watchdog: seconds until a hook gives up and blocks. oversize: largest payload in bytes."""

    preset: Literal["observe", "balanced", "strict"] | None = None
    watchdog: float | int | None = None
    oversize: int | None = None
    locked: bool = False


class Capture(msgspec.Struct):
    """mode: what is kept of payloads. redaction: the same for single canonical events."""

    mode: Mode | None = None
    redaction: dict[str, Mode] = {}
    locked: bool = False


class ConfigFile(msgspec.Struct):
    gate: Gate = msgspec.field(default_factory=Gate)
    capture: Capture = msgspec.field(default_factory=Capture)
    locked: bool = False


def read(folders: Folders, loaded: Loaded) -> dict[str, object]:
    """The settings as the compiled file keeps them. Errors go to loaded.errors."""
    from guardhook.policy.load import PolicyError, _file, line_of

    read_files = []
    for folder in (folders.system, folders.config):
        path = f"{folder}/config.toml"
        found = _file(loaded, path, ConfigFile)
        if found is None:
            read_files.append(ConfigFile())
            continue
        try:
            _check(found[0])
            read_files.append(found[0])
        except _Wrong as wrong:
            loaded.errors.append(PolicyError(path, line_of(found[1], wrong.where), wrong.where, str(wrong)))
            read_files.append(ConfigFile())
    system, user = read_files
    gate = _layered(system.gate, user.gate, system.locked or system.gate.locked, ("preset", "watchdog", "oversize"))
    loaded.system_preset = system.gate.preset
    capture_locked = system.locked or system.capture.locked
    capture = _layered(system.capture, user.capture, capture_locked, ("mode",))
    redaction: dict[str, str] = {**system.capture.redaction}
    for event, mode in user.capture.redaction.items():
        if not (capture_locked and (event in redaction or system.capture.mode is not None)):
            redaction[event] = mode
    return {
        "preset": gate["preset"] or "balanced",
        "watchdog": float(gate["watchdog"] or limits.WATCHDOG_ENFORCING),  # type: ignore[arg-type]
        "oversize": gate["oversize"] or limits.PAYLOAD_ENFORCING,
        "mode": capture["mode"] or "redacted",
        "redaction": redaction,
    }


def _layered(system: object, user: object, locked: bool, keys: tuple[str, ...]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key in keys:
        high, low = getattr(system, key), getattr(user, key)
        out[key] = high if (locked and high is not None) or low is None else low
    return out


def problem(section: str, table: object) -> str | None:
    """Why a table can't stand as `[gate]` or `[capture]`; None when it can."""
    from guardhook.policy.load import plain

    try:
        _check(msgspec.convert({section: table}, ConfigFile))
    except _Wrong as wrong:
        return str(wrong)
    except msgspec.ValidationError as error:
        return plain(str(error).partition(" - at `$")[0])
    return None


class _Wrong(Exception):
    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.where = where


def _check(found: ConfigFile) -> None:
    seconds = found.gate.watchdog
    if seconds is not None and not 0.5 <= seconds < limits.LAUNCHER_ENFORCING:
        raise _Wrong("gate.watchdog", f"must be at least 0.5 and below {limits.LAUNCHER_ENFORCING} seconds")
    size = found.gate.oversize
    if size is not None and not 64 * 1024 <= size <= limits.PAYLOAD_ENFORCING:
        raise _Wrong("gate.oversize", f"must lie between {64 * 1024} and {limits.PAYLOAD_ENFORCING} bytes")
    for event in found.capture.redaction:
        if event not in EVENTS:
            raise _Wrong(f"capture.redaction.{event}", f"no such event; use one of {', '.join(sorted(EVENTS))}")
