"""What a person is told when a session starts: that for long nothing was heard of this harness, so that its hooks may have been asleep. Imported only then."""

from __future__ import annotations

from guardhook.journal import heard

DAYS = 14


def words(journal: str, dialect: str, now: float) -> str | None:
    """The warning, None when there is no need for one. now: seconds since the epoch."""
    last = heard.last(journal, dialect, enough=now - DAYS * 86_400)
    if last is None or now - last <= DAYS * 86_400:
        return None
    return (
        f"nothing was recorded of this agent for {(now - last) / 86_400:.0f} days; if it was used meanwhile, "
        "its calls did not reach guardhook: run `guardhook doctor`"
    )
