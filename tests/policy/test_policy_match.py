"""Matching: folding, needles, regular expressions, effects, unless, exceptions, and which match decides."""

from __future__ import annotations

import marshal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_rig import bash, call, policy, sets

from guardhook.core import limits
from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.core.text import fold, skeleton
from guardhook.policy import compile as compiler
from guardhook.policy import compiled, index, match


def judge(found, event, effects=(), **more):  # type: ignore[no-untyped-def]
    return match.judge(sets(*(found if isinstance(found, list) else [found])), event, list(effects), **more)


def hits(pattern: dict[str, object], event: Event, *effects: Effect) -> bool:
    return judge(policy(pattern), event, effects).action == "deny"


# -- needles ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needle", "command"),
    [
        ('rm -rf "/etc"', 'sudo rm -rf "/etc" now'),
        ("C:\\Windows", "del C:\\Windows\\x"),
        ("a\tb", "x a\tb y"),
        ("one\ntwo", "one\ntwo"),
        ('"command"', "anything"),
        ("{", "no brace in here"),
        ("RM -RF", "rm -rf /"),
        ("ｒｍ -rf", "rm -rf /"),
        ("rm", "ｒｍ -rf"),
    ],
)
def test_needle_is_found_in_the_raw_text_and_in_the_json(needle: str, command: str) -> None:
    assert hits({"input_contains": needle}, bash(command))


def test_json_needle_spans_key_and_value() -> None:
    assert hits({"input_contains": '"mode":"write"'}, call("Write", {"mode": "write", "path": "x"}))
    assert hits({"input_contains": '"n":[1,2]'}, call("Write", {"n": [1, 2]}))
    assert not hits({"input_contains": '"mode":"write"'}, call("Write", {"mode": "read"}))


def test_keys_numbers_and_constants_are_text_too() -> None:
    event = call("Write", {"file_path": "x", "deep": [{"port": 4444, "force": True, "none": None}]})
    for needle in ("file_path", "4444", "true", "null"):
        assert hits({"input_contains": needle}, event), needle


def test_needle_does_not_reach_across_strings() -> None:
    assert not hits({"input_contains": "ab"}, call("Write", {"x": "a", "y": "b"}))


@pytest.mark.parametrize(
    "name",
    [
        "DELETE_USER", "ｄｅｌｅｔｅ_user", "del\u200bete_user", "del\u00adete_user", "del\u2060ete", "del\ufe0fete", "del\u180eete",
        "d\u200eelete", "del\U000e0065ete", "del\u034fete", "del\u115fete", "dele\u0301te", "del\x00ete", "del\nete", "dеlеtе", "ᴅelete",
    ],
)  # fmt: skip
def test_a_name_can_not_hide_from_name_contains(name: str) -> None:
    assert hits({"name_contains": "delete"}, call(name))
    assert not hits({"name_contains": "delete"}, call("create_user"))


def test_a_match_that_only_folding_gives_is_reported_as_a_lookalike() -> None:
    plain = judge(policy({"input_contains": "delete"}), bash("DELETE it"))
    hidden = judge(policy({"input_contains": "delete"}), bash("dеlеtе it"))
    assert [m.lookalike for m in plain.matches + hidden.matches] == [False, True]
    assert "look-alike" in hidden.reason
    assert "look-alike" not in plain.reason


def test_the_matched_text_is_cited() -> None:
    assert judge(policy({"input_contains": "rm -rf"}), bash("sudo rm -rf /")).span == "rm -rf"
    assert judge(policy({"input_regex": r"rm\s+-\w+"}), bash("sudo RM  -rf /")).span == "RM  -rf"


def test_output_contains_looks_at_the_output_only() -> None:
    event = bash("x")
    event.output = {"stdout": "secret"}
    assert hits({"output_contains": "secret"}, event)
    assert not hits({"output_contains": "secret"}, bash("secret"))


def test_reason_is_the_policys_own_and_why_names_the_keys() -> None:
    found = policy(
        {"step_type": "tool_call", "name_contains": "Bash", "input_contains": "x"}, description="about x", reason="no x"
    )
    verdict = judge(found, bash("x"))
    assert verdict.reason == "no x"
    assert verdict.matches[0].why == "step_type=tool_call, name contains 'Bash', input contains 'x'"
    assert judge(policy({"input_contains": "x"}, description="about x"), bash("x")).reason == "about x"
    assert judge(policy({"input_contains": "x"}), bash("x")).reason == "input contains 'x'"


