from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "store")]

from http_rig import Server  # noqa: E402
from store_rig import Journal, event, said  # noqa: E402

OTHER = "00000000-0000-4000-8000-000000000002"


def filled(base: Path) -> Journal:
    """Two sessions: one with a refused call, one under way."""
    journal = Journal(base)
    journal.add(
        event("user_prompt", prompt="tidy <up> é\x1b[31m", line_data={"opens": True}),
        event("pre_tool", tool="Bash", given={"command": "ls"}, call="t1"),
        event("post_tool", tool="Bash", given={"command": "ls"}, call="t1", tool_response="a\nb"),
        event("pre_tool", tool="Bash", given={"command": "rm -rf /"}, call="t2", verdict=said("deny")),
        event("stop", last_assistant_message="done"),
        event("session_end", reason="exit"),
    )
    journal.add(
        event("user_prompt", prompt="second", session=OTHER),
        event("pre_tool", tool="Read", given={"file_path": "/x"}, call="u1", kind="file_read", session=OTHER),
    )
    return journal


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
