"""What the analyser is told about this machine, from places that the harness's environment can't change."""

from __future__ import annotations

from guardhook.analysis.facts import DiskFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.folders import Folders


def facts_of(folders: Folders, root: str | None, program: str, marked: dict[str, str]) -> DiskFacts:
    """root is the project's; program the folder of the running program; marked what the session brought to disk before."""
    own = [folders.data, folders.config, folders.system]
    if program.endswith("/bin"):
        own.append(program + "/guardhook")
    return DiskFacts(person=person, project_root=root, guard_paths=tuple(dict.fromkeys(own)), marked=marked)


def person() -> tuple[str, str]:
    """Home folder and name of whoever this process runs as, from the user database."""
    import posix
    import pwd

    try:
        entry = pwd.getpwuid(posix.getuid())
    except KeyError:
        return "/", str(posix.getuid())
    return entry.pw_dir, entry.pw_name
