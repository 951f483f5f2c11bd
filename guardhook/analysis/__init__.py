"""What a tool call would do.

`analyse` lowers an event to effects (guardhook.core.effect); `quick` proves cheaply that there are none that matter.
The modules below: `lexer`, `parser` (text to tree), `walk`, `expand`, `command` (tree to values and calls), `programs`
(what each program does), `inline` (code in other languages), `paths`, `guardpaths`, `guard` (places), `lower` (every
tool kind), `vocabulary` (the words that policies may use).
"""

from __future__ import annotations

from guardhook.analysis.quick import quick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts
    from guardhook.core.effect import Effect
    from guardhook.core.event import Event


def analyse(event: Event, facts: Facts) -> list[Effect]:
    """The effects of a tool call, in order. Never raises; what can't be analysed is an `unverified` effect."""
    from guardhook.analysis import lower

    return lower.analyse(event, facts)


__all__ = ["analyse", "quick"]
