"""Which provider, model and key: `[ai]` of config.toml and the environment.

A key in the environment wins over a stored one. A base URL of the user's own makes the key optional, for servers on the same machine.
Keys never appear in a message: `without_keys` is for whatever is printed.
"""

from __future__ import annotations

import math
import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from guardhook.core.folders import Folders
from guardhook.policy import settings
from guardhook.policy.settings_check import masked

PROVIDERS = ("anthropic", "google", "openai")
ENVIRONMENT = {"anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY", "openai": "OPENAI_API_KEY"}
DEFAULT_MODELS = {"anthropic": "claude-haiku-4-5-20251001", "google": "gemini-2.5-flash-lite", "openai": "gpt-5.4-nano"}
BASE_URLS = {
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com/v1",
}
MAX_TOKENS = 1024
MOST_TOKENS = 1_000_000
TIMEOUT = 60.0
_FAMILY = (
    ("anthropic", re.compile(r"claude", re.IGNORECASE)),
    ("google", re.compile(r"gemini", re.IGNORECASE)),
    ("openai", re.compile(r"gpt|o\d", re.IGNORECASE)),
)
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class NoProvider(Exception):
    """There is nobody to ask. hints say what would help."""

    def __init__(self, message: str, hints: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.hints = hints


@dataclass(frozen=True)
class Choice:
    """Whom to ask. timeout: seconds for one attempt; ignored: settings that can't be used, in words."""

    provider: str
    model: str
    key: str | None = field(repr=False)
    base_url: str
    max_tokens: int = MAX_TOKENS
    timeout: float = TIMEOUT
    ignored: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return urllib.parse.urlsplit(self.base_url).hostname in _LOOPBACK

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.base_url).netloc


def without_keys(text: str, *keys: str | None) -> str:
    """A text in which these keys are masked, whole or from eight characters on as some servers quote them."""
    for key in keys:
        if not key:
            continue
        text = text.replace(key, masked(key))
        if len(key) >= 16:
            text = text.replace(key[:12], masked(key)).replace(key[-12:], masked(key))
    return text


def choose(folders: Folders, environ: Mapping[str, str] | None = None) -> Choice:
    """The provider to ask. Raises NoProvider, settings.SettingsError."""
    found = settings.read(folders)
    ignored: list[str] = []
    keys = {name: _key(found, name, os.environ if environ is None else environ, ignored) for name in PROVIDERS}
    urls = {name: _url(found, name, ignored) for name in PROVIDERS}
    model = _model(found, ignored)
    wanted = _provider(found, ignored)
    if wanted is None:
        wanted = _automatic(keys, urls, model)
    elif keys[wanted] is None and urls[wanted] is None:
        raise NoProvider(
            f"ai.provider is {wanted}, and there is no key for it",
            (f"set {ENVIRONMENT[wanted]}, or `guardhook config set ai.api_keys.{wanted} KEY`", *ignored),
        )
    if wanted is None:
        raise NoProvider(
            "no model provider is configured",
            (
                f"set one of {', '.join(ENVIRONMENT.values())}, or `guardhook config set ai.api_keys.<provider> KEY`",
                "for a server of your own: `guardhook config set ai.base_urls.openai http://localhost:11434/v1`",
                *ignored,
            ),
        )
    base = urls[wanted] or BASE_URLS[wanted]
    key = keys[wanted]
    if key is not None and not _safe_for_key(base):
        raise NoProvider(
            f"ai.base_urls.{wanted} is {base}: the key would go over the network in plain text",
            ("use https://, or a server on this machine",),
        )
    foreign = family(model) not in (None, wanted) if model is not None else False
    if model is None or (foreign and urls[wanted] is None):
        model = DEFAULT_MODELS[wanted]
    return Choice(wanted, model, key, base, _max_tokens(found, ignored), _timeout(found, ignored), tuple(ignored))


def family(model: str | None) -> str | None:
    """The provider whose family a model's name belongs to, None when it is nobody's."""
    return next((name for name, pattern in _FAMILY if model is not None and pattern.match(model)), None)


def _automatic(keys: Mapping[str, str | None], urls: Mapping[str, str | None], model: str | None) -> str | None:
    # Whoever set up a server of his own does not mean another one because a key for it happens to be in the environment.
    usable = [name for name in PROVIDERS if urls[name] is not None]
    usable += [name for name in PROVIDERS if keys[name] is not None and name not in usable]
    owner = family(model)
    return owner if owner in usable else usable[0] if usable else None


def _key(found: settings.Settings, name: str, environ: Mapping[str, str], ignored: list[str]) -> str | None:
    for where, value in (
        (ENVIRONMENT[name], environ.get(ENVIRONMENT[name])),
        (f"ai.api_keys.{name}", found.get(f"ai.api_keys.{name}")),
    ):
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if not isinstance(value, str) or not (value.strip().isascii() and value.strip().isprintable()):
            ignored.append(f"{where} is not a key (it must be printable ASCII on one line)")
            continue
        return value.strip()
    return None


def _url(found: settings.Settings, name: str, ignored: list[str]) -> str | None:
    value = found.get(f"ai.base_urls.{name}")
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = value.strip().rstrip("/") if isinstance(value, str) else ""
    try:
        parts = urllib.parse.urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isascii()
        bare = not (parts.query or parts.fragment or parts.username or parts.password or " " in text)
    except ValueError:
        good = bare = False
    if not (good and bare and text.isprintable()):
        ignored.append(f"ai.base_urls.{name} is no http:// or https:// address without a user name and query")
        return None
    return text


def _safe_for_key(base: str) -> bool:
    parts = urllib.parse.urlsplit(base)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _model(found: settings.Settings, ignored: list[str]) -> str | None:
    value = found.get("ai.model")
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str) or not value.isprintable() or len(value) > 200:
        ignored.append("ai.model is not the name of a model")
        return None
    return value.strip()


def _provider(found: settings.Settings, ignored: list[str]) -> str | None:
    value = found.get("ai.provider")
    if value is None or value == "auto" or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str) or value not in PROVIDERS:
        ignored.append(f"ai.provider is none of auto, {', '.join(PROVIDERS)}")
        return None
    return value


def _max_tokens(found: settings.Settings, ignored: list[str]) -> int:
    value = found.get("ai.max_tokens")
    if value is None:
        return MAX_TOKENS
    if type(value) is not int or not 1 <= value <= MOST_TOKENS:
        ignored.append(f"ai.max_tokens is no whole number between 1 and {MOST_TOKENS:,}; {MAX_TOKENS} is used")
        return MAX_TOKENS
    return value


def _timeout(found: settings.Settings, ignored: list[str]) -> float:
    value = found.get("ai.timeout")
    if value is None:
        return TIMEOUT
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (math.isfinite(value) and 0.05 <= value <= 3600)
    ):
        ignored.append(f"ai.timeout is no number of seconds between 0.05 and 3600; {TIMEOUT:g} is used")
        return TIMEOUT
    return float(value)
