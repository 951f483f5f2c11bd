"""Re-judging recorded calls under other policies: what would have been denied last month, and what let through.

Tool calls are read from the journal as they came (`pre_tool` lines; a call that two registrations reported counts once) and judged as the hook does.
Scripts and links that a call names are looked up on disk as they are now, on both sides alike. A call whose input was redacted, cut or stripped
when it was recorded can't be judged any more: it is counted as unevaluable, never guessed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from guardhook.analysis.facts import Facts
from guardhook.core.event import Event
from guardhook.core.folders import Folders
from guardhook.core.verdict import RANK, Verdict
from guardhook.journal import files, read, write
from guardhook.policy.compiled import Compiled
from guardhook.store import instants
from guardhook.store.errors import StoreError, Unusable
from guardhook.store.fold import trace_id

KINDS = ("newly_denied", "newly_reviewed", "newly_allowed", "eased")
STRICTER = ("newly_denied", "newly_reviewed")
LOOSER = ("newly_allowed", "eased")
GATE = "(the gate itself)"  # in place of a policy: what is blocked under any policies
_ALIKE_MOST = 1_000  # different calls that are counted apart, per policy
_COMMONEST = 10
_CLOCKS_US = 86_400_000_000  # by how much the clock of a file may be behind that of its lines
_REMEMBERED = 20_000  # verdicts
REASONS = ("redacted", "cut", "stripped", "unreadable", "failed", "out_of_time")


class BadPolicies(StoreError):
    """The policies to try can't be used."""


class Change(NamedTuple):
    """A call with another verdict. kind is one of KINDS; policy the one that the difference is owed to."""

    kind: str
    policy: str
    before: str
    after: str
    reason: str
    trace_id: str
    session: str | None
    dialect: str
    ts: str
    tool: str | None
    call: str


class Alike(NamedTuple):
    """Changed calls that say the same: how many, and the last of them."""

    kind: str
    tool: str | None
    call: str
    calls: int
    ts: str
    trace_id: str


@dataclass
class PolicyCount:
    """What one policy changes: calls by kind, how many in which traces and on how many days, and what they say."""

    reason: str = ""
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    sessions: dict[str, int] = field(default_factory=dict)
    days: set[str] = field(default_factory=set)
    alike: dict[tuple[str, str | None, str], Alike] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        self.calls[change.kind] += 1
        self.sessions[change.trace_id] = self.sessions.get(change.trace_id, 0) + 1
        self.days.add(change.ts[:10])
        key = change.kind, change.tool, change.call
        before = self.alike.get(key)
        if before is not None:
            last = max((before.ts, before.trace_id), (change.ts, change.trace_id))
            self.alike[key] = Alike(*key, before.calls + 1, *last)
        elif len(self.alike) < _ALIKE_MOST:
            self.alike[key] = Alike(*key, 1, change.ts, change.trace_id)

    def commonest(self, most: int) -> list[Alike]:
        """The calls that come most often, the most frequent one first."""
        return sorted(self.alike.values(), key=lambda a: (-a.calls, a.call))[:most]


@dataclass
class Outcome:
    """The whole result. changes holds the first ones only, as many as were asked for."""

    against: str  # `recorded` or `policies`
    calls: int = 0
    judged: int = 0
    unchanged: int = 0
    sessions: set[str] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    unevaluable: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    policies: dict[str, PolicyCount] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # files of the journal whose calls could not be read, and why

    def ranked(self) -> list[tuple[str, PolicyCount]]:
        """Policies by how much they change, most first."""
        return sorted(self.policies.items(), key=lambda p: (-sum(p[1].calls.values()), p[0]))

    def as_dict(self) -> dict[str, object]:
        """The documented shape of `backtest --json`."""
        return {
            "against": self.against,
            "sessions": len(self.sessions),
            "days": len(self.days),
            "calls": self.calls,
            "judged": self.judged,
            "unchanged": self.unchanged,
            "unevaluable": sum(self.unevaluable.values()),
            "unevaluable_by_reason": dict(self.unevaluable),
            "unread": list(self.unread),
            **self.totals,
            "policies": [
                {
                    "policy": name,
                    "reason": one.reason,
                    **one.calls,
                    "days": len(one.days),
                    "commonest": [a._asdict() for a in one.commonest(_COMMONEST)],
                    "sessions": [{"trace_id": t, "calls": n} for t, n in sorted(one.sessions.items())],
                }
                for name, one in self.ranked()
            ],
            "changes": [c._asdict() for c in self.changes],
            "changes_omitted": sum(self.totals.values()) - len(self.changes),
        }


