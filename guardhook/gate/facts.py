"""What the analyser is told about this machine, from places that the harness's environment can't change."""

from __future__ import annotations

from guardhook.analysis.facts import DiskFacts
from guardhook.gate.roots import real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.folders import Folders


def facts_of(folders: Folders, root: str | None, cwd: str | None, program: str, marked: dict[str, str]) -> DiskFacts:
    """root is the project's real path, cwd the folder as the harness names it, program the folder of the running program.

    marked is what the session brought to disk before.
    """
    own = [folders.data, folders.config, folders.system]
    if program.endswith("/bin"):
        own.append(program + "/guardhook")
    return DiskFacts(
        person=person, project_root=as_named(root, cwd), guard_paths=tuple(dict.fromkeys(own)), marked=marked
    )


def as_named(root: str | None, cwd: str | None) -> str | None:
    """The project root in the harness's own spelling: commands and paths of the call use that one, not the real path."""
    if root is None or not cwd or cwd == root or cwd.startswith(root + "/"):
        return root
    folder = cwd.rstrip("/")
    while folder:
        if real(folder) == root:
            return folder
        folder = folder.rpartition("/")[0]
    return root


def person() -> tuple[str, str]:
    """Home folder and name of whoever this process runs as, from the user database."""
    import posix
    import pwd

    try:
        entry = pwd.getpwuid(posix.getuid())
    except KeyError:
        return "/", str(posix.getuid())
    return entry.pw_dir, entry.pw_name