@settings(max_examples=150, deadline=None)
@given(st.text(min_size=1, max_size=6), st.text(max_size=8), st.text(max_size=8))
def test_folding_both_sides_never_loses_a_plain_match(needle: str, before: str, after: str) -> None:
    text = f"{before}\n{needle}\n{after}"  # marks must not combine across the edge
    folded = skeleton(fold(needle))
    if folded.strip():
        assert hits({"input_contains": needle}, call("Write", {"content": text}))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert skeleton(fold(skeleton(fold(text)))) == skeleton(fold(text))


# -- regular expressions ----------------------------------------------------------------------------------------------------


def test_regex_is_tried_raw_and_folded() -> None:
    assert hits({"name_regex": "^delete$"}, call("ＤＥＬＥＴＥ"))
    assert hits({"name_regex": "^ＤＥＬ"}, call("ＤＥＬＥＴＥ"))
    assert hits({"input_regex": r"drop\s+table"}, bash("DR\u200bOP   table users"))
    assert not hits({"input_regex": r"drop\s+table"}, bash("drop the table"))


def test_regex_sees_values_but_not_keys() -> None:
    assert not hits({"input_regex": r"\bcommand\b"}, bash("ls"))


def test_padding_does_not_hide_a_match() -> None:
    assert hits({"input_regex": r"rm\b.*-rf"}, bash("rm " + "-v " * 40_000 + "-rf /"))


@pytest.mark.parametrize("source", [r"^(?:x+x+){2,9}y", r"(?:a{1,9}a{1,9}){2,40}b", r"a.*a.*a.*a.*b$"])
def test_a_regex_that_runs_out_of_time_counts_as_a_match_when_it_blocks(source: str) -> None:
    text = ("x" if "x+" in source else "a") * 30_000
    event = call("Write", {"content": text + "\n"})
    denied = judge(policy({"input_regex": source}), event)
    assert denied.action == "deny"
    assert "time limit" in denied.reason
    assert denied.degraded
    assert judge(policy({"input_regex": source}, "warn"), event).action == "allow"


def test_time_that_ran_out_does_not_let_the_next_regex_through() -> None:
    found = [
        policy({"input_regex": r"a.*a.*a.*a.*b$"}, name="slow"),
        policy({"input_regex": r"zzz|aab"}, name="next"),
        policy({"input_regex": r"needle"}, name="ruled out by its literal"),
    ]
    verdict = judge(found, call("Write", {"content": "aac" * 20_000 + "aab no"}))
    names = [m.policy for m in verdict.matches]
    assert "slow" in names
    assert "ruled out by its literal" not in names


@pytest.mark.parametrize("source", [r"a*[cd]", r"(?=a*[cd])a", r"a{0,50000}[cd]"])
def test_a_step_through_a_long_text_does_not_hide_the_clock_from_the_engine(source: str) -> None:
    """The engine looks at its clock every 65,536 steps: with 5 MB a step, this took 14 s of 40 ms, deaf to every signal."""
    budget = match.Budget()
    event = call("Write", {"content": "a" * 5_000_000})
    (found,) = match.matches([compiler.in_memory([policy({"input_regex": source})])], event, [], budget=budget)
    assert "time limit" in found.reason and budget.ran_out
    assert budget.left[""] > -2


def test_a_match_anywhere_in_a_long_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REGEX_SECONDS", 60.0)  # about what is found, not about how fast this machine is
    event = call("Write", {"content": "foo" + "a" * 3_000_000 + "bar"})
    assert hits({"input_regex": r"foo.*bar$"}, event)
    assert not hits({"input_regex": r"foo.*baz"}, event)


def test_project_policies_have_a_budget_of_their_own() -> None:
    user = compiler.in_memory([policy({"input_regex": r"drop\s+table"}, name="user")])
    project = compiler.in_memory([policy({"input_regex": r"a.*a.*a.*a.*b$"}, name="slow", layer="project")])
    project.layer = "project"
    budget = match.Budget()
    event = call("Write", {"content": "drop table\n" + "aac" * 20_000})
    found = match.matches([project, user], event, [], budget=budget)
    assert [m.layer for m in found] == ["project", "user"]
    assert budget.left[""] > limits.REGEX_SECONDS / 2


def test_opcodes_that_can_not_be_restored_count_as_a_match() -> None:
    made = compiler.in_memory([policy({"input_regex": "drop table"})])
    made._patterns = (marshal.dumps(("not", "a", "pattern")),)
    assert match.judge([made], bash("drop table"), []).action == "deny"
    assert match.judge([made], bash("ls"), []).action == "allow"


# -- facts of the event -----------------------------------------------------------------------------------------------------