class _Other(Folders):
    """These folders, with another user's policy folder and another configuration."""

    __slots__ = ("_policies",)

    def __init__(self, folders: Folders, config: str, policies: str) -> None:
        super().__init__(config, folders.data, folders.system)
        self._policies = policies

    @property
    def user_policies(self) -> str:
        return self._policies


def compiled(
    folders: Folders,
    *,
    policies: str | None = None,
    preset: str | None = None,
    enable: Sequence[str] = (),
    disable: Sequence[str] = (),
) -> Compiled:
    """The shipped, system and user policies, in memory. policies: a folder to take in place of the user's own; preset: in place of the configured one
    (a preset that the machine's administrator locked stays); enable, disable: shipped policies or packs, as `guard enable` and `guard disable` would
    leave them. Nothing of the user's is changed. Raises BadPolicies.
    """
    if policies is None and preset is None and not enable and not disable:
        return _compile(folders)
    if policies is not None:
        policies = os.path.abspath(policies)
        try:
            names = [n for n in os.listdir(policies) if n.endswith(".toml")]
        except OSError as error:
            raise BadPolicies(f"{policies}: can't be read: {error.strerror}", policies) from None
        if not names:
            raise BadPolicies(f"{policies} holds no policy files (*.toml)", policies)
    with tempfile.TemporaryDirectory(prefix="guardhook-") as config:
        _configure(folders.config, config, preset)
        _switch(_Other(folders, config, f"{config}/none"), enable, disable)
        return _compile(_Other(folders, config, policies or folders.user_policies))


