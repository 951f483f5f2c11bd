"""A client in a real terminal (tmux), for what only a person at a keyboard gets to see."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from realclients import process
from realclients.claude import ClaudeCode
from realclients.driver import PROMPT, RAN, Home
from realclients.modelserver import ModelServer, Script


class Terminal:
    """A running session on a screen of 150 x 50."""

    def __init__(self, control: Path, work: Path, marker: Path, server: ModelServer) -> None:
        self.control, self.work, self.marker, self.server = control, work, marker, server

    @property
    def ran(self) -> bool:
        return self.marker.exists() and RAN in self.marker.read_text()

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-S", "-100").stdout

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def wait(self, pattern: str, seconds: float = 30) -> str:
        """The screen as soon as the pattern is on it. Raises AssertionError with the screen when it does not come, or with a complaint."""
        end = time.monotonic() + seconds
        while not re.search(pattern, screen := self.screen()):
            assert "Settings Warning" not in screen and "Settings Error" not in screen, screen
            assert time.monotonic() < end, f"{pattern!r} did not appear in {seconds} s on\n{screen}"
            time.sleep(0.1)
        return screen

    def wait_until_model_asked(self, times: int, seconds: float = 30) -> None:
        """Until the model was asked for its n-th turn of the conversation."""
        end = time.monotonic() + seconds
        while sum(1 for request in list(self.server.requests) if (request.body or {}).get("tools")) < times:
            assert time.monotonic() < end, f"the session did not go on; the screen:\n{self.screen()}"
            time.sleep(0.1)

    def _tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["tmux", "-S", str(self.control), *words], capture_output=True, text=True, timeout=30)


@contextlib.contextmanager
def claude(home: Home, kind: str, word: str) -> Iterator[Terminal]:
    """Claude Code at a terminal, in whose only turn the model calls one tool."""
    driver = home.driver
    assert isinstance(driver, ClaudeCode)
    work = home.work()
    marker = work / f"{word}.marker"
    server = driver.server(Script([(driver.call(kind, marker),)]))
    driver.trust(home, work)
    control = Path(f"/tmp/gh-{uuid.uuid4().hex[:12]}.tmux")  # socket paths are short
    token = uuid.uuid4().hex
    with process.reserved() as (port, listener), (home.base / "tmux.log").open("wb") as log:
        _, extra = driver.command(home, work, port, PROMPT)
        env = {**home.environment(), **extra, process.TOKEN: token}
        words = [shutil.which("tmux") or "tmux", "-S", str(control), "-f", "/dev/null", "new-session", "-d"]
        words += ["-x", "150", "-y", "50", *driver.installed.argv, PROMPT]
        started, inner = process.start(words, env, work, port, listener, stdout=log, stderr=log)
        assert inner is not None
        server.start(inner)
        assert started.wait(30) == 0, (home.base / "tmux.log").read_text()
        try:
            yield Terminal(control, work, marker, server)
        finally:
            subprocess.run(["tmux", "-S", str(control), "kill-server"], capture_output=True, timeout=30)
            process.sweep(started.pid, token, home.base)
            server.stop()
            control.unlink(missing_ok=True)
