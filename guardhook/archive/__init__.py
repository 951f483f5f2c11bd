"""Archives: a recording that can be kept, packed, opened, and told in plain words.

    from guardhook.archive import FileRecordingSink, persist_recording
    persist_recording(recording, sink=FileRecordingSink("archives"), run={"complete": True, "dropped_events": 0})

A recording is `{"snapshot", "events", "structure"}`. `build_recording_envelope` puts the facts of its run around it, each proved or stated; a sink is anything
with `write(envelope)`; `pack_recording` and `unpack_recording` write equal values once; `account_for_answer` and `assess_turn` tell what an answer rests on.
Importing this starts nothing.
"""

from __future__ import annotations

_WHERE = {
    "Capture": "facts", "build_recording_envelope": "envelope", "persist_recording": "envelope", "Sink": "envelope", "FileRecordingSink": "sinks",
    "ZipRecordingSink": "sinks", "FsspecRecordingSink": "sinks", "recording_file_name": "names", "pack_recording": "packing",
    "is_packed_recording": "packing", "Packer": "packing", "unpack_recording": "unpacking", "account_for_answer": "account.account",
    "account_for_session": "account.account", "assess_turn": "account.assess", "Declarations": "account.declarations", "pointer_key": "account.shown",
    "ArchiveError": "errors", "IndeterminateRunFactError": "errors", "UnsupportedPrivacyModeError": "errors", "UnknownFormatError": "errors",
    "UnsafeRecordingIdError": "errors", "PackedRecordingError": "errors", "PackedRecordingTooLargeError": "errors",
}  # fmt: skip
__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Each name is imported when it is asked for."""
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module(f"guardhook.archive.{where}"), name)
