"""One request as handlers see it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from guardhook.store import Ambiguous, Missing, NotFound, Store, Trace
from guardhook.views.http.answers import Refusal
from guardhook.views.http.context import Caller, Context


class Nothing(Exception):
    """Nothing was ever recorded; the value says so in the route's own shape."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class Call:
    """path: the named parts of the path; query: the parameters, each given once; body: the JSON body where the route takes one."""

    def __init__(
        self, context: Context, caller: Caller, path: Mapping[str, str], query: Mapping[str, str], body: object, last: str | None
    ) -> None:  # fmt: skip
        self.context = context
        self.caller = caller
        self.path = path
        self.query = query
        self.body = body
        self.last_event_id = last

    @contextlib.contextmanager
    def store(self, *, nothing: object = None) -> Iterator[Store]:
        """The store, brought up to date. nothing: what to answer where nothing was ever recorded (None: 404). Raises StoreError, Nothing."""
        try:
            store = self.context.open()
        except Missing:
            if nothing is None:
                raise
            raise Nothing(nothing) from None
        with store:
            yield store

    def trace(self, store: Store, name: str) -> Trace:
        """The trace with this id or a clear start of one, if the caller may see it. Raises NotFound, Ambiguous.

        A tenant has to give the whole id: what others' ids look like is not told.
        """
        try:
            found = store.get(name)
        except Ambiguous:
            if self.caller.tenant is None:
                raise
            raise NotFound("no such trace") from None
        whole = self.caller.tenant is None or found.id == name
        if not (whole and self.sees(tenant_of(found, self.context.tenant))):
            raise NotFound("no such trace")
        return found

    def sees(self, tenant: str | None) -> bool:
        """Whether the caller may see what belongs to this tenant (None: to nobody in particular)."""
        return self.caller.tenant is None or self.caller.tenant == tenant

    def number(self, name: str, default: int | None, least: int, most: int) -> int | None:
        """A whole number of the query. Raises Refusal."""
        text = self.query.get(name)
        if text is None:
            return default
        if (
            not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 12)
            or not least <= int(text) <= most
        ):
            raise Refusal(400, "invalid_request", f"{name} must be a whole number between {least} and {most}")
        return int(text)

    def flag(self, name: str) -> bool:
        """A yes or no of the query: `true`, `1` or nothing after the name mean yes. Raises Refusal."""
        text = self.query.get(name, "false").lower()
        if text not in ("", "true", "1", "false", "0"):
            raise Refusal(400, "invalid_request", f"{name} must be true or false")
        return text in ("", "true", "1")


def tenant_of(trace: Trace, default: str | None) -> str | None:
    """Whose a trace is: what it was recorded with (`tenant_id` of its metadata; no text is nobody's), else this machine's tenant."""
    if '"tenant_id"' in trace.metadata_json:
        stated = trace.metadata.get("tenant_id")
        if stated is not None:
            return stated if isinstance(stated, str) else None
    return default