def test_step_type() -> None:
    step = call("summary", {"x": "y"})
    step.step_type = "llm_call"
    assert hits({"step_type": "llm_call", "input_contains": "y"}, step)
    assert not hits({"step_type": "thought"}, step)
    assert hits({"step_type": "tool_call"}, bash("ls"))
    assert hits({"input_contains": "y"}, step)


def test_tool_matches_kinds_and_native_names() -> None:
    assert hits({"tool": "shell"}, bash("ls"))
    assert hits({"tool": ["file_read", "Ba*"]}, bash("ls"))
    assert not hits({"tool": "file_write"}, bash("ls"))
    assert hits({"tool": "mcp__github__*"}, call("mcp__github__delete_repo"))
    assert hits({"tool": "mcp__GitHub__*"}, call("mcp__ｇithub__delete_repo"))


def test_a_tool_that_carries_a_command_line_is_a_shell() -> None:
    event = call("my_runner", {"command": "rm -rf /"}, commands=["rm -rf /"])
    assert hits({"tool": "shell", "input_contains": "rm -rf"}, event)


def test_harness_and_agent() -> None:
    assert hits({"harness": ["codex", "claude-code"]}, bash("ls"))
    assert not hits({"harness": "codex"}, bash("ls"))
    sub = call("Bash", {"command": "x"}, agent="a1", agent_type="Code-Reviewer")
    assert hits({"agent": "code-*"}, sub)
    assert not hits({"agent": "code-*"}, bash("x"))
    assert hits({"agent": "main"}, bash("x"))


def test_prompts_are_judged_only_by_policies_that_name_them() -> None:
    prompt = Event("claude-code", "UserPromptSubmit", "user_prompt", {})
    prompt.prompt = "please rm -rf everything"
    assert not hits({"input_contains": "rm -rf"}, prompt)
    assert hits({"event": "user_prompt", "input_contains": "rm -rf"}, prompt)
    assert not hits({"event": "user_prompt", "input_contains": "rm -rf"}, bash("rm -rf /"))


# -- unusable keys: only older or foreign stores can still hold them ---------------------------------------------------------


def stored(pattern: dict[str, object], action: str = "deny", event: Event | None = None) -> match.Verdict:
    patterns = index.Patterns()
    on_event, on_effect = index.conditions_of(pattern, patterns)
    row = ("p", "id", action, "user", 0, "", "", on_event, on_effect, None, ())
    frozen = tuple(marshal.dumps(p) for p in patterns.frozen)
    made = compiled.Compiled(("s", "", (marshal.dumps(row),), index.index_of([(pattern, row)]), frozen, {}, (), {}, []))
    return match.judge([made], event or bash("ls"), [])


UNUSABLE = [
    {"input_contains": ["x"]},
    {"input_contains": {"a": 1}},
    {"name_contains": "\u200b\u2060"},
    {"input_contains": ""},
    {"step_type": "toolcall"},
    {"name_regex": "("},
    {"name_regex": "(a+)+$"},
    {"name_regex": 5},
    {"tool": []},
    {"name_contain": "typo only"},
]


@pytest.mark.parametrize("pattern", UNUSABLE)
def test_a_stored_unusable_policy_fails_closed(pattern: dict[str, object]) -> None:
    assert stored(pattern).action == "deny"
    assert "failing closed" in stored(pattern).matches[0].why
    assert stored(pattern, "require_review").action == "require_review"
    assert stored(pattern, "warn").matches == []
    assert stored(pattern, "allow").matches == []


def test_an_empty_pattern_never_matches() -> None:
    assert stored({}).action == "allow"


def test_an_unusable_key_counts_as_matched_but_the_others_still_must() -> None:
    pattern: dict[str, object] = {"name_regex": "(", "input_contains": "drop"}
    assert stored(pattern).action == "allow"
    assert stored(pattern, event=bash("drop table")).action == "deny"


def test_scalar_needles_are_their_text() -> None:
    assert stored({"input_contains": 123}, event=bash("port 123")).action == "deny"
    assert stored({"input_contains": True}, event=call("Write", {"force": True})).action == "deny"
    assert stored({"input_contains": 123}).action == "allow"


# -- which match decides -----------------------------------------------------------------------------------------------------


def test_deny_beats_a_higher_priority_allow() -> None:
    found = [policy({"tool": "shell"}, "allow", name="a", priority=100), policy({"tool": "shell"}, "deny", name="z")]
    verdict = judge(found, bash("ls"))
    assert (verdict.action, verdict.policy) == ("deny", "z")
    assert [m.policy for m in verdict.matches] == ["a", "z"]


