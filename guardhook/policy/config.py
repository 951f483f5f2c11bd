"""The parts of config.toml that the hook needs: `[gate]`, `[capture]`, and of `[forensics]` the audit trail and redaction. Cold.

The system file gives defaults, the user's file changes them; where the system file (or one of its sections) says `locked = true`,
it wins. Other sections belong to other commands and are left alone.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from guardhook.core import limits
from guardhook.core.event import EVENTS
from guardhook.core.folders import Folders
from guardhook.policy import layers, settings
from guardhook.policy.declared import digest
from guardhook.policy.layers import Loaded
from guardhook.policy.regexes import secret_problem
from guardhook.policy.tomlfile import PolicyError, line_of, plain

SECTIONS = ("gate", "capture", "forensics")
Mode = Literal["redacted", "full", "hashed", "none"]
LISTS = ("custom", "off")  # keys of a redaction table that are no events
# Redaction rules that may be switched off (`off`); the others are what every version redacts.
OPTIONAL_RULES = (
    "argument", "assigned", "authorization", "cookie", "github_token", "gitlab_token", "google_key", "netrc", "slack_token", "stripe_key",
    "telegram_token", "token", "url_password", "webhook",
)  # fmt: skip


class Gate(msgspec.Struct, forbid_unknown_fields=True):
    """preset: how strictly is judged. watchdog: seconds until a hook gives up and blocks. oversize: largest payload in bytes."""

    preset: Literal["observe", "balanced", "strict"] | None = None
    watchdog: float | int | None = None
    oversize: int | None = None
    locked: bool = False


class Capture(msgspec.Struct):
    """mode: what is kept of payloads. redaction: the same for single canonical events; `custom` in it lists patterns of the user's own, `off` names
    of further rules to leave out."""

    mode: Mode | None = None
    redaction: dict[str, Mode | list[str]] = {}
    locked: bool = False


class Forensics(msgspec.Struct):
    """The audit trail, and redaction as in `[capture]`. Other keys are for the commands that render rollouts."""

    rollout_dir: str | None = None
    audit_trail_enabled: bool | None = None
    audit_tools: list[str] | None = None
    audit_exceptions: list[str] | None = None
    redaction: dict[str, Mode | list[str]] = {}
    locked: bool = False


class ConfigFile(msgspec.Struct):
    gate: Gate = msgspec.field(default_factory=Gate)
    capture: Capture = msgspec.field(default_factory=Capture)
    forensics: Forensics = msgspec.field(default_factory=Forensics)
    locked: bool = False


def read(folders: Folders, loaded: Loaded) -> dict[str, object]:
    """The settings as the compiled file keeps them. Errors go to loaded.errors."""
    read_files = []
    for folder in (folders.system, folders.config):
        path = f"{folder}/config.toml"
        found = layers.read(loaded, path, ConfigFile)
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
    redaction: dict[str, str] = {}
    for given, locked in ((system, False), (user, capture_locked)):
        # What is said of an event in [capture] wins over what [forensics] says of it.
        for event, mode in (*given.forensics.redaction.items(), *given.capture.redaction.items()):
            if isinstance(mode, str) and not (locked and (event in redaction or system.capture.mode is not None)):
                redaction[event] = mode
    audit = _audit(system, user, folders)
    declared = _declared(folders)
    loaded.secrets = secrets(system, user)
    return {
        "preset": gate["preset"] or "balanced",
        "watchdog": float(gate["watchdog"] or limits.WATCHDOG_ENFORCING),  # type: ignore[arg-type]
        "oversize": gate["oversize"] or limits.PAYLOAD_ENFORCING,
        "mode": capture["mode"] or "redacted",
        "redaction": redaction,
        **({} if audit is None else {"audit": audit}),
        **({} if declared is None else {"declared": declared}),
    }


def _declared(folders: Folders) -> str | None:
    """The digest of the declared checks; what is wrong with a file is told elsewhere."""
    try:
        return digest(settings.read(folders).get("account.verify"))
    except settings.SettingsError:
        return None


def _audit(system: ConfigFile, user: ConfigFile, folders: Folders) -> dict[str, object] | None:
    """What the hook needs for the audit trail; None when it is off."""
    locked = system.locked or system.forensics.locked
    keys = ("rollout_dir", "audit_trail_enabled", "audit_tools", "audit_exceptions")
    given = _layered(system.forensics, user.forensics, locked, keys)
    if not given["audit_trail_enabled"]:
        return None
    return {
        "folder": audit_folder(given["rollout_dir"], folders),
        "more": tuple(name.casefold() for name in given["audit_tools"] or ()),  # type: ignore[attr-defined]
        "less": tuple(name.casefold() for name in given["audit_exceptions"] or ()),  # type: ignore[attr-defined]
    }


def audit_folder(rollout_dir: object, folders: Folders) -> str:
    """Where the audit trail lies: in the rollout folder, or in one of its own when there is none."""
    if isinstance(rollout_dir, str) and rollout_dir.strip():
        return os.path.realpath(
            os.path.expanduser(rollout_dir)
        )  # hooks follow no links, and whoever named one meant where it leads
    return f"{folders.data}/rollouts"


def secrets(system: ConfigFile, user: ConfigFile) -> tuple[list[str], list[str]]:
    """Patterns for secrets beside the shipped rules, and rules to leave out. Both files add; where the system's is locked, the user leaves none out."""
    custom: dict[str, None] = {}
    off: dict[str, None] = {}
    for found in (system, user):
        for section in (found.forensics, found.capture):
            custom |= dict.fromkeys(_list(section, "custom"))
            locked = found is user and (system.locked or system.capture.locked or system.forensics.locked)
            off |= dict.fromkeys([] if locked else _list(section, "off"))
    return list(custom), list(off)


def _list(section: Capture | Forensics, name: str) -> list[str]:
    value = section.redaction.get(name)
    return value if isinstance(value, list) else []


def _layered(system: object, user: object, locked: bool, keys: tuple[str, ...]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key in keys:
        high, low = getattr(system, key), getattr(user, key)
        out[key] = high if (locked and high is not None) or low is None else low
    return out


def problem(section: str, table: object) -> str | None:
    """Why a table can't stand as `[gate]` or `[capture]`; None when it can."""
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
    for section, redaction in (("capture", found.capture.redaction), ("forensics", found.forensics.redaction)):
        for event, mode in redaction.items():
            where = f"{section}.redaction.{event}"
            if event not in EVENTS and event not in LISTS:
                raise _Wrong(where, f"no such event; use one of {', '.join(sorted(EVENTS))}")
            if isinstance(mode, list) != (event in LISTS):
                raise _Wrong(where, "a list of texts is needed" if event in LISTS else "redacted, full, hashed or none is needed")  # fmt: skip
        for text in _list(found.capture if section == "capture" else found.forensics, "custom"):
            said = secret_problem(text)
            if said is not None:
                raise _Wrong(f"{section}.redaction.custom", said)
        for name in _list(found.capture if section == "capture" else found.forensics, "off"):
            if name not in OPTIONAL_RULES:
                raise _Wrong(f"{section}.redaction.off", f"{name!r} can't be switched off; these can: {', '.join(OPTIONAL_RULES)}")  # fmt: skip
    folder = found.forensics.rollout_dir
    if found.forensics.audit_trail_enabled and folder and folder.strip() and not folder.startswith(("/", "~")):
        raise _Wrong("forensics.rollout_dir", "an absolute path is needed: hooks run in many folders")
