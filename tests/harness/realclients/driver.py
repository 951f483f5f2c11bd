"""What every client driver offers: set up a home, register hooks, run a scripted session, say whether the tool really ran.

driver = driver_for(install(pin))
home = Home.make(folder, driver)
driver.register(home, [Hook("PreToolUse", ["/abs/guard"])])
result = run(home, shell_call(...))
"""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realclients import process
from realclients.install import Installed
from realclients.modelserver import Call, ModelServer, Say, Script, ToolResult, Turn

MCP_SERVER = Path(__file__).with_name("mcpserver.py")
MCP_NAME = "ghtest"
KINDS = ("shell", "write", "mcp")
PROMPT = "please do the scripted thing"
RAN = "the tool ran"


@dataclass(frozen=True)
class Hook:
    """A stand-in hook: a program with arguments, in the form that the driver's client takes. seconds is the registered time limit."""

    argv: Sequence[str]
    event: str | None = None
    seconds: int = 10


@dataclass(frozen=True)
class Result:
    """What one session came to.

    ran: the marker file of the tool call exists. model_got: what the model was told about its calls. reported: what the client itself
    said about hooks. rc is None when the session had to be killed at its limit. leftovers: processes that outlived it.
    """

    ran: bool
    model_got: list[ToolResult]
    reported: list[str]
    rc: int | None
    stdout: str
    stderr: str
    seconds: float
    leftovers: list[str]
    work: Path
    marker: Path
    turns: int

    @property
    def told(self) -> str:
        """All that the model was told about its calls, in one text."""
        return "\n".join(result.text for result in self.model_got)

    def story(self) -> str:
        """For assertion messages: everything that one wants to see when a case went wrong."""
        return (
            f"ran={self.ran} rc={self.rc} seconds={self.seconds:.1f} turns={self.turns} leftovers={self.leftovers}\n"
            f"the model got: {self.told[:1500]}\nhooks: {self.reported}\nstderr: {self.stderr[-1500:]}\nstdout: {self.stdout[-1500:]}"
        )


@dataclass
class Home:
    """A scratch home with one client's settings in it, used by one test process at a time."""

    base: Path
    driver: Driver
    path: Path = field(init=False)
    binds: list[tuple[str, str]] = field(default_factory=list)  # see process.Binds
    stand_in: bool = False  # hooks written by register, which Codex does not trust by itself

    def __post_init__(self) -> None:
        self.base = self.base.resolve()
        self.path = self.base / "home"
        self.path.mkdir(parents=True, exist_ok=True)
        programs = self.base / "programs"
        programs.mkdir(exist_ok=True)
        shim = programs / self.driver.program
        if not shim.exists():
            shim.write_text("#!/bin/sh\nexec " + shlex.join(self.driver.installed.argv) + ' "$@"\n')
            shim.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """The environment of everything that is started in this home; the client's own program is first in its PATH."""
        return {
            "PATH": f"{self.base / 'programs'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.path),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "NO_PROXY": "*",
            "no_proxy": "*",
        }

    def work(self) -> Path:
        """A fresh project folder."""
        folder = self.base / "work" / uuid.uuid4().hex[:10]
        folder.mkdir(parents=True)
        return folder

    def write(self, relative: str, value: Any) -> Path:
        """Writes a file below the home; anything but text goes as JSON."""
        path = self.path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))
        return path

    def settings_text(self) -> str:
        """The client's own settings file, byte for byte."""
        return (self.path / self.driver.settings).read_text()

    def read_json(self, relative: str) -> Any:
        path = self.path / relative
        return json.loads(path.read_text()) if path.exists() else {}


class Driver:
    """One client. Subclasses hold everything that is particular about it."""

    program = ""
    settings = ""  # the user's settings file, below the home
    gate_event = "PreToolUse"
    mcp_tool = f"mcp__{MCP_NAME}__write"

    def __init__(self, installed: Installed) -> None:
        self.installed = installed

    @property
    def dialect(self) -> str:
        return self.installed.pin.dialect

    def server(self, script: Script) -> ModelServer:
        raise NotImplementedError

    def settle(self, home: Home) -> None:
        """Writes the settings that a session without questions needs: tools allowed, an MCP server, no updates. No hooks."""
        raise NotImplementedError

    def register(self, home: Home, hooks: Sequence[Hook]) -> None:
        """Writes stand-in hooks into the user's settings."""
        raise NotImplementedError

    def command(self, home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        """The words and the environment additions that start a headless session."""
        raise NotImplementedError

    def shell(self, command: str) -> Call:
        raise NotImplementedError

    def write(self, path: Path, text: str) -> Call:
        raise NotImplementedError

    def mcp(self, path: Path, text: str) -> Call:
        return Call(self.mcp_tool, {"path": str(path), "text": text})

    def delegate(self, task: str) -> list[Turn]:
        """Turns in which the model hands a task to a sub-agent and gives it the time to do it."""
        raise NotImplementedError

    def reported(self, stdout: str, stderr: str) -> list[str]:
        """What the client says about hook runs, if it says anything."""
        return []

    def call(self, kind: str, marker: Path) -> Call:
        """A tool call of a kind that leaves the marker file if it runs."""
        if kind == "shell":
            return self.shell(f"printf %s {shlex.quote(RAN)} > {shlex.quote(str(marker))}")
        return self.write(marker, RAN) if kind == "write" else self.mcp(marker, RAN)


def mcp_settings() -> dict[str, Any]:
    """The usual JSON entry for our MCP server."""
    return {MCP_NAME: {"command": sys.executable, "args": ["-I", "-S", str(MCP_SERVER)]}}


def run(
    home: Home, kind: str = "shell", word: str = "GH-PLAIN", *, turns: Sequence[Turn] | None = None,
    threads: Mapping[str, Sequence[Turn]] | None = None, work: Path | None = None, prompt: str = PROMPT, limit: float = 60,
    arguments: Sequence[str] = (), env: Mapping[str, str] | None = None,
) -> Result:  # fmt: skip
    """One headless session in which the model calls one tool (or the given turns) and then says that it is done.

    word is in the marker file's name, and so in the input of every kind of call; the result says whether the file is there.
    """
    driver = home.driver
    work = work or home.work()
    marker = work / f"{word}.marker"
    if turns is None:
        turns = [(Say("I will do it."), driver.call(kind, marker))]
    server = driver.server(Script(turns, **(threads or {})))
    with process.reserved() as (port, listener):
        words, extra = driver.command(home, work, port, prompt)
        ended = process.run(
            [*words, *arguments], env={**home.environment(), **extra, **(env or {})}, cwd=work, limit=limit,
            server=server, port=port, listener=listener, scratch=home.base, binds=home.binds,
        )  # fmt: skip
    ran = marker.exists() and RAN in marker.read_text()
    return Result(
        ran, server.tool_results(), driver.reported(ended.stdout, ended.stderr), ended.rc, ended.stdout, ended.stderr,
        ended.seconds, ended.leftovers, work, marker, len(server.requests),
    )  # fmt: skip