def _configure(old: str, new: str, preset: str | None) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    for name in ("config.toml", "exceptions.toml", "overrides.toml"):
        try:
            with open(f"{old}/{name}", encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            text = ""
        except (OSError, ValueError) as error:
            raise BadPolicies(f"{old}/{name}: can't be read: {error}", old) from None
        if name == "config.toml" and preset is not None:
            try:
                document = tomlkit.parse(text)
            except TOMLKitError as error:
                raise BadPolicies(f"{old}/{name}: {error}", old) from None
            gate = document.setdefault("gate", tomlkit.table())
            gate["preset"] = preset
            text = tomlkit.dumps(document)
        if text:
            with open(f"{new}/{name}", "w", encoding="utf-8") as file:
                file.write(text)


def _switch(folders: Folders, enable: Sequence[str], disable: Sequence[str]) -> None:
    """As the commands of these names, on folders that hold no policies of a user's."""
    from guardhook.policy import edit

    for names, on in ((enable, True), (disable, False)):
        for name in names:
            try:
                edit.switch(folders, name, on)
            except edit.EditError as error:
                try:
                    if error.code != 1:
                        raise
                    edit.switch_pack(folders, name, on)
                except edit.EditError as last:
                    raise BadPolicies(str(last).replace("no policy or pack", "no shipped policy or pack")) from None


def _compile(folders: Folders) -> Compiled:
    from guardhook.policy import compile as compiler
    from guardhook.policy import compiled as module

    made = compiler.compile_main(folders)
    if made.error is not None:
        raise BadPolicies(made.error, folders.config)
    try:
        return module.load_bytes(made.blob)
    except module.CompiledError as error:
        raise BadPolicies(str(error), folders.config) from None


def run(
    folders: Folders,
    after: Compiled,
    before: Compiled | None = None,
    *,
    since_us: int | None = None,
    project: str | None = None,
    keep: int = 100,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Judges the recorded calls under `after` and compares: with the policies `before`, or with the verdicts that were recorded.

    since_us: recorded at or after; project: a project root; keep: how many changes to give (-1 all). Nothing is written. Raises Unusable.
    """
    judge = Judge(folders)
    out = Outcome("recorded" if before is None else "policies")
    for key, ts, data in _calls(folders, since_us, project, progress, out.unread):
        out.calls += 1
        trace = trace_id(key)
        out.sessions.add(trace)
        out.days.add(ts[:10])
        missing = lacking(data)
        if missing is None:
            try:
                event = event_of(data)
            except Exception:  # whatever a dialect's reader makes of an old line
                missing = "unreadable"
        if missing is None:
            try:
                new = judge(after, event, data)
                old = _recorded(data) if before is None else judge(before, event, data)
            except Exception:
                missing = "failed"
        if missing is None and (new.degraded or (before is not None and old.degraded)):
            missing = "out_of_time"
        if missing is not None:
            out.unevaluable[missing] += 1
            continue
        out.judged += 1
        kind = change(old.action, new.action)
        if kind is None:
            out.unchanged += 1
            continue
        owed = new if kind in STRICTER else old
        policy = owed.policy or GATE
        changed = Change(
            kind, policy, old.action, new.action, owed.reason, trace, event.session, event.dialect, ts, event.tool, told(event),
        )  # fmt: skip
        out.policies.setdefault(policy, PolicyCount(owed.reason)).add(changed)
        out.totals[kind] += 1
        if keep < 0 or len(out.changes) < keep:
            out.changes.append(changed)
    return out


def change(before: str, after: str) -> str | None:
    """Which of KINDS the change of an action is. Warnings stop nobody and count as allowed."""
    old, new = max(RANK[before], 1), max(RANK[after], 1)
    if new > old:
        return "newly_denied" if after == "deny" else "newly_reviewed"
    if new < old:
        return "eased" if after == "require_review" else "newly_allowed"
    return None


def lacking(data: dict[str, object]) -> str | None:
    """Why a recorded call can't be judged again; None when its payload is as it came."""
    for name in ("redacted", "cut", "stripped"):
        if data.get(name):
            return name
    return None if isinstance(data.get("payload"), dict) and data["payload"] else "stripped"


def event_of(data: dict[str, object]) -> Event:
    """The event that was recorded. Raises whatever the dialect's reader does; KeyError, TypeError for lines of no dialect."""
    from guardhook.dialects import table

    dialect, payload, native = data["dialect"], data["payload"], data.get("native_event")
    if not isinstance(dialect, str) or not isinstance(payload, dict):
        raise TypeError("no dialect or payload")
    event: Event = table.load(dialect).read(payload, {}, native if isinstance(native, str) else None)
    if event.event != "pre_tool":
        raise ValueError("it does not read as a call any more")
    if event.cwd is None and isinstance(data.get("cwd"), str):
        event.cwd = str(data["cwd"])
    return event


def told(event: Event) -> str:
    """What the call does, in its own words."""
    if event.commands:
        return "; ".join(event.commands)[:400]
    return ", ".join([*(f"{f.op} {f.path}" for f in event.files), *event.urls])[:400]


def _recorded(data: dict[str, object]) -> Verdict:
    """The recorded verdict; a call that was only watched was allowed."""
    found = data.get("verdict")
    if not isinstance(found, dict):
        return Verdict("allow")
    action, policy, reason = found.get("action"), found.get("policy"), found.get("reason")
    return Verdict(
        action if isinstance(action, str) and action in RANK else "allow",
        reason if isinstance(reason, str) else "",
        policy if isinstance(policy, str) else None,
    )


class Judge:
    """Judges as the hook does, with the policies of the call's project as they are now."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._projects: dict[str, Compiled | None] = {}
        self._person: tuple[str, str] | None = None
        self._roots: dict[str | None, str | None] = {}
        self._mains: dict[int, Compiled] = {}  # keeps them, so that no other gets the same id
        self._said: dict[tuple[int, bytes], Verdict] = {}

    def __call__(self, main: Compiled, event: Event, data: dict[str, object]) -> Verdict:
        from guardhook.gate import judge as gate

        same = id(self._mains.setdefault(id(main), main)), _alike(event, data.get("root"))
        if same in self._said:  # agents repeat themselves
            return self._said[same]
        sets, root = self.policies(main, event, data)
        facts = self.facts(root, event.cwd, {})
        verdict: Verdict = gate.decide(sets, event, facts, allow_empty=True)[0]
        if not verdict.degraded:
            if len(self._said) >= _REMEMBERED:
                self._said.clear()
            self._said[same] = verdict
        return verdict

    def policies(self, main: Compiled, event: Event, data: dict[str, object]) -> tuple[list[Compiled], str | None]:
        """The sets that judge a call, those of its projects behind the main one; and its project's root."""
        from guardhook.gate import roots

        pinned = data.get("root")
        if event.cwd not in self._roots:
            self._roots[event.cwd] = roots.find_root(event.cwd)
        current = self._roots[event.cwd]
        projects = (self._project(root) for root in dict.fromkeys((pinned, current)) if isinstance(root, str))
        return [main, *(one for one in projects if one is not None)], pinned if isinstance(pinned, str) else current

    def facts(self, root: str | None, cwd: str | None, marked: dict[str, str]) -> Facts:
        """What the hook would know of the disk. The user database is asked once for all calls: that may take a millisecond each time."""
        from guardhook.gate import hook
        from guardhook.gate.facts import facts_of, person

        if self._person is None:
            home, user = person()
            self._person = home.rstrip("/") or "/", user
        facts: Facts = facts_of(self._folders, root, cwd, hook.PROGRAM, marked)
        facts.home, facts.user = self._person
        return facts

    def _project(self, root: str) -> Compiled | None:
        if root not in self._projects:
            from guardhook.policy import compile as compiler
            from guardhook.policy import compiled as module

            found: Compiled | None = None
            if os.path.lexists(f"{root}/{module.PROJECT_POLICIES}"):
                try:
                    found = module.load_bytes(compiler.compile_project(self._folders, root).blob)
                except module.CompiledError:
                    found = None  # as in the hook: a project that breaks its own policies loses only these
            self._projects[root] = found
        return self._projects[root]


def _alike(event: Event, root: object) -> bytes:
    """The same for events that can't but be judged alike: all that a policy may ask of a call, its ids left out."""
    whole = (
        root, event.dialect, event.event, event.native_event, event.agent_type, event.cwd, event.mode, event.surface, event.tool, event.kind,
        event.input, event.output, event.error, event.prompt, event.commands, event.shell, [(f.op, f.path, f.content) for f in event.files],
        event.urls, event.step_type, event.mcp_server, event.mcp_tool, event.undecidable,
    )  # fmt: skip
    return blake2b(repr(whole).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _recent(folders: Folders, file: read.SessionFile, since_us: int) -> bool:
    """Whether a file may hold lines of this time or later. A run stays in the folder of the day that it began on, so the day alone says nothing."""
    if file.day >= instants.iso_ms(since_us)[:10]:
        return True
    path = file.path(folders.journal)
    for name in (path, path.removesuffix(write.SUFFIX) + write.PACKED):
        with contextlib.suppress(OSError):
            if os.lstat(name).st_mtime * 1_000_000 >= since_us - _CLOCKS_US:
                return True
    return False


def _calls(
    folders: Folders, since_us: int | None, project: str | None, progress: Callable[[int, int], None] | None, unread: list[str]
) -> Iterator[tuple[str, str, dict[str, object]]]:  # fmt: skip
    """(journal key, time stamp, data) of every recorded tool call, each once. unread: gets the files that can't be read."""
    below = None if project is None else project.rstrip("/")
    seen: set[tuple[str, str]] = set()
    try:
        found = [f for f in read.session_files(folders.journal) if since_us is None or _recent(folders, f, since_us)]
        for number, file in enumerate(found):
            if progress is not None:
                progress(number, len(found))
            try:
                known = read.open_known(folders.journal, file)
            except FileNotFoundError:  # gc took it away meanwhile
                continue
            except OSError as error:
                unread.append(f"{file.day}/{file.key}: {error.strerror or error}")
                continue
            if known.problem is not None:
                unread.append(f"{file.day}/{file.key}{write.PACKED}: {known.problem}")
            try:
                for entry in read.entries(known.fd):
                    line = entry.line
                    if line is None or line.type != "hook.received" or line.data.get("event") != "pre_tool":
                        continue
                    data = line.data
                    if data.get("canary") is True or data.get("dialect") == "script":
                        continue
                    if since_us is not None and (instants.micros(line.ts) or 0) < since_us:
                        continue
                    root = data.get("root")
                    if below is not None and not (isinstance(root, str) and (root + "/").startswith(below + "/")):
                        continue
                    call = data.get("call")
                    if isinstance(call, str):
                        if (file.key, call) in seen:
                            continue
                        seen.add((file.key, call))
                    yield file.key, line.ts, data
            finally:
                os.close(known.fd)
        if progress is not None:
            progress(len(found), len(found))
    except (OSError, files.Unsafe) as error:
        raise Unusable(f"{folders.journal}: {error.strerror or error}", folders.journal) from None
