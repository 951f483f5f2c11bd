"""The words that all harness modules share, and the functions that each of them has.

A new harness is one module with the functions of `Harness`, and one row in `guardhook.harness.table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from guardhook.harness.machine import Machine

if TYPE_CHECKING:
    from guardhook.harness.commandline import Command
    from guardhook.harness.files import Files

SCOPES = ("user", "project", "system")
ENFORCE = "enforce"
CAPTURE = "capture"

# What is registered as the harness's own time limit, in seconds; each module converts to its harness's unit.
# Enforcing: core.limits.REGISTERED_ENFORCING. Observing: well over limits.TOTAL_OBSERVING, for a machine under load.
OBSERVING_SECONDS = 5
# Where the agent, or its exit, waits for the hook with nothing to gain from it.
CLOSING_SECONDS = 2

JsonPath = tuple[str, ...]


@dataclass(frozen=True)
class Launchers:
    """Absolute paths of one harness's two launchers."""

    enforce: str
    observe: str


@dataclass(frozen=True)
class Request:
    """What to register. mode is ENFORCE or CAPTURE; prompts says whether a policy judges what the user types."""

    scope: str
    mode: str
    launchers: Launchers
    prompts: bool = False
    name: str = ""  # how our entries are called, where the harness names them

    def launcher(self, *, judged: bool) -> tuple[str, str]:
        """The launcher's path and mode for an event."""
        if judged and self.mode == ENFORCE:
            return self.launchers.enforce, "enforce"
        return self.launchers.observe, "observe"


@dataclass
class FileEdit:
    """One file's text before and after. None means that there is no such file.

    created lists the containers that only exist because of us, previous the values that we changed: both are what a
    later removal needs when others have edited the file in between.
    """

    path: str
    before: bytes | None
    after: bytes | None
    created: list[JsonPath] = field(default_factory=list)
    previous: list[tuple[JsonPath, Any, Any]] = field(default_factory=list)  # path, ours, theirs (ABSENT: not there)
    whole: bool = False  # the file is ours alone


ABSENT = "\0absent"


@dataclass
class Plan:
    """What an installation or a removal would change, and what a person should know about it."""

    edits: list[FileEdit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Undo:
    """What our record says about one file: see FileEdit."""

    created: tuple[JsonPath, ...] = ()
    previous: tuple[tuple[JsonPath, Any, Any], ...] = ()
    known: bool = False  # False: there is no record, so emptied containers are taken away


@dataclass(frozen=True)
class Registration:
    """One entry of ours in a settings file."""

    scope: str
    file: str
    event: str  # the harness's name for it
    launcher: str  # the path that the entry names, "" when the command is not exactly ours
    argument: str | None  # the event name that the entry passes
    mode: str  # enforce or observe
    handler: Mapping[str, Any]
    exact: bool  # a launcher path and its arguments, nothing else, for every call of the event
    position: tuple[int, int] = (0, 0)  # group and handler


def registration(
    scope: str,
    file: str,
    event: str,
    command: Command | None,
    exact: bool,
    handler: Mapping[str, Any],
    position: tuple[int, int],
) -> Registration:
    """A registration from a command as it was read (None: not exactly ours)."""
    if command is None:
        return Registration(scope, file, event, "", None, "observe", handler, False, position)
    return Registration(scope, file, event, command.launcher, command.event, command.mode, handler, exact, position)


@dataclass(frozen=True)
class Finding:
    """One answer of `doctor`. ok None means information, or could not be found out."""

    check: str
    ok: bool | None
    detail: str

    def plain(self) -> dict[str, object]:
        return {"check": self.check, "ok": self.ok, "detail": self.detail}


@dataclass(frozen=True)
class Client:
    """The harness's own program. version is None where asking for it failed."""

    path: str
    version: str | None


@dataclass(frozen=True)
class Ran:
    """How a hook command ended. code is None after the time limit, negative for a signal."""

    code: int | None
    stdout: bytes
    stderr: bytes


Reader = Callable[[str], bytes | None]


class Harness(Protocol):
    """What table.load gives: a module with these."""

    ID: str
    TITLE: str
    EVENTS: Mapping[str, str]  # event -> "judged", "prompt", "observed"
    SINCE: Mapping[str, str]  # event -> first version that has it, where older ones mind the name

    def places(self, machine: Machine, scope: str) -> list[str]:
        """The settings files of a scope that can hold our entries."""

    def ours(self, handler: object) -> bool:
        """Whether a handler of a settings file starts one of our launchers."""

    def plan(self, machine: Machine, request: Request, read: Reader) -> Plan:
        """The edits that register us. Raises HarnessError for files that can't be edited or that the client would not read."""

    def unplan(self, machine: Machine, scope: str, read: Reader, undo: Callable[[str], Undo]) -> Plan:
        """The edits that take our entries out again, and nothing else."""

    def finish(self, machine: Machine, request: Request, files: Files) -> list[Finding]:
        """What is left to do once the files are written (Codex: trust), and what came of it."""

    def extra(self, machine: Machine, scope: str) -> list[str]:
        """Files besides `places` that finish may change."""

    def registrations(self, machine: Machine, scope: str, read: Reader) -> list[Registration]:
        """Our entries as they stand. Raises HarnessError for a file that can't be read."""

    def client(self, machine: Machine) -> Client | None:
        """The client's program, and its version by asking it."""

    def findings(
        self, machine: Machine, found: Sequence[Registration], client: Client | None, read: Reader
    ) -> list[Finding]:
        """Off switches, version warnings and whatever else this harness's settings tell."""

    def invocation(self, machine: Machine, registration: Registration) -> tuple[list[str], dict[str, str]]:
        """The argv and the added environment with which the client would run the entry."""

    def canary(self, event: str, command: str, folder: str) -> dict[str, object] | None:
        """A payload as the client would send it for a shell call, None for events that carry none."""

    def blocked(self, event: str, ran: Ran) -> bool:
        """Whether the client would stop the call, by the rules measured on it."""
