"""Rules that a single policy must keep beyond its shape: patterns that can never match, empty needles, contradictions."""

from __future__ import annotations

from collections.abc import Mapping

from guardhook.core.effect import EFFECTS, PATH_CLASSES
from guardhook.core.event import EVENTS, JUDGED, KINDS
from guardhook.core.verdict import BLOCKING
from guardhook.policy import index, regexes
from guardhook.policy.match import STEP_OF_EVENT, STEP_TYPES
from guardhook.policy.model import EFFECT_KEYS, Pattern, Policy

_TOOL_EVENTS = frozenset(("pre_tool", "permission_request", "post_tool", "post_tool_failure", "permission_denied"))
_TOOL_KEYS = ("tool", "name_contains", "name_regex", *EFFECT_KEYS)
# Effects that never carry the thing a key asks for.
_NO_PATH = frozenset(("run_dynamic", "process", "privilege", "invisible", "publish", "connect"))
_NO_HOST = frozenset(
    ("read", "write", "delete", "chmod", "chown", "move", "process", "invisible", "run_decoded", "privilege")
)


class Problem(Exception):
    """One thing wrong with one field: (field, what and what to do)."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def harnesses() -> frozenset[str] | None:
    """The known dialect ids, None where the dialect table isn't there."""
    try:
        from guardhook.dialects.table import MODULES
    except ImportError:
        return None
    return frozenset(MODULES) | {"script"}  # a script that asks `guard check`


def check(policy: Policy) -> None:
    """Raises Problem for the first rule that the policy breaks."""
    name(policy.name)
    given = policy.match.given()
    pattern(policy.match, "match")
    for key in ("reason", "suggest", "description"):
        text = getattr(policy, key)
        if text and not index.seen(text).strip():
            raise Problem(key, "nothing visible is left of it; write a sentence or leave it out")
    if policy.presets is not None and not policy.presets:
        raise Problem("presets", "an empty list switches the policy off everywhere; use `enabled = false` for that")
    if policy.unless is not None:
        exits = policy.unless.given()
        if not exits:
            raise Problem("unless", "it is empty; name at least one key or leave it out")
        pattern(policy.unless, "unless")
        if any(k in EFFECT_KEYS for k in exits) and not any(k in EFFECT_KEYS for k in given):
            raise Problem(
                "unless",
                "it asks about effects, but `match` doesn't; give `match` an effect key, or use event keys here",
            )
        if all(given.get(k) == v for k, v in exits.items()):
            raise Problem(
                "unless", "it holds whenever `match` does, so the policy can never match; remove what they share"
            )


def name(text: str) -> None:
    """Raises Problem for a name that a person could not read or type."""
    if not index.seen(text).strip():
        raise Problem("name", "it is empty; give the policy a name")
    if len(text) > 100 or text != text.strip() or not text.isprintable():
        raise Problem("name", "use up to 100 visible characters, without blanks around them")


def pattern(found: Pattern, where: str) -> None:
    """Raises Problem where a key is unusable or the keys contradict each other."""
    given = found.given()
    for key, value in given.items():
        try:
            _key(key, value)
        except (index.Unusable, regexes.RegexError, ValueError) as error:
            raise Problem(f"{where}.{key}", str(error)) from None
    _together(given, where)


def _key(key: str, value: str | list[str]) -> None:
    if key in ("name_contains", "input_contains", "output_contains"):
        if value == "":
            raise index.Unusable("an empty text is in everything; name what to look for")
    elif key == "step_type":
        if value not in STEP_TYPES:
            raise index.Unusable(f"{value!r} is not a step type; use one of {', '.join(sorted(STEP_TYPES))}")
    elif key in ("event", "harness", "effect", "path_class", "git"):
        _enum(key, index.words(value))
    index.condition_of(key, value, index.Patterns(), ("/home",))


