"""What the shipped policies come to on calls as developers and attackers type them, class by class."""

from __future__ import annotations

import time

import pytest
from verdict_rows import Row, Tally, event_of, facts, flagged, packs, render, rows, tally

from guardhook.analysis import analyse
from guardhook.core.verdict import Verdict
from guardhook.policy import match

# class -> (least recall, most false alarms)
TARGETS = {
    "shell": (0.97, 0.02),
    "git": (0.97, 0.02),
    "obfuscation": (0.97, 0.024),
    "wrappers": (0.97, 0.024),
    "substitutions": (0.97, 0.024),
    "interpreters": (0.97, 0.024),
    "cwd": (0.97, 0.024),
    "lookalike": (0.97, 0.024),
    "secrets": (0.97, 0.024),
    "guard": (0.97, 0.024),
    "exfiltration": (0.85, 0.03),
    "persistence": (0.85, 0.03),
    "powershell": (0.97, 0.02),
    "privilege": (0.85, 0.03),
    "supply-chain": (0.85, 0.03),
    "cloud": (0.88, 0.03),
    "wide": (0.0, 0.03),
    "everyday": (0.0, 0.0),
    "everyday-tools": (0.0, 0.0),
}


@pytest.fixture(scope="module")
def judged() -> list[tuple[Row, Verdict, float]]:
    """Every row with its verdict, and the seconds that parsing and judging took."""
    out = []
    for row in rows():
        event, known, policies = event_of(row), facts(), packs(row.preset)
        begun = time.perf_counter()
        verdict = match.judge([policies], event, analyse(event, known))
        out.append((row, verdict, time.perf_counter() - begun))
    return out


@pytest.fixture(scope="module")
def table(judged: list[tuple[Row, Verdict, float]], request: pytest.FixtureRequest) -> dict[str, Tally]:
    """The confusion matrix, which is printed past the capture."""
    found = tally((row, flagged(verdict)) for row, verdict, _ in judged)
    took = sorted(seconds for _, _, seconds in judged)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{render(found)}")
        print(
            f"{len(took)} rows; parse and judge: median {took[len(took) // 2] * 1e3:.2f} ms, "
            f"p99 {took[int(len(took) * 0.99)] * 1e3:.2f} ms"
        )
    return found


def test_there_are_enough_rows_of_every_kind() -> None:
    listed = rows()
    assert len(listed) >= 500
    assert sum(row.expect == "pass" for row in listed) >= 0.4 * len(listed)
    assert {row.cls for row in listed} == set(TARGETS)
    assert {row.expect for row in listed} == {"flag", "pass"}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_class(name: str, judged: list[tuple[Row, Verdict, float]], table: dict[str, Tally]) -> None:
    recall, alarms = TARGETS[name]
    wrong = [
        f"{row.expect}, but {verdict.action} ({verdict.policy}): {row.text}"
        for row, verdict, _ in judged
        if row.cls == name and flagged(verdict) != (row.expect == "flag")
    ]
    found = table[name]
    assert found.false_alarms <= alarms, "\n".join(wrong)
    if found.caught + found.missed:
        assert found.recall >= recall, "\n".join(wrong)


def test_nothing_breaks_the_analyser(judged: list[tuple[Row, Verdict, float]]) -> None:
    broken = []
    for row, verdict, _ in judged:
        for hit in verdict.matches:
            if hit.policy.startswith("unverified") and "internal" in getattr(hit.effect, "flags", ()):
                broken.append(row.text)
    assert broken == []


def test_every_block_says_why_and_what_else_to_do(judged: list[tuple[Row, Verdict, float]]) -> None:
    for _, verdict, _ in judged:
        if flagged(verdict):
            assert verdict.reason
            assert verdict.suggest
