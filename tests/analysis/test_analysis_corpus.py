"""The corpus: every row's effects, judged by the reference rules, and the confusion matrix in the test's output."""

from __future__ import annotations

import analysing
import pytest
import reference

from guardhook.analysis import quick, vocabulary

GROUPS = analysing.groups()


@pytest.mark.parametrize(
    "group", GROUPS, ids=[f"{g['file']}-{g['class']}-{g['expect']}-{i}" for i, g in enumerate(GROUPS)]
)
def test_every_row_of_a_group(group: dict[str, object]) -> None:
    wrong: list[str] = []
    for command in group["commands"]:  # type: ignore[attr-defined]
        effects = analysing.shell(command)
        names = reference.flagged(effects)
        if bool(names) != (group["expect"] == "flagged"):
            wrong.append(f"{command!r}: {names} {effects if names else ''}")
        for spelling in group.get("effects", []):  # type: ignore[attr-defined]
            if not analysing.having(effects, spelling):
                wrong.append(f"{command!r}: no effect {spelling}; {effects}")
    assert not wrong, "\n".join(wrong)


def test_confusion_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    table: dict[tuple[str, str], int] = {}
    for group in GROUPS:
        for command in group["commands"]:  # type: ignore[attr-defined]
            got = "flagged" if reference.flagged(analysing.shell(command)) else "harmless"
            key = (str(group["expect"]), got)
            table[key] = table.get(key, 0) + 1
    with capsys.disabled():
        print(f"\ncorpus: {table.get(('flagged', 'flagged'), 0)} flagged as expected, {table.get(('flagged', 'harmless'), 0)} missed, "
              f"{table.get(('harmless', 'harmless'), 0)} harmless as expected, {table.get(('harmless', 'flagged'), 0)} false alarms")  # fmt: skip
    assert sum(table.values()) > 1200
    assert table.get(("flagged", "harmless"), 0) == 0
    assert table.get(("harmless", "flagged"), 0) == 0


def test_no_row_breaks_the_analyser() -> None:
    for command in analysing.commands():
        assert not analysing.having(analysing.shell(command), "unverified:internal"), command


def test_flags_are_in_the_vocabulary() -> None:
    unknown = set()
    for command in analysing.commands():
        for effect in analysing.shell(command):
            spelling = ":".join([effect.kind, *sorted(effect.flags)])
            if vocabulary.problem(spelling):
                unknown.add((effect.kind, vocabulary.problem(spelling), command))
    assert not unknown


def test_the_quick_pass_lets_no_flagged_row_through() -> None:
    triggers = vocabulary.triggers()
    passed = 0
    for group in GROUPS:
        for command in group["commands"]:  # type: ignore[attr-defined]
            if not quick(command, triggers):
                continue
            passed += 1
            assert group["expect"] == "harmless", command
            for effect in analysing.shell(command):
                assert effect.kind in ("run", "read", "git"), (command, effect)
                assert not effect.path_classes & {"secret", "guard"}, (command, effect)
    assert passed > 30


def test_spans_point_into_the_command() -> None:
    for command in analysing.commands():
        for effect in analysing.shell(command):
            if effect.span is not None:
                assert 0 <= effect.span[0] <= effect.span[1] <= len(command), (command, effect)
