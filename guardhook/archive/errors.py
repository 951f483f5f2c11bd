"""What the archive refuses, each with a code for programs. What is wrong with a caller's arguments is a TypeError."""

from __future__ import annotations

from collections.abc import Sequence


class ArchiveError(Exception):
    """A refusal. code is a word for programs; details are further members of the error as JSON (field, mode, max_bytes …)."""

    code = "ERR_ARCHIVE"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def details(self) -> dict[str, object]:
        return {}


class IndeterminateRunFactError(ArchiveError):
    """A fact of the run that nothing proves and nobody stated, or that was stated in a form that says nothing."""

    code = "ERR_INDETERMINATE_RUN_FACT"

    def __init__(self, field: str, message: str, values: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.values = tuple(values)

    @property
    def details(self) -> dict[str, object]:
        return {"field": self.field}


class UnsupportedPrivacyModeError(ArchiveError):
    """A privacy mode that can't be produced: only `full` can, whatever was left out at the source."""

    code = "ERR_UNSUPPORTED_PRIVACY_MODE"

    def __init__(self, mode: object) -> None:
        super().__init__(f"privacy mode {mode!r} can't be produced; only 'full' can")
        self.mode = mode

    @property
    def details(self) -> dict[str, object]:
        return {"mode": self.mode if isinstance(self.mode, str) else repr(self.mode)}


class UnknownFormatError(ArchiveError):
    """A document of another format or version. It is never read in part."""

    code = "ERR_UNKNOWN_FORMAT"

    def __init__(self, format: object) -> None:
        super().__init__(f"unknown format {format!r}")
        self.format = format


class MissingMemberError(ArchiveError):
    """A document of the right format in which a member is missing or has a wrong type."""

    code = "ERR_MISSING_MEMBER"

    def __init__(self, field: str, message: str | None = None) -> None:
        super().__init__(message or f"the envelope has no usable {field}")
        self.field = field

    @property
    def details(self) -> dict[str, object]:
        return {"field": self.field}


class UnreadableError(ArchiveError):
    """Bytes that are no JSON document, or one too large to be read."""

    code = "ERR_UNREADABLE"


class TooLargeError(UnreadableError):
    """A document over the caller's bound."""

    code = "ERR_TOO_LARGE"

    def __init__(self, message: str, max_bytes: float) -> None:
        super().__init__(message)
        self.max_bytes = max_bytes

    @property
    def details(self) -> dict[str, object]:
        return {"max_bytes": self.max_bytes}


class UnsafeRecordingIdError(ArchiveError):
    """A run id that can't be a file name as it stands. It is refused, never rewritten: two runs must not share a name."""

    code = "ERR_UNSAFE_RECORDING_ID"

    def __init__(self, run_id: object, why: str) -> None:
        super().__init__(f"run id {str(run_id)[:200]!r} can't be a file name: {why}")
        self.run_id = run_id

    @property
    def details(self) -> dict[str, object]:
        return {"runId": str(self.run_id)[:200]}


class PackedRecordingError(ArchiveError):
    """A packed recording that does not stand for anything."""

    code = "ERR_PACKED_RECORDING"


class PackedRecordingTooLargeError(PackedRecordingError):
    """A packed recording that stands for more than the bound. Nothing of it was built."""

    code = "ERR_PACKED_RECORDING_TOO_LARGE"

    def __init__(self, max_bytes: float) -> None:
        super().__init__(f"the packed recording stands for more than {max_bytes:.0f} bytes")
        self.max_bytes = max_bytes

    @property
    def details(self) -> dict[str, object]:
        return {"max_bytes": self.max_bytes}
