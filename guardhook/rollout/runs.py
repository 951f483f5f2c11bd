"""Which runs there are, and finding one by what a person calls it.

A run is one segment of a session (guardhook.journal.line), as the store has noted it. Sessions that nothing opened (results of calls that
were never seen, and nothing else) make no trace and have no run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from guardhook.core.folders import Folders
from guardhook.store import Store, open_store, query
from guardhook.store.errors import Ambiguous, NotFound

__all__ = ["Ambiguous", "NotFound", "RunRef", "find", "find_in", "list_in", "list_runs", "of_key"]

_SQL = """
  SELECT r.run, t.id, t.session_id, t.dialect, t.agent_version, r.opened_at, r.closed_at, r.first_seq, r.last_seq, s.key, r.segment,
    t.parent_trace_id,
    (SELECT p.run FROM agent_trace_runs p WHERE p.serial = r.serial AND p.segment < r.segment ORDER BY p.segment DESC LIMIT 1),
    t.agent_name
  FROM agent_trace_runs r JOIN agent_traces t ON t.serial = r.serial JOIN sources s ON s.id = t.source
"""
_NAMED = 50  # candidates that an unclear name is answered with


class RunRef(NamedTuple):
    """One run. Times are RFC 3339 with milliseconds; first_seq and last_seq are journal tickets; key names the session's journal file."""

    run_id: str
    trace_id: str
    session: str | None
    dialect: str | None
    client: str | None
    opened_at: str
    closed_at: str | None
    first_seq: int
    last_seq: int
    key: str
    open: bool
    segment: int = 1
    previous: str | None = None  # the session's run before this one
    parent: str | None = None  # set for copies (forks), which never ran: the trace that was copied
    agent_name: str | None = None

    @property
    def day(self) -> str:
        """The UTC date of its opening: the folder of its rollout, whatever happens after midnight."""
        return self.opened_at[:10]


def list_runs(folders: Folders, *, session: str | None = None) -> Iterator[RunRef]:
    """Every run, oldest first; session: only those of this session id. Raises StoreError (Missing where nothing was recorded)."""
    with open_store(folders) as store:
        yield from list_in(store, session=session)


def list_in(
    store: Store, *, session: str | None = None, since: str | None = None, copies: bool = True
) -> Iterator[RunRef]:
    """As `list_runs`, of an open store. since: opened at or after this RFC 3339 time; copies=False leaves forks out."""
    where, values = ["1"], []
    if session is not None:
        where.append("t.session_id = ?")
        values.append(session)
    if since is not None:
        where.append("r.opened_at >= ?")
        values.append(since)
    if not copies:
        where.append("t.parent_trace_id IS NULL")
    sql = f"{_SQL} WHERE {' AND '.join(where)} ORDER BY r.opened_at, t.id, r.segment"
    return map(_ref, store.connection.execute(sql, values))


def of_key(store: Store, key: str) -> list[RunRef]:
    """The runs that a journal file's lines belong to, in order."""
    rows = store.connection.execute(f"{_SQL} WHERE s.key = ? ORDER BY t.id, r.segment", (key,))
    return [_ref(row) for row in rows]


def find(folders: Folders, name: str) -> RunRef:
    """The run that a name means: a run id, a trace id or a session id, or the clear beginning of one.

    Raises NotFound; Ambiguous when a trace or session has several runs, or several things begin so (candidates are run ids).
    """
    with open_store(folders) as store:
        return find_in(store, name)


def find_in(store: Store, name: str) -> RunRef:
    """As `find`, in an open store."""
    wanted = query.kept(name.strip())
    if not wanted:
        raise NotFound("no run has a blank name", store.path)
    for test in ("{0} = ?1", "substr({0}, 1, length(?1)) = ?1"):
        run, trace, session = (test.format(column) for column in ("r.run", "t.id", "t.session_id"))
        # A copy has the session id of its original, and no session of its own.
        where = f"{run} OR {trace} OR ({session} AND t.parent_trace_id IS NULL)"
        sql = f"{_SQL} WHERE {where} ORDER BY r.opened_at, t.id, r.segment LIMIT {_NAMED + 1}"
        found = [_ref(row) for row in store.connection.execute(sql, (wanted,))]
        if len(found) == 1:
            return found[0]
        if found:
            names = tuple(f"{r.run_id}  {r.opened_at}  session {r.session}" for r in found[:_NAMED])
            raise Ambiguous(f"{wanted!r} means several runs; name one of them", names)
    raise NotFound(f"no run {wanted!r}: neither a run, a trace nor a session is called so", store.path)


def _ref(row: tuple[object, ...]) -> RunRef:
    run, trace, session, dialect, client, opened, closed, first, last, key, segment, parent, previous, agent = row
    return RunRef(
        str(run), str(trace), _text(session), _text(dialect), _text(client), str(opened), _text(closed), _whole(first), _whole(last),
        str(key), closed is None, _whole(segment), _text(previous), _text(parent), _text(agent),
    )  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
