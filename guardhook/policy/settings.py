"""config.toml for commands: every section, the system's file and the user's one on top. Cold.

The user's value wins, except where the system file (or its section) says `locked = true` and has a value itself: then that one holds.
KEYS lists what is known; whoever adds a setting adds a row. The parts that the hook needs are compiled by guardhook.policy.config.
"""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.policy import tomltext

FILE = "config.toml"
MOST_BYTES = 1 << 20


class SettingsError(Exception):
    """A config.toml that can't be used. path: the file; message: what is wrong, with the line where TOML knows it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


class Key(NamedTuple):
    """One setting. kind: text, secret, boolean, integer, number, choice, duration (30d), list (of texts) or table. name may end in `.*`: any key below.

    least and most bound numbers, both included.
    """

    name: str
    kind: str
    help: str
    default: object = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


KEYS: tuple[Key, ...] = (
    Key("gate.preset", "choice", "how strictly is judged", "balanced", ("observe", "balanced", "strict")),
    Key("gate.watchdog", "number", "seconds until a hook gives up and blocks", 3.0),
    Key("gate.oversize", "integer", "largest payload in bytes"),
    Key("capture.mode", "choice", "what is kept of payloads", "redacted", ("redacted", "full", "hashed", "none")),
    Key("capture.redaction.*", "choice", "the same for one canonical event", None, ("redacted", "full", "hashed", "none")),
    Key("capture.redaction.custom", "list", "patterns of secrets beside the shipped ones"),
    Key("capture.redaction.off", "list", "redaction rules to leave out; the eight basic ones stay"),
    Key("capture.retention", "duration", "how long gc keeps sessions, such as 90d"),
    Key("capture.idle_minutes", "number", "after how long without an event a running trace shows as timeout", 30.0, least=0.1, most=999_999),
    Key("forensics.audit_trail_enabled", "boolean", "keep a hash-chained audit trail", False),
    Key("forensics.audit_tools", "list", "further tools whose calls the audit trail keeps"),
    Key("forensics.audit_exceptions", "list", "tools whose calls it does not keep"),
    Key("forensics.redaction.*", "choice", "as capture.redaction", None, ("redacted", "full", "hashed", "none")),
    Key("forensics.redaction.custom", "list", "as capture.redaction.custom"),
    Key("forensics.redaction.off", "list", "as capture.redaction.off"),
    Key("forensics.rollout_dir", "text", "folder of rollout files that every reading command keeps up to date"),
    Key("forensics.close_on", "choice", "whether a rollout is a whole session or one turn", "session_end", ("session_end", "stop")),
    Key("forensics.cost_anomaly_detection_enabled", "boolean", "tell of steps that cost far more than those before", False),
    Key("forensics.cost_anomaly_step_multiplier", "number", "how many times the average that is", 2.0, least=0),
    Key("forensics.causal_graph_enabled", "boolean", "end rollouts with a graph of what led to what", False),
    Key("forensics.error_chain_enabled", "boolean", "tell before a failure what went before it", False),
    Key("forensics.error_context_depth", "integer", "how many calls and messages that shows", 10, least=1, most=1000),
    Key("forensics.context_window_snapshot_enabled", "boolean", "tell how full the context window is", False),
    Key("forensics.context_window_warning_threshold", "number", "warn from this part of it on; 0 never", 0.0, least=0, most=1000),
    Key("forensics.model_context_window", "integer", "how many tokens the context window has", 0, least=0),
    Key("forensics.trace_tool_decisions", "boolean", "tell which tools each turn chose", False),
    Key("forensics.detect_anti_patterns", "boolean", "tell when the same call is made a third time", False),
    Key("forensics.volatile_arguments", "list", "members of a call's input that make it no other call"),
    Key("forensics.trace_hook_mutations", "boolean", "tell what hooks changed or blocked", False),
    Key("forensics.capture_request_envelope", "boolean", "tell a digest of what models were asked", False),
    Key("forensics.prompt_hash_key", "secret", "makes these digests keyed ones"),
    Key("forensics.capture_reasoning", "boolean", "keep what models thought, where it is told", False),
    Key("serve.port", "integer", "port of `guardhook serve`", 7467, least=0, most=65535),
    Key("serve.token_file", "text", "file of the tokens that may ask `guardhook serve`"),
    Key("serve.allow_origins", "list", "origins of pages that may ask it"),
    Key("archive.to", "text", "where `archive save` writes: a folder, a zip file or a URL"),
    Key("archive.packed", "boolean", "write archives packed", False),
    Key("archive.standing", "boolean", "record how far each answer stands when a session stops", False),
    Key("identity.principal", "text", "for whom runs are; nothing else is ever taken for it"),
    Key("identity.tenant", "text", "to which tenant runs belong"),
    Key("account.verify", "table", "declared checks: id, label, argv or glob, covers_answer"),
    Key("account.names_and_numbers", "boolean", "look whether names and numbers of an answer stand in what it saw", False),
    Key("account.tool", "table", "what is known of tools' results: name, rows_at, empty_text, role"),
    Key("ai.provider", "choice", "who judges where a model is asked", "auto", ("auto", "anthropic", "google", "openai")),
    Key("ai.model", "text", "which model is asked; without it the provider's usual one"),
    Key("ai.max_tokens", "integer", "most tokens of one reply", 1024, least=1, most=1_000_000),
    Key("ai.timeout", "number", "seconds until an attempt is given up", 60.0, least=0.05, most=3600),
    Key("ai.api_keys.anthropic", "secret", "key for Anthropic; ANTHROPIC_API_KEY wins over it"),
    Key("ai.api_keys.google", "secret", "key for Google; GOOGLE_API_KEY wins over it"),
    Key("ai.api_keys.openai", "secret", "key for OpenAI; OPENAI_API_KEY wins over it"),
    Key("ai.base_urls.anthropic", "text", "another server that speaks Anthropic's interface"),
    Key("ai.base_urls.google", "text", "another server that speaks Google's interface"),
    Key("ai.base_urls.openai", "text", "another server that speaks OpenAI's interface, such as http://localhost:11434/v1"),
)  # fmt: skip


class Settings:
    """Both files together. Values are as TOML gives them, unchecked: whoever uses one checks it."""

    def __init__(self, system: dict[str, object], user: dict[str, object]) -> None:
        self._system = system
        self._user = user

    def section(self, name: str) -> dict[str, object]:
        """The merged section; empty when neither file has it. `locked` itself is left out."""
        return {key: self.get(f"{name}.{key}") for key in sorted({*_table(self._system, name), *_table(self._user, name)} - {"locked"})}  # fmt: skip

    def get(self, name: str, otherwise: object = None) -> object:
        """The value of a dotted name; tables of both files are merged."""
        high, low = _find(self._system, name), _find(self._user, name)
        if isinstance(high, dict) and isinstance(low, dict):
            first, second = (low, high) if self.locked(name) else (high, low)
            return {**first, **second}
        if high is not None and (low is None or self.locked(name)):
            return high
        return otherwise if low is None else low

    def origin(self, name: str) -> str | None:
        """`system`, `user`, or None when the value is the default."""
        high, low = _find(self._system, name), _find(self._user, name)
        if high is not None and (low is None or self.locked(name)):
            return "system"
        return None if low is None else "user"

    def locked(self, name: str) -> bool:
        """Whether the system's value of this name, if it has one, can't be changed by the user."""
        return self._system.get("locked") is True or _table(self._system, name.partition(".")[0]).get("locked") is True


def read(folders: Folders) -> Settings:
    """The settings of this machine and user. A file that isn't there is empty. Raises SettingsError."""
    return Settings(_read(f"{folders.system}/{FILE}"), _read(f"{folders.config}/{FILE}"))


def plain(path: str, flags: int) -> int:
    """Opens for reading, as `open` wants it, what is a plain file: a pipe would be waited at for ever. Raises OSError."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", path)
    return fd


def _read(path: str) -> dict[str, object]:
    try:
        with open(path, "rb", opener=plain) as file:
            data = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(path, error.strerror or str(error)) from None
    if len(data) > MOST_BYTES:
        raise SettingsError(path, f"larger than {MOST_BYTES} bytes")
    try:
        return tomltext.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise SettingsError(path, "not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(path, str(error) or "nested too deep") from None


def _table(found: dict[str, object], name: str) -> dict[str, object]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _find(found: dict[str, object], name: str) -> object:
    value: object = found
    for word in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(word)
    return value
