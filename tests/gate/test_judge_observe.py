"""The preset `observe`: who asked for it decides what it reaches."""

from __future__ import annotations

import pytest

from guardhook.core.verdict import Match, Verdict
from guardhook.gate import judge


def verdict(action: str, *layers: str) -> Verdict:
    made = Verdict(action, "r", "p")
    made.matches = [Match(layer, action, layer, "because", "", "") for layer in layers]
    return made


@pytest.mark.parametrize("layers", [("shipped",), ("user", "project"), ()])
def test_what_the_system_layer_does_not_say_is_only_recorded(layers: tuple[str, ...]) -> None:
    made = verdict("deny", *layers)
    judge.observe(made, system_enforced=True)
    assert made.mode == "observe" and not judge.blocks(made)


@pytest.mark.parametrize("action", ["deny", "require_review"])
def test_a_system_policy_stays_enforced_when_only_the_user_wants_to_observe(action: str) -> None:
    made = verdict(action, "shipped", "system")
    judge.observe(made, system_enforced=True)
    assert judge.blocks(made) and (made.policy, made.layer, made.reason) == ("system", "system", "because")
    made = verdict(action, "system")
    judge.observe(made, system_enforced=False)
    assert not judge.blocks(made)


def test_what_can_not_be_judged_stays_blocked_where_system_policies_are() -> None:
    made = judge.fault("payload", "the payload names no tool")
    judge.observe(made, system_enforced=True)
    assert judge.blocks(made)
