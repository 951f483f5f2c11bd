"""The files that a patch text changes: the `*** Begin Patch` form of apply_patch, and unified diffs."""

from __future__ import annotations

from guardhook.core.event import FileTarget

_HEADERS = (
    ("*** Add File:", "write"),
    ("*** Update File:", "edit"),
    ("*** Delete File:", "delete"),
)
_MOVE = "*** Move to:"


def targets(text: str) -> list[FileTarget]:
    """Every file that the patch names, in order, with the lines that it adds. Empty when it names none.

    As lenient as the tools that apply patches: white space around header lines is ignored, and a header is believed wherever it stands.
    Lines end at a line feed for some tools and at every Unicode line end for others: the files of both readings count.
    """
    plain = [line.removesuffix("\r") for line in text.split("\n")]
    found = _targets(plain)
    lines = text.splitlines()
    if lines != plain and lines != plain[:-1]:
        known = {(target.op, target.path) for target in found}
        found += [target for target in _targets(lines) if (target.op, target.path) not in known]
    return found


def _targets(lines: list[str]) -> list[FileTarget]:
    found: list[FileTarget] = []
    added: list[str] = []
    for line in lines:
        if line[:1] == "+" and not line.startswith("+++ "):
            added.append(line[1:])
            continue
        stripped = line.strip()
        if stripped.startswith("***"):
            _header(stripped, found, added)
        elif line.startswith(("--- ", "+++ ")):
            _unified(line, found, added)
    _close(found, added)
    return found


def _header(line: str, found: list[FileTarget], added: list[str]) -> None:
    for mark, op in _HEADERS:
        if line.startswith(mark):
            _close(found, added)
            path = line[len(mark) :].strip()
            if path:
                found.append(FileTarget(op, path))
            return
    if line.startswith(_MOVE) and found:
        path = line[len(_MOVE) :].strip()
        if path:
            # The text that follows belongs to the new place, the old one loses its file.
            found.append(FileTarget("move_from", found[-1].path))
            found.append(FileTarget("move_to", path))


def _unified(line: str, found: list[FileTarget], added: list[str]) -> None:
    path = line[4:].split("\t")[0].strip()
    if line.startswith("--- "):
        _close(found, added)
        if path != "/dev/null":
            found.append(FileTarget("edit", _plain(path)))
        return
    if path == "/dev/null":
        if found and found[-1].op == "edit":
            found[-1].op = "delete"
    elif not found or found[-1].path != _plain(path):
        found.append(FileTarget("write", _plain(path)))


def _plain(path: str) -> str:
    """Without the a/ or b/ that git puts before paths."""
    return path[2:] if path.startswith(("a/", "b/")) and len(path) > 2 else path


def _close(found: list[FileTarget], added: list[str]) -> None:
    """Gives the lines that were added to the file that they belong to."""
    if found and added and found[-1].op != "delete":
        found[-1].content = "\n".join(added) + "\n"
    added.clear()
