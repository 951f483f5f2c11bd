"""Which driver drives which dialect's client."""

from __future__ import annotations

from pathlib import Path

from realclients.claude import ClaudeCode
from realclients.codex import Codex
from realclients.driver import Driver, Home
from realclients.gemini import Gemini, QwenCode
from realclients.install import Pin, install

DRIVERS: dict[str, type[Driver]] = {
    "claude-code": ClaudeCode,
    "codex": Codex,
    "gemini": Gemini,
    "qwen-code": QwenCode,
}


def fresh_home(folder: Path, pin: Pin) -> Home:
    """A home with the client's plain settings in it. Raises Unavailable."""
    driver = DRIVERS[pin.dialect](install(pin))
    home = Home(folder, driver)
    driver.settle(home)
    return home
