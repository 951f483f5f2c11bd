"""The full-screen view: what it shows, how it is left, and that recorded words stay words."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from commands_rig import environment, plain
from report_rig import hooked, recorded
from textual.widgets import DataTable

from guardhook.core.folders import Folders, explicit
from guardhook.store import Appender, Filter, Locked, open_store
from guardhook.views import shapes
from guardhook.views.dashboard.app import Dashboard, Timeline
from guardhook.views.dashboard.facts import Facts, by_status, gather


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    base = tmp_path / "gh"
    hooked(base)
    for number in range(3):
        recorded(base, f"tr{number}", 4 + number)
    return explicit(str(base))


def facts(folders: Folders) -> Facts:
    with open_store(folders) as store:
        return gather(store, shapes.stats(store, folders, Filter()))


def look(app: Dashboard, visit: Any, size: tuple[int, int] = (140, 45)) -> None:
    """Runs the view without a terminal, waits for its first picture and lets a test look at it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await visit(pilot)

    asyncio.run(run())


def words(app: Any) -> str:
    """Everything on the screen, as text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


def test_one_picture_of_the_store(folders: Folders) -> None:
    found = facts(folders)
    assert [trace.id for trace in found.traces[:3]] == ["tr2", "tr1", "tr0"] and found.total == 4
    assert [(o.step.chosen, o.trace.live) for o in found.objections] == [("deny", True)]
    assert found.policies[0][1] == 1 and found.policies[0][0].startswith("no-rm ")
    assert dict(by_status(found))["completed"] == 3
    assert found.days[-1] == 3 and len(found.days) == 30
    assert found.activity and [h.at for h in found.activity] == sorted(h.at for h in found.activity)


def test_scores_of_evaluations_without_the_skipped_ones(folders: Folders) -> None:
    appender = Appender(folders, dialect="eval")
    for number in range(25):
        event: dict[str, object] = {
            "evaluator_type": "rubric", "evaluator_name": "x", "score": number / 100, "passed": True,
            "details": {"skipped": True} if number % 5 == 0 else {}, "evaluated_at": f"2030-01-01T00:00:{number:02d}.000Z",
        }  # fmt: skip
        appender.put("tr0", [("eval.result", event)], opens=number == 0)
    assert facts(folders).scores == [n / 100 for n in range(25) if n % 5]


async def seen(pilot: Any, *texts: str) -> str:
    """The screen, once all of this is on it: a slow machine lays a large screen out in several goes."""
    end = time.monotonic() + 20
    while True:
        shown = words(pilot.app)
        if all(text in shown for text in texts):
            return shown
        assert time.monotonic() < end, f"not on the screen: {texts}\n{shown}"
        await pilot.pause(0.02)


def test_recorded_words_stay_words_on_the_screen(folders: Folders) -> None:
    app = Dashboard(lambda: facts(folders), lambda name: [], 3600)

    async def visit(pilot: Any) -> None:
        shown = await seen(pilot, "window.pwned", "deny", "tr2")
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"]

    look(app, visit)


def test_the_selected_trace_stays_selected_when_others_come(folders: Folders) -> None:
    app = Dashboard(lambda: facts(folders), lambda name: [], 3600)

    async def visit(pilot: Any) -> None:
        await pilot.press("down", "down")
        assert app._selected() == "tr0"
        recorded(Path(folders.data), "newer", 2)
        await pilot.press("r")
        await app.workers.wait_for_complete()
        await pilot.pause()
        await seen(pilot, "newer")
        assert app._selected() == "tr0"

    look(app, visit)


def test_a_trace_opens_and_closes(folders: Folders) -> None:
    app = Dashboard(lambda: facts(folders), lambda name: [f"timeline of {name}"], 3600)

    async def visit(pilot: Any) -> None:
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await seen(pilot, "timeline of tr2")
        assert isinstance(app.screen, Timeline)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, Timeline)

    look(app, visit)


def test_what_can_not_be_read_is_told_and_the_last_picture_stays(folders: Folders) -> None:
    answers: list[Any] = [facts(folders), Locked("traces.db is locked", "x")]

    def load() -> Facts:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    app = Dashboard(load, lambda name: [], 3600)

    async def visit(pilot: Any) -> None:
        await pilot.press("r")
        await app.workers.wait_for_complete()
        await pilot.pause()
        await seen(pilot, "traces.db is locked", "tr2")

    look(app, visit)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (250, 80)])
def test_traces_can_be_seen_at_any_size(folders: Folders, size: tuple[int, int]) -> None:
    app = Dashboard(lambda: facts(folders), lambda name: [], 3600)

    async def visit(pilot: Any) -> None:
        if size[1] >= 24:
            await seen(pilot, "tr2")
        # Measured widths are those of the headings when rows come before the first layout.
        assert [column.width for column in app.query_one(DataTable).columns.values()] == [14, 22, 11, 9, 9, 12, 10, 30]
        assert not any(column.auto_width for column in app.query_one(DataTable).columns.values())

    look(app, visit, size)


class Screen:
    """The command on a terminal of its own."""

    def __init__(self, command: list[str], home: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        env = environment(home, TERM="xterm-256color")
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))  # fmt: skip
        self.seen = b""

    def until(self, words: bytes) -> None:
        deadline = time.monotonic() + 60
        while words not in self.seen:
            assert time.monotonic() < deadline and self.process.poll() is None, self.seen[-2000:]
            self.read()

    def read(self) -> None:
        if select.select([self.master], [], [], 0.1)[0]:
            self.seen += os.read(self.master, 65536)

    def end(self) -> int:
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        restored = termios.tcgetattr(self.slave)[3] == self.before[3]
        os.close(self.slave)
        os.close(self.master)
        assert restored, "the terminal is not as it was"
        assert b"\x1b[?1049l" in self.seen, "the screen was not given back"
        return self.process.wait(timeout=10)


@pytest.mark.parametrize("way", [b"q", b"\x1b", b"\x03", signal.SIGTERM])
def test_it_is_left_cleanly(folders: Folders, tmp_path: Path, way: bytes | signal.Signals) -> None:
    screen = Screen([sys.executable, "-m", "guardhook", "dashboard", "--dir", folders.data], tmp_path)
    screen.until(b"tr2")
    if isinstance(way, bytes):
        os.write(screen.master, way)
    else:
        os.kill(screen.process.pid, way)
    assert screen.end() == 0


def test_without_a_terminal_it_refuses_and_prints_nothing(folders: Folders, tmp_path: Path) -> None:
    ran = plain(["dashboard", "--dir", folders.data], environment(tmp_path))
    assert (ran.status, ran.stdout) == (2, "") and "terminal" in ran.stderr
    for value in ("0", "-1", "x", "2147484", "1.5"):
        ran = plain(["dashboard", "--refresh", value, "--dir", folders.data], environment(tmp_path))
        assert (ran.status, ran.stdout) == (2, "") and "--refresh" in ran.stderr