def _enum(key: str, listed: list[str]) -> None:
    known: frozenset[str] | None
    if key == "event":
        known = EVENTS
    elif key == "harness":
        known = harnesses()
    elif key == "effect":
        known = EFFECTS
        _flags(listed)
        listed = [w.split(":")[0] for w in listed]
    elif key == "path_class":
        known = PATH_CLASSES
    else:
        known = None
    for word in listed:
        if known is not None and word not in known:
            raise index.Unusable(
                f"{word!r} is not known, so the policy can never match; use one of {', '.join(sorted(known))}"
            )


def _flags(listed: list[str]) -> None:
    """Raises Unusable for a flag that no effect of the kind carries: a typing mistake would silence the policy."""
    from guardhook.analysis import vocabulary

    for spelling in listed:
        kind = spelling.split(":")[0]
        if kind in EFFECTS and vocabulary.problem(spelling):
            flags = ", ".join(sorted(vocabulary.FLAGS[kind]))
            raise index.Unusable(
                f"{vocabulary.problem(spelling)}, so the policy can never match; its flags are: {flags}"
            )


def _together(given: Mapping[str, str | list[str]], where: str) -> None:
    """Keys that exclude each other."""
    events = set(index.words(given["event"])) if "event" in given else None
    step = given.get("step_type")
    if step is not None and events is not None and not any(STEP_OF_EVENT.get(e) == step for e in events):
        raise Problem(
            f"{where}.step_type", f"no event in `event` is a step of type {step}, so the policy can never match"
        )
    toolless = step not in (None, "tool_call") or (events is not None and not events & _TOOL_EVENTS)
    for key in _TOOL_KEYS:
        if key in given and toolless and not (key.startswith("name_") and step is not None):
            what = f"step_type {step}" if step not in (None, "tool_call") else "the events in `event`"
            raise Problem(
                f"{where}.{key}", f"{what} call no tool, so the policy can never match; remove one of the two"
            )
    if events is not None and where == "match":
        dead = (
            events
            - JUDGED
            - {"post_tool", "post_tool_failure", "model_request", "stop", "subagent_stop", "subagent_start"}
        )
        if dead == events:
            raise Problem(
                f"{where}.event", f"{', '.join(sorted(events))} is never judged, so the policy can never match"
            )
    kinds = index.kinds_of(given)
    if kinds is not None and set(kinds) == {"search"} and "program" in given:
        raise Problem(f"{where}.program", "a search runs no program, so the policy can never match")
    if "effect" in given:
        effects = {w.split(":")[0] for w in index.words(given["effect"])}
        for key, lacking in (("path", _NO_PATH), ("path_class", _NO_PATH), ("host", _NO_HOST)):
            if key in given and effects <= lacking:
                raise Problem(
                    f"{where}.{key}",
                    f"an effect {'/'.join(sorted(effects))} has no {key}, so the policy can never match",
                )
        if "git" in given and "git" not in effects and effects <= {"read", "write", "delete", "chmod", "connect"}:
            raise Problem(f"{where}.git", "only effects of kind `git` have one, so the policy can never match")


def warnings(policy: Policy) -> list[str]:
    """What is allowed, but should be known."""
    found = []
    given = policy.match.given()
    if policy.action in BLOCKING and "output_contains" in given:
        found.append("output_contains can't stop a live call, which has no output yet; the policy only audits")
    if costly(policy.match):
        found.append(
            "its regular expression has no literal that every match must contain, so it runs on every call (costly)"
        )
    return found


def costly(found: Pattern) -> bool:
    """Whether a regular expression of the pattern must run on every event, having no literal that rules it out."""
    given = found.given()
    sources = [str(given[k]) for k in ("name_regex", "input_regex") if k in given]
    if not sources:
        return False
    on_event, on_effect = index.conditions_of(given, index.Patterns())
    if on_effect:
        return False
    return index.literals_of(given, on_event) is None


__all__ = ["KINDS", "Problem", "check", "costly", "harnesses", "name", "pattern", "warnings"]
