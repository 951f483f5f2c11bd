"""A real server process, and asking it over a socket."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from store_rig import Journal, event, said

REPOSITORY = Path(__file__).resolve().parents[2]
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


class Got:
    """An answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def code(self) -> object:
        error = self.json["error"]
        assert isinstance(error, dict) and set(error) == {"code", "message"}
        return error["code"]

    def __repr__(self) -> str:
        return f"{self.status} {self.headers} {self.body[:2000]!r}"


def environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "PYTHONPATH": str(REPOSITORY),
        "LANG": "C.UTF-8",
        **more,
    }


class Server:
    """`guardhook serve --port 0 --json`, until stopped."""

    def __init__(
        self, directory: Path, *options: str, home: Path, environment: dict[str, str] | None = None, changed: str = ""
    ) -> None:
        """changed: a statement that is run before, to make patience short."""
        self.home = home
        program = ["-c", f"{changed}\nfrom guardhook.__main__ import main\nmain()"] if changed else ["-m", "guardhook"]
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", "--port", "0", "--json", "--dir", str(directory), *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**_environment(home), **(environment or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=10))
        self.url = json.loads(line)["url"]
        parts = urlsplit(self.url)
        assert parts.hostname is not None and parts.port is not None
        self.host, self.port = parts.hostname, parts.port

    def stop(self, by: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Status, and what else was said."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode(), err.decode()

    def ask(self, path: str, method: str = "GET", body: object = None, **headers: str) -> Got:
        """A request; a body that is no bytes is sent as JSON. Header names are written with `_` for `-`."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Got(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """What comes back for these bytes."""
        with socket.create_connection((self.host, self.port), timeout=30) as connection:
            connection.sendall(data)
            out = b""
            while chunk := connection.recv(65536):
                out += chunk
            return out

    def events(self, path: str, **headers: str) -> Iterator[tuple[str, dict[str, object], str | None]]:
        """Server-sent events as they come: (name, data, id). Comments come as (`:`, {}, None)."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            name, ident = "", None
            while raw := answer.readline():
                line = raw.decode().rstrip("\n")
                if line.startswith(":"):
                    yield ":", {}, None
                elif line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("id: "):
                    ident = line[4:]
                elif line.startswith("data: "):
                    yield name, json.loads(line[6:]), ident
                    name, ident = "", None
        finally:
            connection.close()


_environment = environment
