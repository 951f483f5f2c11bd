"""guardhook, installed by its own `install`, in front of the real clients: whatever happens to it, only "no objection" lets a tool run."""

from __future__ import annotations

import pytest
from realclients.driver import KINDS, Home, Result, run
from realclients.product import BREAKAGES, RARER_BREAKAGES, Product, gate_lines

VERDICTS = {"deny": "GH-DENY", "ask": "GH-ASK", "no-objection": "GH-PLAIN"}


def stopped(result: Result) -> None:
    """The tool did not run, the model was told so, and the session went on and ended by itself."""
    assert not result.ran, result.story()
    assert result.model_got and result.rc == 0, result.story()
    assert not result.leftovers, result.story()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_verdicts(guarded: Home, product: Product, verdict: str, kind: str) -> None:
    word = VERDICTS[verdict]
    result = run(guarded, kind, word)
    if verdict == "no-objection":
        assert result.ran and result.rc == 0 and not result.leftovers, result.story()
    else:
        stopped(result)
        assert f"{word} files" in result.told, result.story()
        if verdict == "ask":
            assert "approv" in result.told, result.story()
    recorded = gate_lines(product.journal(guarded), result.work.name)
    assert recorded, "the journal does not know the call"
    actions = {line["data"]["verdict"]["action"] for line in recorded}
    assert actions == {{"deny": "deny", "ask": "require_review", "no-objection": "allow"}[verdict]}
    assert {line["data"]["dialect"] for line in recorded} == {guarded.driver.dialect}
    if guarded.driver.dialect == "claude-code":  # the only one that tells its version to hooks
        assert {line["data"]["client"] for line in recorded} == {guarded.driver.installed.version}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", BREAKAGES)
def test_a_broken_hook_program_blocks(guarded: Home, product: Product, how: str, kind: str) -> None:
    with product.broken(guarded, how):
        result = run(guarded, kind)
    stopped(result)


@pytest.mark.parametrize("how", RARER_BREAKAGES)
def test_a_hook_program_broken_in_a_rarer_way_blocks(guarded: Home, product: Product, how: str) -> None:
    with product.broken(guarded, how):
        result = run(guarded)
    stopped(result)


def test_the_hook_program_works_again_after_all_that(guarded: Home) -> None:
    """The other tests would prove nothing if a home stayed broken."""
    assert run(guarded).ran
