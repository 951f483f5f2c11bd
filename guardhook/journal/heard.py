"""When a harness was last heard of, by what its sessions left. A registration that looks right and never fires is the failure that nobody notices."""

from __future__ import annotations

import posix

_TAIL = 256 * 1024


def last(journal: str, dialect: str, *, enough: float | None = None) -> float | None:
    """Seconds since the epoch of a harness's newest event that was no canary; None when there is none. Looks no further once it is later than `enough`."""
    newest: float | None = None
    for day in sorted((name for name in _names(journal) if name[:2] == "20"), reverse=True):
        for name in _names(f"{journal}/{day}"):
            # Files are named by the dialect, then a hash; those of sessions that were silent for long are packed, and keep their times.
            if not name.startswith(dialect + "-") or not name.endswith((".jsonl", ".jsonl.gz")):
                continue
            path = f"{journal}/{day}/{name}"
            try:
                status = posix.stat(path, follow_symlinks=False)
            except OSError:
                continue
            if (newest is None or status.st_mtime > newest) and (name.endswith(".gz") or _real(path)):
                newest = status.st_mtime
                if enough is not None and newest > enough:
                    return newest
    return newest


def _names(folder: str) -> list[str]:
    try:
        return posix.listdir(folder)
    except OSError:
        return []


def _real(path: str) -> bool:
    """Whether a file holds anything but canaries: `doctor` writes those itself."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK)
    except OSError:
        return False
    try:
        lines = posix.read(fd, _TAIL).split(b"\n")
    except OSError:
        return False
    finally:
        posix.close(fd)
    return any(b'"hook.received"' in line and b'"canary":true' not in line for line in lines)