@pytest.mark.parametrize(
    "order", [("deny", "warn"), ("deny", "require_review"), ("require_review", "warn"), ("warn", "allow")]
)
def test_the_stricter_action_wins(order: tuple[str, str]) -> None:
    found = [policy({"tool": "shell"}, order[1], name="a", priority=9), policy({"tool": "shell"}, order[0], name="b")]
    assert judge(found, bash("ls")).action == order[0]


def test_of_equals_priority_then_name_is_cited() -> None:
    found = [policy({"tool": "shell"}, name=n, priority=p) for n, p in (("c", 1), ("b", 1), ("a", 0))]
    assert judge(found, bash("ls")).policy == "b"


def test_no_match_is_no_objection() -> None:
    verdict = judge(policy({"input_contains": "zzz"}), bash("ls"))
    assert (verdict.action, verdict.policy, verdict.reason) == ("allow", None, "")
    assert verdict.set


def test_all_sets_count_and_the_strictest_decides() -> None:
    first = compiler.in_memory([policy({"tool": "shell"}, "warn", name="a")])
    second = compiler.in_memory([policy({"tool": "shell"}, "deny", name="b")])
    verdict = match.judge([first, second], bash("ls"), [])
    assert (verdict.action, verdict.policy) == ("deny", "b")
    assert verdict.set == f"{first.set}+{second.set}"


def test_observe_is_passed_on() -> None:
    made = compiler.in_memory([policy({"tool": "shell"})], {"preset": "observe"})
    assert match.judge([made], bash("ls"), []).mode == "observe"


# -- effects -----------------------------------------------------------------------------------------------------------------

DELETE = Effect("delete", path="/home/u/work/x", path_classes=frozenset({"home_child"}), flags=frozenset({"recursive"}))
PUSH = Effect(
    "git", program="git", git="push", argv=("push", "--force", "origin"), flags=frozenset({"force", "loses-commits"})
)
CONNECT = Effect("connect", program="curl", host="evil.example.com", flags=frozenset({"upload"}))


@pytest.mark.parametrize(
    ("pattern", "effect", "expected"),
    [
        ({"effect": "delete"}, DELETE, True),
        ({"effect": "delete:recursive"}, DELETE, True),
        ({"effect": "delete:recursive:force"}, DELETE, False),
        ({"effect": ["write", "delete"]}, DELETE, True),
        ({"effect": "write"}, DELETE, False),
        ({"effect": "delete", "path": "/home/u/work/**"}, DELETE, True),
        ({"effect": "delete", "path": "/home/v/**"}, DELETE, False),
        ({"path_class": ["root", "home_child"]}, DELETE, True),
        ({"path_class": "root"}, DELETE, False),
        ({"program": "g*", "argument": "--force*"}, PUSH, True),
        ({"argument": "-f"}, PUSH, False),
        ({"git": "push"}, PUSH, True),
        ({"git": ["loses-commits"]}, PUSH, True),
        ({"git": "reset"}, PUSH, False),
        ({"host": "*.example.com"}, CONNECT, True),
        ({"host": "example.com"}, CONNECT, False),
        ({"effect": "connect:upload", "program": "curl"}, CONNECT, True),
    ],
)
def test_effect_keys(pattern: dict[str, object], effect: Effect, expected: bool) -> None:
    assert hits(pattern, bash("x"), effect) is expected


def test_all_effect_keys_must_hold_on_the_same_effect() -> None:
    pattern: dict[str, object] = {"effect": "delete", "program": "git"}
    assert not hits(pattern, bash("x"), DELETE, PUSH)


def test_effect_keys_need_an_effect() -> None:
    assert not hits({"effect": "delete"}, bash("x"))
    assert not hits({"program": "rm"}, bash("rm x"))


def test_event_and_effect_keys_mix() -> None:
    assert hits({"tool": "shell", "effect": "delete"}, bash("x"), DELETE)
    assert not hits({"tool": "mcp", "effect": "delete"}, bash("x"), DELETE)


def test_the_effects_text_is_cited() -> None:
    effect = Effect("delete", path="/x", span=(3, 8))
    verdict = judge(policy({"effect": "delete"}), bash("ls;rm -rf x"), [effect])
    assert verdict.span == "rm -r"
    assert verdict.matches[0].effect is effect


def test_effect_words_are_folded_and_lookalikes_told() -> None:
    effect = Effect("run", program="ｒｍ", lookalike=True)
    verdict = judge(policy({"effect": "run", "program": "rm"}), bash("x"), [effect])
    assert verdict.action == "deny"
    assert verdict.matches[0].lookalike


# -- unless and exceptions ---------------------------------------------------------------------------------------------------


