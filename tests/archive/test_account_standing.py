"""How far an answer stands: the table of examples, the laws, and what never moves anything."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from archive_rig import again, asked, called, denied, edit, happened, said_, shell, turn
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.archive.account import declarations, shells
from guardhook.archive.account.assess import LAYERS, LIFTING, UnknownTurn, assess_turn
from guardhook.archive.account.declarations import CONFIG, Declarations
from guardhook.archive.packing import pack_recording
from guardhook.archive.unpacking import unpack_recording

PYTEST = declarations.of({"verify": [{"id": "tests", "label": "the tests", "argv": ["pytest"]}]}, origin=CONFIG)
COVERS = declarations.of(
    {"verify": [{"id": "tests", "label": "the tests", "argv": ["pytest"], "covers_answer": True}]}, origin=CONFIG
)
TWO = declarations.of({"verify": [{"id": "tests", "argv": ["pytest"]}, {"id": "lint", "argv": ["ruff"]}]}, origin=CONFIG)  # fmt: skip
NONE = Declarations()


def of(recording: dict[str, Any], declared: Declarations = NONE, **more: Any) -> dict[str, Any]:
    found = assess_turn(recording, declarations=declared, **more)
    assert found is not None
    return found


def words(found: dict[str, Any]) -> tuple[str, str, list[str]]:
    return found["assessment"], found["standing"], [r["reason"] for r in found["reasons"]]


SEARCH = "mcp__db__search"
ROWS = [
    ("only chat", turn(asked(), said_()), NONE, ("not-applicable", "not-assessed", [])),
    ("text read", turn(asked(), called("Read", output="x = 1"), said_()), NONE, ("not-applicable", "not-assessed", [])),
    ("rows", turn(asked(), called(SEARCH, output=[{"a": 1}]), said_()), NONE, ("unrefuted", "consistent", [])),
    ("no rows", turn(asked(), called(SEARCH, output=[]), said_()), NONE, ("unknown", "not-sure", ["empty-undeclared"])),
    ("edit, nothing declared", turn(asked(), edit(), said_()), NONE, ("not-applicable", "not-assessed", [])),
    ("edit, not tested", turn(asked(), edit(), said_()), PYTEST, ("unknown", "not-sure", ["changed-unverified"])),
    ("edit, tested", turn(asked(), edit(), shell("pytest -q"), said_()), PYTEST, ("unrefuted", "consistent", [])),
    ("tested, edit", turn(asked(), shell("pytest"), edit(), said_()), PYTEST, ("unknown", "not-sure", ["changed-unverified"])),
    ("failed", turn(asked(), shell("pytest", 1), said_()), PYTEST, ("unknown", "not-sure", ["result-error", "answer-check-failed"])),
    ("failed, edit, passed", turn(asked(), shell("pytest", 1), edit(), shell("pytest"), said_()), PYTEST, ("unrefuted", "consistent", [])),
    ("hidden", turn(asked(), edit(), shell("pytest || true"), said_()), PYTEST, ("unknown", "not-sure", ["check-unreachable"])),
    ("denied", turn(asked(), denied(), said_()), NONE, ("unknown", "not-sure", ["call-denied"])),
    ("asked", turn(asked(), shell("make", 2), called(done=False, id="p"), ("tool.approval_required", {"call_id": "p", "source": "harness"})), NONE,
     ("unknown", "ask", ["asked", "result-error"])),
]  # fmt: skip


@pytest.mark.parametrize(("recording", "declared", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_83_examples(recording: dict[str, Any], declared: Declarations, expected: tuple[str, str, list[str]]) -> None:
    before = copy.deepcopy(recording)
    assert words(of(recording, declared)) == expected
    assert recording == before


def known_run(*parts: Any, **started: Any) -> dict[str, Any]:
    return turn(asked(declarations_sha256=COVERS.digest(), **started), *parts)


def test_83_known() -> None:
    found = of(known_run(edit(), shell("pytest"), said_()), COVERS)
    assert words(found) == ("known", "known", [])
    support = found["support"]
    assert (support["kind"], support["check_id"]) == ("declared-check", "tests")
    assert len(support["command_digest"]) == len(support["answer_digest"]) == 64


def test_83_and_100_no_answer() -> None:
    assert assess_turn(turn(asked())) is None
    assert assess_turn(turn(asked(), shell("ls"), ("run.completed", {}))) is None
    assert assess_turn(happened()) is None
    assert assess_turn(turn(asked(), said_(), shell("ls"), called(done=False))) is None  # worked on after a draft


PART = st.sampled_from([
    shell("pytest"), shell("pytest", 1), shell("pytest", None), shell("ls"), shell("make", 2), edit(), edit("b.py"), denied(), denied(mode="observe"),
    called(SEARCH, output=[]), called(SEARCH, output=[{"a": 1}]), called(done=False), said_(), [again()], called("Read", output="[REDACTED:api_key]"),
    [("recorder.drop_detected", {"count": 2})], [("steering.received", {"message": "x"})], [("tool.call.completed", {"call_id": "z", "unpaired": True})],
    [("run.waiting_for_user", {"kind": "permission_prompt"})], [("run.failed", {"error": "x"})], [("odd", {})], [asked()],
])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PART, max_size=8), st.sampled_from([NONE, PYTEST, COVERS, TWO]))
def test_84_and_85_laws(parts: list[Any], declared: Declarations) -> None:
    recording = known_run(*parts)
    found = assess_turn(recording, declarations=declared)
    assert found == assess_turn(copy.deepcopy(recording), declarations=declared)
    if found is None:
        return
    lifted = any(c["check"] in LIFTING and c["ran"] for c in found["checked"])  # type: ignore[attr-defined, union-attr, call-overload]
    reasons = found["reasons"]
    assert (found["assessment"] == "unknown") is bool(reasons)
    assert (found["assessment"] == "not-applicable") is (
        not reasons and ("keptOut" in found or ("support" not in found and not lifted))
    )
    if reasons:
        assert isinstance(reasons, list) and "support" not in found
        names = [r["reason"] for r in reasons]
        assert names == sorted(names, key=list(LAYERS).index)
        assert (found["standing"] == "ask") is (names[0] == "asked")
    assert (found["assessment"], found["standing"]) in {
        ("unknown", "not-sure"), ("unknown", "ask"), ("known", "known"), ("unrefuted", "consistent"), ("not-applicable", "not-assessed"),
    }  # fmt: skip


def test_85_a_reason_outranks_support() -> None:
    assert words(of(known_run(edit(), called(SEARCH, output=[]), shell("pytest"), said_()), COVERS))[1] == "not-sure"


def test_86_membership_never_makes_known() -> None:
    on = declarations.of({"names_and_numbers": True})
    clean = turn(asked("count"), called("Read", output="there are 42 in src/a.py"), said_("42 of them, in `src/a.py`."))
    assert words(of(clean, on)) == ("unrefuted", "consistent", [])
    made_up = turn(asked("count"), called("Read", output="nothing"), said_("There are 137 in src/b.py"))
    found = of(made_up, on)
    assert words(found)[2] == ["value-unsupported"] and len(found["reasons"][0]["witness"]) == 2


def test_79_unsupported_tokens_are_capped() -> None:
    on = declarations.of({"names_and_numbers": True})
    answer = " ".join(str(100 + n) for n in range(13))
    reason = of(turn(asked(), said_(answer)), on)["reasons"][0]
    assert len(reason["witness"]) == 12 and reason["atLeast"] is True


def test_87_this_turn_only() -> None:
    recording = turn(asked(), called(SEARCH, output=[]), said_(), again(), called(SEARCH, output=[{"a": 1}]), said_())
    assert words(of(recording)) == ("unrefuted", "consistent", [])
    assert words(of(recording, turn=1))[2] == ["empty-undeclared"]
    steered = turn(asked(), called(SEARCH, output=[]), ("steering.received", {"message": "go on"}), called(SEARCH, output=[1]), said_())  # fmt: skip
    assert words(of(steered))[2] == ["empty-undeclared"]
    injected = turn(asked(), called(SEARCH, output=[]), said_(), ("conversation.continued", {"message": "x", "source": "hook"}), said_())  # fmt: skip
    assert words(of(injected))[2] == ["empty-undeclared"]
    with pytest.raises(UnknownTurn):
        assess_turn(recording, turn=3)
    for bad in (0, -1, True, "first"):
        with pytest.raises(UnknownTurn):
            assess_turn(recording, turn=bad)


def test_88_made_good_on_the_same_target_only() -> None:
    assert words(of(turn(asked(), shell("make", 2), shell("make"), said_())))[2] == []
    assert words(of(turn(asked(), shell("make", 2), shell("make all"), said_())))[2] == ["result-error"]
    assert words(of(turn(asked(), edit("a", error="no"), edit("b"), said_())))[2] == ["result-error"]
    assert words(of(turn(asked(), edit("a", error="no"), edit("a"), said_())))[2] == []
    assert words(of(turn(asked(), denied("shell", {"command": "rm"}), shell("rm"), said_())))[2] == []
    assert words(of(turn(asked(), denied("shell", {"command": "rm -r"}), shell("rm"), said_())))[2] == ["call-denied"]


def test_89_text_is_no_error() -> None:
    assert words(of(turn(asked(), called("Read", output="Error: it failed. exit code 1"), said_())))[2] == []


@pytest.mark.parametrize("mark", ["[REDACTED:api_key]", "[REDACTED:limit]", "a" * 64])
def test_90_what_was_left_out_is_no_value(mark: str) -> None:
    found = of(turn(asked(), called(SEARCH, output=mark), called(SEARCH, output=[1]), said_()))
    assert words(found) == ("not-applicable", "not-assessed", []) and found["keptOut"] == ["output"]
    found = of(turn(asked(), called(SEARCH, output=[1]), said_(mark)))
    assert found["keptOut"] == ["answer"] and found["standing"] == "not-assessed"
    stripped = of(turn(asked(), called(SEARCH, output="", incomplete=["stripped"]), said_()))
    assert stripped["keptOut"] == ["output"]
    assert of(turn(asked(mark), said_()))["standing"] == "not-assessed"


def test_91_what_is_declared_for_a_report_is_never_enough() -> None:
    report = declarations.of({"verify": [{"id": "tests", "label": "the tests", "argv": ["pytest"], "covers_answer": True}]})  # fmt: skip
    recording = known_run(edit(), shell("pytest"), said_())
    assert words(of(recording, report)) == ("unrefuted", "consistent", [])
    assert words(of(turn(asked(declarations_sha256="0" * 64), edit(), shell("pytest"), said_()), COVERS))[1] == "consistent"  # fmt: skip
    assert words(of(turn(asked(), edit(), shell("pytest"), said_()), COVERS))[1] == "consistent"
    assert words(of(turn(asked(declarations_sha256=PYTEST.digest()), edit(), shell("pytest"), said_()), PYTEST))[1] == "consistent"  # fmt: skip


def test_92_anything_may_have_changed_after_the_pass() -> None:
    assert words(of(known_run(shell("pytest"), shell("make install"), said_()), COVERS))[:2] == ("unrefuted", "consistent")  # fmt: skip
    assert words(of(known_run(shell("make"), shell("pytest"), said_()), COVERS))[0] == "known"
    observed = shell("pytest")
    observed[1][1]["mode"] = "observe"
    assert words(of(known_run(observed, said_()), COVERS))[1] == "consistent"
    assert words(of(known_run(shell("pytest"), edit(), said_()), COVERS))[2] == ["changed-unverified"]


def test_93_no_exit_code_is_no_pass() -> None:
    found = of(turn(asked(), edit(), shell("pytest", None), said_()), PYTEST)
    assert words(found)[2] == ["check-unreachable"]
    assert (found["reasons"][0]["check"], found["assessment"]) == ("verification", "unknown")
    assert words(of(turn(asked(), shell("pytest", None), said_()), PYTEST))[2] == ["check-unreachable"]


CLEAR = ["pytest", "pytest -q tests", "cd a && pytest", "A=1 pytest", "env A=1 B=2 pytest -x", "pytest > log 2>&1", " pytest ; ", "export A=1 && pytest", "pytest 'a|b'"]  # fmt: skip
UNCLEAR = [
    "pytest | tee log", "pytest; echo ok", "pytest &", "x=$(pytest)", "pytest || true", "set -o pipefail; pytest | tee log", "pytest && true", "! pytest",
    "(pytest)", "if pytest; then echo y; fi", "pip install x && pytest", "pytest\necho done", "echo `pytest`", "pytest $(ls)", "cat <(pytest)", "cd a; pytest",
    "while pytest; do :; done", "pytest && pytest",
]  # fmt: skip
NOT_IT = ["echo pytest", "pytests", "python -m pytest", "ls", "", "pytest-xdist", "'", "cat pytest"]


def test_94_whose_exit_code_it_is() -> None:
    for command in CLEAR:
        found = shells.attempt(command, PYTEST.checks)
        assert found is not None and found.clear, command
    for command in UNCLEAR:
        found = shells.attempt(command, PYTEST.checks)
        assert found is not None and not found.clear, command
        assert words(of(turn(asked(), edit(), shell(command), said_()), PYTEST))[2] == ["check-unreachable"], command
    for command in NOT_IT:
        assert shells.attempt(command, PYTEST.checks) is None, command
    background = called("Bash", {"command": "pytest", "run_in_background": True}, kind="shell", code=0)
    assert words(of(turn(asked(), edit(), background, said_()), PYTEST))[2] == ["check-unreachable"]


def test_checks_by_glob_and_by_list() -> None:
    globbed = declarations.of({"verify": [{"id": "m", "glob": "make test*"}]}, origin=CONFIG).checks
    assert shells.attempt("make test-all", globbed) is not None and shells.attempt("make build", globbed) is None
    assert shells.command_of({"command": ["bash", "-lc", "pytest -q"]}) == "pytest -q"
    assert shells.command_of({"command": ["pytest", "a b"]}) == "pytest 'a b'"
    assert shells.command_of({"command": 3}) is None and shells.command_of([]) is None


def test_95_results_are_not_told_of() -> None:
    found = of(turn(asked(), called(done=False), edit(done=False), said_()), PYTEST)
    assert words(found) == ("not-applicable", "not-assessed", [])


def test_96_a_gap_in_the_turn() -> None:
    parts = [asked(), called(SEARCH, output=[1]), said_()]
    with_marker = turn(*parts[:2], ("recorder.drop_detected", {"count": 3}), parts[2])
    assert words(of(with_marker))[2] == ["capture-gap"]
    assert words(of(turn(*parts, seqs=[0, 1, 2, 6, 7, 8])))[2] == ["capture-gap"]
    two = turn(*parts, again(), called(SEARCH, output=[1]), said_(), seqs=[0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13])
    assert words(of(two, turn=1))[2] == [] and words(of(two, turn=2))[2] == ["capture-gap"]


def test_98_stored_archived_packed() -> None:
    for _, recording, declared, _ in ROWS:
        again_ = unpack_recording(json.loads(json.dumps(pack_recording(recording))))
        assert json.dumps(of(recording, declared)) == json.dumps(assess_turn(again_, declarations=declared))


def test_99_the_words_of_the_model_move_nothing() -> None:
    for text in ("I am certain.", "I could not verify any of this!", "done"):
        assert words(of(turn(asked(), called(SEARCH, output=[1]), said_(text)))) == ("unrefuted", "consistent", [])


def test_101_bookkeeping_never_lifts() -> None:
    found = of(turn(asked(), called("Read", output="x"), said_()))
    ran = {c["check"]: c["ran"] for c in found["checked"]}
    assert ran["guard-decision"] == ran["pairing"] == 1 and found["standing"] == "not-assessed"


def test_102_another_check_makes_nothing_good() -> None:
    found = of(turn(asked(), edit(), shell("pytest", 1), shell("ruff check"), said_()), TWO)
    assert words(found)[2] == ["result-error", "answer-check-failed"]


def test_other_reasons() -> None:
    open_ = turn(asked(), called(SEARCH, output=[1]), called(done=False), said_())
    assert words(of(open_))[2] == ["result-missing"]
    cut = turn(asked(), called("Read", output="x", incomplete=["cut"]), said_())
    assert words(of(cut))[2] == ["result-truncated"]
    absent = {"rows": [], "coverage": {"searched": "all tables", "not_covered": ["the archive"]}}
    assert words(of(turn(asked(), called(SEARCH, output=absent), said_())))[2] == ["declared-absent", "coverage-gap"]
    early = turn(asked(), called(SEARCH, output=[1]), ("hook.unknown", {"event": "StopFailure"}), ("run.failed", {"error": "limit"}))  # fmt: skip
    assert words(of(early))[2] == ["stopped-early"]
    stray = [("tool.call.completed", {"call_id": "gh_9", "tool": "Bash", "output": "x", "executed": True, "unpaired": True})]  # fmt: skip
    assert "check-unreachable" in words(of(turn(asked(), denied(), stray, said_())))[2]
    waiting = turn(asked(), called(SEARCH, output=[1]), ("run.waiting_for_user", {"kind": "elicitation_dialog"}))
    assert words(of(waiting))[:2] == ("unknown", "ask")
    idle = turn(asked(), called(SEARCH, output=[1]), said_(), ("run.waiting_for_user", {"kind": "idle_prompt"}))
    assert words(of(idle))[1] == "consistent"
    assert of(turn(("odd", {}), said_()))["turnFrom"] == "whole-record" and of(turn(asked(), said_()))["turnFrom"] == "person"  # fmt: skip
