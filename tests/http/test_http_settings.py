"""What the settings say holds for the server's answers as it does for the commands'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from http_rig import OTHER, Server, filled

from guardhook.views.http.app import app
from guardhook.views.http.context import Context

Serve = Callable[..., Server]


def statuses(base: Path, **more: float) -> dict[str, str]:
    journal = filled(base)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app(Context(journal.folders, **more)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/v1/traces")

    return {t["session_id"]: t["status"] for t in asyncio.run(ask()).json()["items"]}


def test_traces_time_out_when_they_do_for_the_commands(tmp_path: Path) -> None:
    assert statuses(tmp_path / "short", idle_seconds=-1e11)[OTHER] == "timeout"
    assert statuses(tmp_path / "long", idle_seconds=1e11)[OTHER] == "running"


@pytest.mark.parametrize(("seconds", "status"), [("-1e11", "timeout"), ("1e11", "running")])
def test_the_command_reads_what_the_others_read(serve: Serve, seconds: str, status: str) -> None:
    server = serve(changed=f"from guardhook.commands import reading\nreading.idle_seconds = lambda folders: {seconds}")
    items = server.ask("/v1/traces").json["items"]
    assert isinstance(items, list)
    assert {t["session_id"]: t["status"] for t in items}[OTHER] == status
