"""The launcher as it is shipped: without a hook program it answers exactly what each dialect says for each event."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from guardhook.core.event import JUDGED
from guardhook.dialects import table
from guardhook.harness import launcher


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not any(shutil.which(name) for name in ("musl-gcc", "cc", "gcc")):
        pytest.skip("no C compiler: the C launcher is not tested here")
    folder = tmp_path_factory.mktemp("shipped") / "bin"
    folder.mkdir()
    launcher.compile_c(folder / "launcher", launcher.collect())
    return folder


@pytest.mark.parametrize("dialect", sorted(table.MODULES))
def test_fallbacks_are_the_dialects_own(shipped: Path, dialect: str) -> None:
    module = table.load(dialect)
    facts = module.limits()
    for mode in ("enforce", "observe"):
        os.link(shipped / "launcher", shipped / f"{dialect}.{mode}")
    for event in (*facts.events, *facts.observed, *facts.blocking, None):
        words = [] if event is None else [event]
        done = subprocess.run([shipped / f"{dialect}.enforce", *words], input=b"{}", capture_output=True, timeout=20)
        answer = module.fallback(event)
        assert (done.returncode, done.stdout, done.stderr) == (answer.exit, answer.stdout, answer.stderr), event
        seen = subprocess.run([shipped / f"{dialect}.observe", *words], input=b"{}", capture_output=True, timeout=20)
        assert (seen.returncode, seen.stderr) == (0, b""), event
        assert bool(seen.stdout) <= facts.observe_answers, event
        assert b"deny" not in seen.stdout and b'"cancel":true' not in seen.stdout, event


def test_an_event_that_only_reports_is_broken_by_no_launcher() -> None:
    """Of the harnesses whose events are the usual ones, the table only knew those that are registered."""
    for found in launcher.collect().dialects:
        routes = table.load(found.name).ROUTES
        rows = {row.event: row for row in found.rows}
        assert len(routes) > 3 and rows.keys() >= routes.keys(), found.name
        for event, canonical in routes.items():
            assert bool(rows[event].stderr) == (canonical in JUDGED) or event in ("PreCompact", "BeforeModel"), (
                found.name,
                event,
            )


def test_every_blocking_event_of_the_measured_clients_blocks() -> None:
    for dialect in ("claude-code", "codex", "gemini", "qwen-code"):
        (found,) = (d for d in launcher.collect().dialects if d.name == dialect)
        rows = {row.event: row for row in found.rows}
        for event in table.load(dialect).limits().events:
            assert rows[event].exit == 2, (dialect, event)
            assert rows[event].stderr.strip(), (dialect, event)
        assert (rows["Stop"] if "Stop" in rows else rows["AfterAgent"])[1:4] == (0, b"", b"")


def test_only_one_variable_list() -> None:
    assert launcher.collect().environment == table.RECOGNITION_ENV
