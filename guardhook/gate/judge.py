"""From an event to a verdict: project folders, policy sets, effects, match."""

from __future__ import annotations

import posix
import time
from errno import EINVAL, ENOTDIR

from guardhook.core.event import JUDGED
from guardhook.core.verdict import BLOCKING, RANK, Verdict, strictest
from guardhook.gate.roots import find_root
from guardhook.policy import compiled as compiled_module
from guardhook.policy import match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from guardhook.analysis.facts import Facts
    from guardhook.core.effect import Effect
    from guardhook.core.event import Event
    from guardhook.core.folders import Folders
    from guardhook.policy.compiled import Compiled

# What `doctor` asks to see the registered command line deny. Harmless if it ever ran: there is no such program.
CANARY = "guardhook-canary --deny"
CANARY_POLICY = "guardhook-canary"

# Events that stand for a tool call: these need a policy set, and a tool name.
TOOL_EVENTS = frozenset(("pre_tool", "permission_request"))


def fault(cause: str, message: str) -> Verdict:
    """The verdict for anything that keeps the gate from judging: always a deny."""
    verdict = Verdict("deny", message)
    verdict.cause = cause
    return verdict


def precheck(event: Event) -> Verdict | None:
    """Verdicts that need no policy: the canary, and calls that can't be judged at all."""
    if event.event in TOOL_EVENTS:
        if len(event.commands) == 1 and event.commands[0].strip() == CANARY:
            return Verdict("deny", "this is the canary that doctor sends; it is always denied", CANARY_POLICY)
        if not event.tool:
            return fault("payload", "the payload names no tool")
    if event.undecidable and event.event in JUDGED:
        return fault("payload", event.undecidable)
    return None


def project_sets(
    folders: Folders, event: Event, pinned: str | None, refresh: Callable[[str], Compiled | None]
) -> tuple[list[Compiled], str | None]:
    """The compiled policies of the pinned project and of the current folder's, and the current root.

    refresh(root) rebuilds a project's compiled file. What a repository breaks in its own policies only loses these.
    """
    current = find_root(event.cwd)
    sets: list[Compiled] = []
    for root in (pinned, current if current != pinned else None):
        if root is None:
            continue
        try:
            one = compiled_module.load_project(folders, root)
        except compiled_module.Broken:
            one = None
        except compiled_module.CompiledError:
            one = refresh(root)
        if one is not None:
            sets.append(one)
    return sets, current


def decide(
    sets: list[Compiled], event: Event, facts: Facts, *, allow_empty: bool, data_folder: str = ""
) -> tuple[Verdict, list[Effect]]:
    """The verdict under the policy sets (the first one is shipped, system and user together), and the call's effects.

    data_folder is guardhook's own, for events about the harness's settings, and for a pause.
    """
    started = time.perf_counter_ns()
    effects: list[Effect] = []
    verdict = precheck(event)
    if verdict is None:
        if event.event in TOOL_EVENTS and not allow_empty and not any(one.policies for one in sets):
            verdict = fault(
                "policies", "no policy is enabled, so nothing can be allowed (--allow-empty says otherwise)"
            )
        else:
            if not (event.kind == "shell" and _harmless(sets, event, facts)):
                from guardhook.analysis import analyse

                effects = analyse(event, facts)
            verdict = match.judge(sets, event, effects)
    if event.event == "config_change" and data_folder:
        from guardhook.gate import configchange

        own = configchange.judge(event, data_folder)
        if own is not None:
            verdict = stricter(own, verdict)
    verdict.set = "+".join(one.set for one in sets)[:200]
    verdict.us = (time.perf_counter_ns() - started) // 1000
    if sets and sets[0].config.get("preset") == "observe":
        observe(verdict, system_enforced=bool(sets[0].config.get("system_enforced")))
    if data_folder and _pause_file(data_folder):
        from guardhook.gate import pause

        verdict = pause.weaken(verdict, data_folder)
    return verdict, effects


def observe(verdict: Verdict, *, system_enforced: bool) -> None:
    """Makes the verdict one that is only recorded. system_enforced: it is the user alone who wants that, which reaches neither
    system policies nor calls that can't be judged by them.
    """
    verdict.mode = "observe"
    if not system_enforced:
        return
    if verdict.cause != "policy":
        verdict.mode = "enforce"
        return
    best = strictest([match for match in verdict.matches if match.layer == "system"])
    if best is not None and best.action in BLOCKING:
        verdict.mode = "enforce"
        verdict.cite(best)


def _harmless(sets: list[Compiled], event: Event, facts: Facts) -> bool:
    """The quick pass: whether it is plain that no policy about effects could match, whatever the commands do.

    Plain words mean what they say only where the folder is an ordinary one, and where the session has brought nothing to disk.
    """
    if not event.commands or event.files or event.urls or facts.marked or event.shell == "powershell":
        return False
    cwd = event.cwd
    if cwd is None or cwd[:1] != "/" or "/." in cwd or "/Library" in cwd or cwd.startswith(_SPECIAL_FOLDERS):
        return False
    from guardhook.analysis.quick import quick

    for one in sets:
        triggers = one.triggers("shell")
        if triggers is None:
            return False
        for command in event.commands:
            if len(command) > _QUICK_CHARS or not quick(command, triggers):
                return False
    return bool(sets) and not _links(cwd, event.commands)


def _links(cwd: str, commands: list[str]) -> bool:
    """Whether a word of the commands names something that is a symbolic link, or lies behind one. Many words: yes.

    A link gives a harmless name to what is not; the analyser follows it.
    """
    if _through_link("", cwd):
        return True
    left = _QUICK_WORDS
    for command in commands:
        for sign in ";|&=:,":
            command = command.replace(sign, " ")
        for word in command.split():
            left -= 1
            if left < 0:
                return True
            if word[0] == "-":
                word = word[2:]
            if word and _through_link("" if word[0] == "/" else cwd.rstrip("/"), word):
                return True
    return False


def _through_link(base: str, path: str) -> bool:
    """Whether one of the path's components below base is a link. What does not exist is none."""
    for part in path.split("/"):
        if part in ("", "."):
            continue
        base += "/" + part
        try:
            posix.readlink(base)
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) == EINVAL:  # exists, and is no link
                continue
            return getattr(error, "errno", None) != ENOTDIR
        return True
    return False


# Where relative names may lead to secrets, devices or settings. Folders with a leading dot are special, too.
_SPECIAL_FOLDERS = ("/etc", "/proc", "/dev", "/sys", "/run", "/var/run", "/private", "/System")
# Longer commands could be beyond a cap of the parser.
_QUICK_CHARS = 4096
# So many words are looked up on disk.
_QUICK_WORDS = 64


def _pause_file(data_folder: str) -> bool:
    """Whether there is anything to ask guardhook.gate.pause about: it is only imported then."""
    try:
        posix.lstat(data_folder + "/pause")
    except OSError:
        return False
    return True


def stricter(first: Verdict, second: Verdict) -> Verdict:
    """The stricter of two verdicts, the first one among equals."""
    return second if RANK[second.action] > RANK[first.action] else first


def blocks(verdict: Verdict) -> bool:
    """Whether the verdict stops the call where it is enforced."""
    return verdict.action in BLOCKING and verdict.mode != "observe"
