"""What a tool call would do: event in, effects out. Pure but for the questions that Facts answers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.effect import Effect
    from guardhook.core.event import Event


def analyse(event: Event, facts: object) -> list[Effect]:
    """The effects of the call. None are known yet; policies over effects stay silent until they are."""
    return []
