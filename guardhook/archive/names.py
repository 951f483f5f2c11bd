"""File names of archives. A run id is a key: it stands in the name as it is, or is refused; two runs never share a name."""

from __future__ import annotations

from guardhook.archive.errors import UnsafeRecordingIdError

SUFFIX = ".json"
MOST_CHARS = 200
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_REST = _FIRST | frozenset("._-")
_UPPER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Windows means these, whatever follows a dot; with superscript digits too.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³")))


def recording_file_name(run_id: object) -> str:
    """`<run id>.json`. Raises UnsafeRecordingIdError."""
    why = _problem(run_id)
    if why is not None:
        raise UnsafeRecordingIdError(run_id, why)
    return f"{run_id}{SUFFIX}"


def _problem(run_id: object) -> str | None:
    if not isinstance(run_id, str) or not run_id:
        return "it is no text, or empty"
    if len(run_id) > MOST_CHARS:
        return f"it is longer than {MOST_CHARS} characters"
    if not _UPPER.isdisjoint(run_id):
        return "capital letters: some file systems would take it for another run's"
    if run_id[0] not in _FIRST or not _REST.issuperset(run_id):
        return "only a-z, 0-9, dot, underline and hyphen may stand in it, and a letter or digit first"
    if run_id.partition(".")[0] in _DEVICES:
        return "Windows has a device of that name"
    return None