def test_unless_on_the_event() -> None:
    found = policy({"input_contains": "rm -rf"}, unless={"input_contains": "--dry-run"})
    assert judge(found, bash("rm -rf x")).action == "deny"
    assert judge(found, bash("rm -rf x --dry-run")).action == "allow"


def test_unless_on_effects_frees_only_that_effect() -> None:
    found = policy({"effect": "delete"}, unless={"path": "/tmp/**"})
    safe = Effect("delete", path="/tmp/x")
    assert judge(found, bash("x"), [safe]).action == "allow"
    assert judge(found, bash("x"), [safe, DELETE]).action == "deny"


def test_unless_with_both_needs_both() -> None:
    found = policy({"effect": "delete"}, unless={"input_contains": "ok", "path": "/tmp/**"})
    safe = Effect("delete", path="/tmp/x")
    assert judge(found, bash("ok"), [safe]).action == "allow"
    assert judge(found, bash("no"), [safe]).action == "deny"


def test_an_unless_that_runs_out_of_time_does_not_free() -> None:
    found = policy({"tool": "file_write"}, unless={"input_regex": r"a.*a.*a.*a.*b$"})
    assert judge(found, call("Write", {"content": "aac" * 20_000})).action == "deny"


def excepted(**more: object):  # type: ignore[no-untyped-def]
    from guardhook.policy.model import Pattern, PolicyException

    found = policy({"input_contains": "rm"}, **more)
    found.exceptions = [(PolicyException("p", Pattern(input_contains="build"), "ours", "2030-01-01"), 1000.0)]
    return found


def test_an_exception_holds_until_its_day() -> None:
    assert judge(excepted(), bash("rm build"), now=999.0).action == "allow"
    assert judge(excepted(), bash("rm build"), now=1001.0).action == "deny"
    assert judge(excepted(), bash("rm src"), now=999.0).action == "deny"


# -- long texts, many policies -----------------------------------------------------------------------------------------------


def test_a_long_text_is_searched_like_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    needles = ["drop table", "kubectl", "  two blanks", "tab\there", "zürich", "end", "a\nb"]
    found = [policy({"input_contains": n}, name=str(i)) for i, n in enumerate(needles)]
    text = "drop table; kubectl!;  two blanks;tab\there;Zürich;a\nb;the END"
    wanted = {str(i) for i in range(len(needles))}
    event = call("Write", {"content": text})
    assert {m.policy for m in judge(found, event).matches} == wanted
    monkeypatch.setattr(match, "_MUCH", 0)
    assert {m.policy for m in judge(found, event).matches} == wanted
    assert judge(found, call("Write", {"content": "drop\ttable kubect l"})).matches == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("ab \n", min_size=1, max_size=4), min_size=1, max_size=5), st.text("ab \n", max_size=20))
def test_boiling_down_a_text_loses_no_literal(literals: list[str], text: str) -> None:
    pairs = [(literal, (i,)) for i, literal in enumerate(literals)]
    kept = match._possible(pairs, text, "\n".join(set(text.split())))
    assert [p for p in pairs if p[0] in text and p not in kept] == []


def test_a_thousand_policies_are_all_reachable() -> None:
    found = [policy({"input_contains": f"needle-{i}-"}, name=f"p{i:04}") for i in range(1000)]
    made = sets(*found)
    for i in (0, 1, 499, 999):
        assert match.judge(made, bash(f"x needle-{i}- y"), []).policy == f"p{i:04}"
    assert match.judge(made, bash("needle--"), []).action == "allow"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], set()),
        ([{"input_contains": "x"}], set()),
        ([{"program": ["Terraform", "tofu"], "argument": "destroy"}], {"terraform", "tofu"}),
        ([{"host": "evil.example.com"}], set()),
        ([{"git": "push"}, {"effect": "git", "argument": "-f"}], {"git"}),
        ([{"program": "terraform"}, {"effect": "delete"}], {"terraform"}),
        ([{"effect": ["delete:recursive", "cloud"], "path_class": "project"}], set()),
        ([{"effect": "run", "argument": ["--Force", "-x"]}], {"--force", "-x"}),
        ([{"effect": "run:interactive"}], set()),
        ([{"effect": "read", "path_class": "secret"}], set()),
        ([{"effect": "read", "path_class": "system"}], None),
        ([{"path": "docs/**"}], None),
        ([{"effect": "run"}], None),
        ([{"program": "py*"}], None),
        ([{"effect": "write", "tool": "file_write"}], set()),
    ],
)
def test_triggers_for_the_quick_pass(patterns: list[dict[str, object]], expected: set[str] | None) -> None:
    assert index.triggers_of(patterns) == expected
