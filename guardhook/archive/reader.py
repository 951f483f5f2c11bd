"""Reading archives: a file that is an envelope, a bare recording, or a packed one. Unknown formats are refused, never read in part."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, NamedTuple

from guardhook.archive import plain
from guardhook.archive.envelope import FORMAT
from guardhook.archive.errors import MissingMemberError, TooLargeError, UnknownFormatError, UnreadableError
from guardhook.archive.packing import FAMILY
from guardhook.archive.unpacking import DEFAULT_UNPACK_MAX_BYTES, unpack_recording


class Opened(NamedTuple):
    """A document. envelope is None for a bare recording; packed tells whether the recording was."""

    envelope: dict[str, object] | None
    recording: dict[str, object]
    packed: bool

    @property
    def run(self) -> dict[str, object]:
        """The envelope's statements about the run; nothing for a bare recording."""
        found = self.envelope.get("run") if self.envelope is not None else None
        return found if isinstance(found, dict) else {}

    @property
    def events(self) -> list[object]:
        found = self.recording.get("events")
        return found if isinstance(found, list) else []


_REQUIRED: tuple[tuple[str, type], ...] = (
    ("producer", dict), ("producer.guardhookVersion", str), ("run", dict), ("run.runId", str), ("run.startedAt", str), ("run.complete", bool),
    ("run.droppedEvents", int), ("privacy", dict), ("privacy.mode", str), ("privacy.policyId", str), ("recording", dict),
)  # fmt: skip


def open_regular(path: str) -> BinaryIO:
    """A regular file, to read. A pipe or a device is never waited for. Raises UnreadableError, OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UnreadableError("not a regular file")
    return os.fdopen(fd, "rb")


def read_bytes(path: str, *, max_bytes: float = DEFAULT_UNPACK_MAX_BYTES) -> bytes:
    """A regular file's bytes, at most max_bytes. Raises UnreadableError, TooLargeError, OSError."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise TooLargeError(f"{size} bytes, where at most {max_bytes:.0f} are read", max_bytes)
        return file.read()


def open_document(data: bytes, *, max_bytes: float = DEFAULT_UNPACK_MAX_BYTES) -> Opened:
    """The document in these bytes, unpacked. max_bytes bounds both the bytes and what a packed recording stands for.

    Raises UnreadableError, TooLargeError, UnknownFormatError, MissingMemberError, PackedRecordingError.
    """
    if len(data) > max_bytes:
        raise TooLargeError(f"{len(data)} bytes, where at most {max_bytes:.0f} are read", max_bytes)
    return opened(plain.loads(data), max_bytes=max_bytes, parsed=True)


def opened(value: object, *, max_bytes: float = DEFAULT_UNPACK_MAX_BYTES, parsed: bool = False) -> Opened:
    """As `open_document`, of a value; parsed: it came from `plain.loads`."""
    if not isinstance(value, dict):
        raise UnreadableError("the document is no object")
    format = value.get("format")
    if format is None or (isinstance(format, str) and format.startswith(FAMILY)):
        return Opened(None, _recording(value, max_bytes, parsed, "recording"), format is not None)
    if format != FORMAT:
        raise UnknownFormatError(format)
    check_members(value)
    inner = value["recording"]
    assert isinstance(inner, dict)
    recording = _recording(inner, max_bytes, parsed, "recording.events")
    return Opened(value, recording, recording is not inner)


def _recording(value: dict[str, object], max_bytes: float, parsed: bool, what: str) -> dict[str, object]:
    found = unpack_recording(value, max_bytes=max_bytes, parsed=parsed)
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        raise MissingMemberError(what, "the document holds no recording with a list of events")
    return found


def check_members(envelope: dict[str, object]) -> None:
    """Raises MissingMemberError for the first required member that is missing or of a wrong type. Further members are no fault."""
    for name, kind in _REQUIRED:
        value: object = envelope
        for word in name.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if type(value) is not kind:
            raise MissingMemberError(name)
