"""Whether the policies, as they are now, judge what a person types: then the prompt events are registered enforcing."""

from __future__ import annotations

from guardhook.core.folders import Folders
from guardhook.harness.errors import HarnessError

_EVENTS = frozenset(("user_prompt", "prompt_expansion"))


def judged(folders: Folders) -> bool:
    """Raises HarnessError, naming file and line, when the policies have an error: every call would be blocked by it."""
    from guardhook.policy import compile, index

    result = compile.compile_main(folders)
    if result.error:
        raise HarnessError(result.error, "with this error every call would be blocked; put it right, then install")
    ordered = result.loaded.ordered()
    return any(found.on and _EVENTS & set(index.events_of(found.policy.match.given())) for found in ordered)
