from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "store")]

from http_rig import Server, filled  # noqa: E402
from store_rig import Journal  # noqa: E402


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return filled(tmp_path / "gh")


Serve = Callable[..., Server]


@pytest.fixture
def serve(journal: Journal, tmp_path: Path) -> Iterator[Serve]:
    """serve(*options, directory=…) starts `guardhook serve` on a free port."""
    running: list[Server] = []

    def start(*options: str, directory: Path | None = None, changed: str = "", **environment: str) -> Server:
        server = Server(directory or journal.base, *options, home=tmp_path, environment=environment, changed=changed)
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a module that only ask."""
    base = tmp_path_factory.mktemp("http")
    (base / "rollouts").mkdir()
    server = Server(filled(base / "gh").base, home=base, environment={"GUARDHOOK_ROLLOUT_DIR": str(base / "rollouts")})
    yield server
    server.stop()
