"""What every test needs: no test may see or touch the real home folder or the user's own policies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def scratch_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME and the XDG folders point into a scratch folder; guardhook's own variables are unset."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in [n for n in os.environ if n.startswith(("GUARDHOOK_DIR", "CLAUDE", "GEMINI_", "QWEN_", "CURSOR_"))]:
        monkeypatch.delenv(name, raising=False)
    return home
