"""The account: its rows and sentences, what it counts, what never gets into it, and how large it may be."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from archive_rig import RUN, again, asked, called, denied, edit, happened, said_, shell, turn
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.archive import facts as facts_
from guardhook.archive import plain
from guardhook.archive.account import declarations, limits, templates, words
from guardhook.archive.account.account import account_for_answer, account_for_session
from guardhook.archive.account.assess import UnknownTurn, assess_turn
from guardhook.archive.account.declarations import CONFIG, Declarations
from guardhook.archive.account.shown import Shower, pointer_key, pointers_of
from guardhook.archive.account.templates import TABLE, VOUCHERS, Teller, Value
from guardhook.core.jsontext import dumps
from guardhook.views.account import as_markdown, as_text, standing_text
from guardhook.views.text import Paint

PYTEST = declarations.of({"verify": [{"id": "tests", "label": "the tests", "argv": ["pytest"]}]}, origin=CONFIG)
NONE = Declarations()
SEARCH = "mcp__db__search"
HEADINGS = ["You asked", "It understood", "It checked", "It did not check", "It found", "How sure", "Anything wrong"]
DIGEST = "44d78c036e7e99e8eb6d79310f30e1b482787acd487124cbf00dd4047d276060"


def of(recording: dict[str, Any], declared: Declarations = NONE, **more: Any) -> dict[str, Any]:
    return account_for_answer(recording, declarations=declared, **more)


def lines(account: dict[str, Any], row: int | str) -> list[dict[str, Any]]:
    found = account["rows"]
    chosen = found[row] if isinstance(row, int) else next(r for r in found if r["id"] == row)
    assert isinstance(chosen["lines"], list)
    return chosen["lines"]


def said_by(account: dict[str, Any], row: str) -> dict[str, str]:
    """Template ids and texts of a row."""
    return {line["template"]["id"]: line["text"] for line in lines(account, row)}


def signals(account: dict[str, Any]) -> list[tuple[str, str]]:
    return [(s["id"], s["tone"]) for s in account["signals"]]


def state(account: dict[str, Any], check: str) -> str:
    return next(str(c["state"]) for c in account["checks"] if c["id"] == check)


@pytest.mark.parametrize("recording", [happened(), {"events": []}, turn(asked(), edit(), said_()), turn(("odd", {}))])
def test_54_seven_rows(recording: dict[str, Any]) -> None:
    account = of(recording)
    assert [r["heading"] for r in account["rows"]] == HEADINGS
    assert [r["id"] for r in account["rows"]] == ["asked", "understood", "checked", "not-checked", "found", "how-sure", "anything-wrong"]  # fmt: skip
    assert all(r["lines"] and r["chips"] for r in account["rows"])
    assert (account["kind"], account["shape"]) == ("guardhook/answer-account", 1)
    assert account["templates"] == {"set": "guardhook-answer-account", "version": 2}


def test_54_silence_is_told() -> None:
    account = of(happened())
    assert "asked.none" in said_by(account, "asked") and account["rows"][0]["status"] == "not-recorded"
    assert account["summary"]["sentence"].startswith("The record holds nothing")
    assert account["question"] == {"value": None, "source": "record", "status": "not-recorded", "pointers": [], "missing": "no-event"}  # fmt: skip


def test_55_all_calls_are_judged_and_counted() -> None:
    parts: list[Any] = [called("Read", {"file_path": f"f{n}"}, output="x") for n in range(53)]
    parts += [called("Write", {"file_path": "z"}, error="no"), called(SEARCH, output=[])]
    account = of(turn(asked(), *parts, said_()))
    facts = account["facts"]
    assert (len(facts["calls"]), facts["omitted"], facts["counts"]["calls"]) == (50, 5, 55)
    assert facts["counts"]["failed"] == 1 and facts["counts"]["undeclared-empty"] == 1
    assert ("undeclared-empty-in-view", "warn") in signals(account)
    found = said_by(account, "found")
    assert "found.failed" in found and "found.empty" in found and "50 further calls" in found["found.more.many"]
    assert next(iter(found)) == "found.failed"


def test_56_what_opens_is_no_refusal() -> None:
    parts = [
        called(id="a", decision="allow"), called(id="b", decision="warn"),
        [("tool.call.started", {"call_id": "c", "tool": "Bash", "arguments": "{}"}), ("tool.approval_required", {"call_id": "c", "source": "guardhook"}),
         ("tool.approval_granted", {"call_id": "c"}), ("tool.call.completed", {"call_id": "c", "tool": "Bash", "output": "x", "executed": True})],
        [*denied(mode="observe", id="d"), ("tool.call.completed", {"call_id": "d", "tool": "Bash", "output": "x", "executed": True})],
        [("tool.call.started", {"call_id": "e", "arguments": "{}"}), ("tool.call.completed", {"call_id": "e", "output": "x", "executed": True})],
    ]  # fmt: skip
    account = of(turn(asked(), *parts, said_()))
    counts = account["facts"]["counts"]
    assert (counts["calls"], counts["ran"], counts["refused"], counts["unnamed"]) == (5, 5, 0, 1)
    assert "unnamed ran once." in [line["text"] for line in lines(account, "checked")]
    assert state(account, "decided-enforced") == "unreachable"  # it only observed


def test_57_a_stopped_call_that_ran() -> None:
    late = ("tool.call.completed", {"call_id": "x", "tool": "Bash", "output": "gone", "executed": True, "ran_although_denied": True})  # fmt: skip
    account = of(turn(asked(), denied(id="x"), late, said_()))
    assert signals(account) == [("decided-not-enforced", "bad")] and account["summary"]["tone"] == "bad"
    assert "yet a result for it is recorded" in account["summary"]["sentence"]
    stray = ("tool.call.completed", {"call_id": "gh_1", "tool": "Bash", "output": "?", "executed": True, "unpaired": True})  # fmt: skip
    account = of(turn(asked(), denied(id="x"), stray, said_()))
    assert signals(account) == [] and state(account, "decided-enforced") == "unreachable"
    assert state(of(turn(asked(), called(), denied(), said_())), "decided-enforced") == "reachable"
    assert state(of(turn(asked(), called(), said_())), "decided-enforced") == "not-applicable"
    assert state(of(turn(asked(), called(), denied(), ("recorder.drop_detected", {}), said_())), "decided-enforced") == "unreachable"  # fmt: skip


def test_58_a_withheld_result_is_not_empty() -> None:
    after = ("tool_hook.completed", {"stage": "post_tool_use", "call_id": "w", "decision": "deny", "policy": "no-leaks"})  # fmt: skip
    account = of(turn(asked(), called(SEARCH, id="w", output=[]), after, said_()))
    assert "kept its result back" in said_by(account, "found")["found.withheld"]
    assert "no-leaks" in said_by(account, "found")["found.withheld"] and not signals(account)


@pytest.mark.parametrize(
    ("output", "tool", "shape"),
    [
        ("[]", None, "undeclared-empty"), ('{"items":[]}', None, None), ('{"items":[]}', {"rows_at": "items"}, "undeclared-empty"),
        ('{"items":[1,2]}', {"rows_at": "items"}, "non-empty"), ('{"items":3}', {"rows_at": "items"}, None),
        ('{"rows":[],"coverage":{"searched":"all"}}', None, "declared-absent"), ('{"absent":true}', None, "declared-absent"), ("[1]", None, "non-empty"),
        ('"[]"', None, None), ('["[]"]', None, "non-empty"), ('[{"type":"text","text":"[]"}]', None, "undeclared-empty"),
        ('{"content":[{"type":"text","text":"[1,2]"}]}', None, "non-empty"), ('[{"type":"text","text":"hello"}]', None, None),
        ('[{"type":"text","text":"a"},{"type":"text","text":"b"}]', None, "non-empty"), ("", None, None), ("", {"role": "search"}, "undeclared-empty"),
        ("No files found\n", {"empty_text": ["No files found"]}, "undeclared-empty"), ("No files found.", {"empty_text": ["No files found"]}, None),
        ('{"clarify":"which one?"}', None, "clarify"), ("[" * 5000, None, None), ("{broken", None, None),
    ],
)  # fmt: skip
def test_59_60_61_emptiness(output: str, tool: dict[str, Any] | None, shape: str | None) -> None:
    declared = NONE if tool is None else declarations.of({"tools": [{"name": SEARCH, **tool}]})
    account = of(turn(asked(), called(SEARCH, output=output), said_()), declared)
    assert account["facts"]["calls"][0].get("emptiness") == shape


def test_61_silence_is_normal_in_a_shell() -> None:
    account = of(turn(asked(), called("Bash", {"command": "true"}, kind="shell", output=""), said_()))
    assert "emptiness" not in account["facts"]["calls"][0] and not signals(account)


EVIL = "x {prompt} {{n}} \x1b[31m\u202e\u2028<b>*_`|\x00\n"


def test_62_values_are_never_templates() -> None:
    account = of(turn(asked(EVIL), called(f"T{EVIL}", error="no"), said_(EVIL)))
    text = lines(account, 0)[0]["text"]
    assert text == "The request as reported: x {prompt} {{n}} [31m<b>*_`|"
    shown = "\n".join([*as_text(account, Paint(False), 80), *as_markdown(account)])
    assert "\x1b" not in shown and "\u202e" not in shown and "\u2028" not in shown
    markdown = "\n".join(as_markdown(account))
    assert "<b>" not in re.sub(r"(?<!\\)`[^`]*`", "", markdown).replace("\\<b\\>", "") and "\\*\\_\\`" in markdown


def test_63_a_missing_value_is_no_error() -> None:
    teller = Teller()
    for values in ({}, {"tool": None}, {"tool": "\x00"}, {"tool": ["x"]}, {"n": "3", "tool": "x"}):
        assert teller.say("checked.tool.many", **values)["text"] == "This line could not be written from the record."  # type: ignore[arg-type]
    assert teller.say("no.such", n=1)["template"] == {"id": "unreadable.line", "version": 2}
    assert teller.unread == 6
    account = of(turn(asked(), called("\x1b\x00"), said_()))
    assert account["unread"] > 0 and len(account["rows"]) == 7


def test_64_the_table_is_pinned() -> None:
    assert templates.digest() == DIGEST, "a word of the table changed: raise templates.VERSION"


PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")


@pytest.mark.parametrize("template", list(TABLE.values()), ids=list(TABLE))
def test_65_vouchers_are_the_weakest(template: templates.Template) -> None:
    samples = {"count": 3, "list": ["a", "b"]}
    values = {m[1]: samples.get(m[2] or "plain", "word") for m in PLACE.finditer(template.text)}
    assert template.voucher in VOUCHERS
    for voucher in ("person", "record", "harness", "tool:x", "model", "app"):
        for basis, more in (((voucher,), {}), ((), {next(iter(values)): Value(values[next(iter(values))], voucher)} if values else None)):  # fmt: skip
            if more is None:
                continue
            source = str(Teller().say(template.id, basis=basis, **{**values, **more})["source"])  # type: ignore[arg-type]
            strength = VOUCHERS.index(source.partition(":")[0])
            assert strength == max(VOUCHERS.index(template.voucher), VOUCHERS.index(voucher.partition(":")[0]))


def test_65_a_prompt_is_never_stronger_than_the_harness() -> None:
    assert lines(of(turn(asked(), said_())), 0)[0]["source"] == "harness"


def test_66_wording() -> None:
    for template in TABLE.values():
        assert "(s)" not in template.text
        assert not re.search(r"\ban? \{", template.text, re.IGNORECASE)
        assert ".one" not in template.id or template.id.replace(".one", ".many") in TABLE
    for n, text in ((1, "One tool call ran."), (2, "2 tool calls ran.")):
        account = of(turn(asked(), *[called("Read", output="x")] * 0, *[called("Read", output="x") for _ in range(n)], said_()))  # fmt: skip
        assert lines(account, "checked")[0]["text"] == text
    assert lines(of(turn(asked(), said_())), "checked")[0]["text"] == "No tool call is recorded for this turn."
    assert not [t for t in TABLE.values() if re.search(r"nothing (is|was) wrong|no problem|all (is )?(well|good|fine)", t.text, re.IGNORECASE)]  # fmt: skip


def test_67_what_could_not_run_is_told() -> None:
    account = of(turn(asked(), edit(), said_()))
    assert account["unreachable"][0] == {"check": "verification", "because": "no checks are declared"}
    assert account["summary"]["tone"] not in ("ok", "bad")
    assert any("could not run" in line["text"] for line in lines(account, "anything-wrong"))
    good = of(turn(asked(), called(SEARCH, output=[1]), said_()))
    assert good["summary"]["tone"] == "ok" and good["standing"] == "consistent"
    clean = lines(good, "anything-wrong")[-1]["text"]
    assert clean == "1 of 4 checks ran and raised nothing."


PIECE = st.sampled_from([
    shell("pytest"), shell("pytest", 1), shell("ls"), shell("make", 2), edit(), denied(), denied(mode="observe"), called(SEARCH, output=[]),
    called(SEARCH, output=[{"a": 1}]), called(done=False), said_(), [again()], [("recorder.drop_detected", {"count": 2})], [("odd", {})],
    [("tool.call.completed", {})], [("tool.call.started", {})], [("tool_hook.completed", {"call_id": []})], [("run.failed", {})],
    [("spawn_agent.started", {"agent_type": "\x00"})], [("tool.call.blocked", {"call_id": "q"})], [("tool.approval_denied", {"call_id": "q"})],
])  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.lists(PIECE, max_size=9), st.sampled_from([NONE, PYTEST]))
def test_68_every_check_is_in_one_state(parts: list[Any], declared: Declarations) -> None:
    account = of(turn(asked(), *parts), declared)
    assert sum(account["facts"]["checks"].values()) == len(account["checks"]) == 4
    assert [r["heading"] for r in account["rows"]] == HEADINGS
    counts = account["facts"]["counts"]
    assert counts["calls"] == sum(counts[n] for n in ("ran", "failed", "refused", "declined", "unknown"))
    for line in (line for row in account["rows"] for line in row["lines"]):
        assert line["text"] == "".join(p["text"] for p in line["parts"]) and line["text"] == words.clean(line["text"])


def test_69_long_lists_of_signals() -> None:
    ran = ("tool.call.completed", {"tool": "Bash", "output": "gone", "executed": True})
    parts: list[Any] = []
    for n in range(5):
        parts += [denied(id=f"d{n}"), [(ran[0], {**ran[1], "call_id": f"d{n}"})]]
    parts += [called(SEARCH, {"q": 1}, error="x") for _ in range(3)]
    parts += [called(SEARCH, {"q": 2}, output=[]), called(SEARCH, {"q": 3}, output=[1])]
    account = of(turn(asked(), *parts, said_()))
    texts = [line["template"]["id"] for line in lines(account, "anything-wrong")]
    assert texts[:4] == ["wrong.enforced"] * 3 + ["row.more"] and lines(account, "anything-wrong")[3]["text"] == "2 more."  # fmt: skip
    assert [s for s, _ in signals(account)] == ["decided-not-enforced", "undeclared-empty-in-view", "repeated-failure"]
    assert len(account["summary"]["templates"]) == 3 and account["summary"]["templates"][1]["id"] == "wrong.enforced"
    assert account["signals"][0]["count"] == 5


def test_70_unfinished_turns() -> None:
    account = of(turn(asked(), shell("ls")))
    assert list(said_by(account, "how-sure")) == ["sure.noanswer"] and account["summary"]["tone"] == "unknown"
    pending = ("tool.approval_required", {"call_id": "p", "source": "harness"})
    account = of(turn(asked(), called(done=False, id="p"), pending))
    assert list(said_by(account, "how-sure")) == ["sure.ask"] and "waiting for your reply" in account["summary"]["sentence"]  # fmt: skip


def test_71_the_last_stop_is_the_answer() -> None:
    account = of(turn(asked(), said_("a draft"), shell("ls"), said_("the answer")))
    assert account["answer"]["value"] == "the answer" and account["run"]["turns"] == 1
    assert of(turn(asked(), said_("a draft"), shell("ls")))["answer"]["value"] is None


def two_runs() -> dict[str, Any]:
    other = "run_" + "b" * 32
    first = turn(asked(), called(SEARCH, output=[1]), said_("mine"))["events"]
    second = [{**e, "data": {**e["data"], "conversation_id": "elsewhere", **({"run_id": other} if "run_id" in e["data"] else {})}} for e in turn(asked("theirs"), denied(), said_("theirs"))["events"]]  # fmt: skip
    for event in first:
        event["data"]["conversation_id"] = "here"
    mixed = [e for pair in zip(first, second, strict=False) for e in pair] + second[len(first) :]
    return {"snapshot": {}, "events": mixed, "structure": None}


def test_72_two_runs_in_one_recording() -> None:
    recording = two_runs()
    account = of(recording, run_id=RUN)
    assert account["answer"]["value"] == "mine" and account["facts"]["counts"]["refused"] == 0
    assert account["foreign"] == len(recording["events"]) - 6 and account["scope"] == "own-run"
    nobody = of(recording, run_id="run_none")
    assert "belongs to run run_none" in nobody["summary"]["sentence"] and nobody["foreign"] == len(recording["events"])
    assert len(nobody["rows"]) == 7
    whole = of(recording)
    assert (whole["scope"], whole["foreign"]) == ("unfiltered", 0) and "all of it was read" in whole["summary"]["sentence"]  # fmt: skip


def test_73_size() -> None:
    big = "ä" * 300_000
    parts: list[Any] = [called(f"tool{'n' * 150}{n}", {"x": big[:1000]}, output=big[:20_000], error="e" * 50_000 if n % 2 else None) for n in range(80)]  # fmt: skip
    parts += [denied(f"Bash{n}", policy="p" * 190 + str(n)) for n in range(60)] + [edit(f"{'d/' * 90}{n}.py") for n in range(60)]  # fmt: skip
    account = of(turn(asked(big), *parts, said_(big)), PYTEST)
    assert len(plain.encode(account)) <= limits.ACCOUNT_BYTES
    assert account["facts"]["counts"]["calls"] == 200 and account["facts"]["counts"]["changes"] == 60
    assert ("changed-unverified", "warn") in signals(account) and len(account["question"]["value"]) == 3000
    recording = turn(asked(big), *parts, said_(big))
    shown = Shower(recording).all(pointers_of(account))
    assert len(dumps({"account": account, "shown": shown})) + 1 <= limits.RESPONSE_BYTES
    many = [f"event:{n}:data/tool" for n in range(20_000)]
    assert Shower(recording).all(many)["#more"] > 0  # type: ignore[operator]


SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
from archive_rig import *
from guardhook.archive.account.account import account_for_answer
print(json.dumps(account_for_answer(turn(asked(), edit("b"), edit("a"), shell("x", id="s"), denied(id="d"), said_()))))
"""


def test_74_the_same_bytes_everywhere() -> None:
    here = Path(__file__).parent
    out = set()
    for seed in ("0", "1"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, str(here), str(here.parent / "store")], capture_output=True, check=True, timeout=60,
                              env={"PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Tokyo"})  # fmt: skip
        out.add(done.stdout)
    assert len(out) == 1
    recording = turn(asked(), edit(), denied(), said_())
    before = copy.deepcopy(recording)
    assert of(recording) == of(recording) and recording == before


def test_75_what_is_shown() -> None:
    recording = turn(
        asked("hi", system_prompt="s"), called(SEARCH, {"q": "secret-argument"}, output=[{"a": "secret-row"}]), denied(policy="no-rm"),
        shell("pytest", 1), edit("src/a.py"), called(SEARCH, output={"absent": True, "coverage": {"searched": "all", "not_covered": ["rest"]}}),
        called("Read", output="x", error="Error: secret-error"), said_("z" * 2049),
    )  # fmt: skip
    shower = Shower(recording, declarations=PYTEST)
    account = of(recording, PYTEST)
    by_type: dict[str, list[int]] = {}
    for event in recording["events"]:
        by_type.setdefault(event["type"], []).append(event["seq"])
    done = by_type["tool.call.completed"]
    assert shower.show("event:0:data/prompt") == {"value": "hi"}
    assert shower.show(f"event:{done[0]}:data/tool") == {"value": SEARCH}
    assert shower.show(f"event:{done[0]}:rows") == {"value": {"rows": 1, "at": ""}}
    assert shower.show(f"event:{done[0]}:outcome") == {"value": "ran"}
    assert shower.show(f"event:{done[2]}:data/exit_code") == {"value": 1}
    assert shower.show(f"event:{done[2]}:error_kind") == {"value": "exit code 1"}
    assert shower.show(f"event:{done[3]}:path") == {"value": "src/a.py"}
    assert shower.show(f"event:{done[4]}:coverage/searched") == {"value": "all"}
    assert shower.show(f"event:{done[4]}:coverage/0") == {"value": "rest"}
    assert shower.show(f"decision:{by_type['tool.call.blocked'][0]}:policy") == {"value": "no-rm"}
    assert shower.show("declaration:label:tests") == {"value": "the tests"}
    assert shower.show(f"event:{by_type['assistant.message'][0]}:data/content") == {"withheld": "too-large"}
    for hidden in (
        f"event:{done[0]}:data/output", f"event:{done[0]}:data/arguments", f"event:{by_type['tool.call.started'][0]}:data/arguments",
        "event:0:data/session", "event:0:data/conversation_id", "event:0:data/session/transcript_path", f"decision:{by_type['tool.call.blocked'][0]}:reason",
        f"event:{done[5]}:data/error", "event:0:data/system_prompt", "event:0:data", "event:0:", f"event:{done[0]}:rows/0", "event:0:data/output/prompt",
    ):  # fmt: skip
        assert shower.show(hidden) == {"withheld": "not-allowed"}, hidden
    for missing in ("event:999:data/prompt", "nonsense", "event:x:y", "event:0", "declaration:label:nosuch", "event:٣:data/tool", f"event:{done[4]}:coverage/7"):  # fmt: skip
        assert shower.show(missing) == {"withheld": "missing"}, missing
    assert Shower(recording, hide_paths=True).show(f"event:{done[3]}:path") == {"withheld": "not-allowed"}
    shown = shower.all(pointers_of(account))
    assert "secret" not in json.dumps(shown) and all("value" in leaf or "withheld" in leaf for leaf in shown.values())
    redacted = turn(asked("[REDACTED:api_key]"), said_())
    assert Shower(redacted).show("event:0:data/prompt") == {"withheld": "redacted"}
    both = two_runs()
    foreign = next(e["seq"] for e in both["events"] if e["data"].get("prompt") == "theirs")
    assert Shower(both, run_id="run_none").show(f"event:{foreign}:data/prompt") == {"withheld": "missing"}
    assert pointer_key("event", 3, "data", "a/b~c") == "event:3:data/a~1b~0c"


@pytest.mark.parametrize(
    "value",
    [
        [], {"checks": []}, {"verify": {}}, {"verify": [{"id": "a", "argv": ["x"], "colour": 1}]}, {"verify": [{"id": "a"}]},
        {"verify": [{"id": "a", "argv": ["x"], "glob": "y"}]}, {"verify": [{"id": "", "argv": ["x"]}]}, {"verify": [{"argv": ["x"]}]},
        {"verify": [{"id": "a", "argv": "x"}]}, {"verify": [{"id": "a", "argv": [3]}]}, {"verify": [{"id": "a", "argv": ["x"], "label": "a\nb"}]},
        {"verify": [{"id": "a", "argv": ["x"], "label": "\u202ea"}]}, {"verify": [{"id": "a", "argv": ["x"], "label": "l" * 61}]},
        {"verify": [{"id": "a", "argv": ["x"], "covers_answer": 1}]}, {"verify": [{"id": "a", "argv": ["x"]}, {"id": "a", "argv": ["y"]}]},
        {"tools": [{"name": "t", "rows_at": ""}]}, {"tools": [{"name": "t", "rowsAt": "a/b"}]}, {"tools": [{"name": "t", "rows_at": "a.b"}]},
        {"tools": [{"name": "t", "role": "cook"}]}, {"tools": [{"name": "t", "empty_text": "x"}]}, {"tools": [{}]}, {"names_and_numbers": "yes"},
    ],
)  # fmt: skip
def test_76_declarations_that_are_none(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        declarations.of(value)


def test_76_declarations_for_a_report_are_vouched_app() -> None:
    report = declarations.of({"verify": [{"id": "t", "label": "the tests", "argv": ["pytest"]}]})
    line = next(li for li in lines(of(turn(asked(), shell("pytest"), said_()), report), "checked") if "verify" in li["template"]["id"])  # fmt: skip
    assert line["source"] == "app"
    line = next(li for li in lines(of(turn(asked(), shell("pytest"), said_()), PYTEST), "checked") if "verify" in li["template"]["id"])  # fmt: skip
    assert line["source"] == "harness"


def test_77_78_what_is_never_in_it() -> None:
    secret = "sk-planted-in-a-result"
    recording = turn(
        asked("fine"), called("Read", {"command": secret}, output=f"key {secret}"), called(SEARCH, {"q": secret}, output=[{"k": secret}]),
        called("Bash", {"command": f"echo {secret}"}, kind="shell", error=f"failed: {secret}", code=2), denied("Bash", {"command": secret}), said_("ok"),
    )  # fmt: skip
    account = of(recording, PYTEST)
    text = json.dumps(account) + json.dumps(account_for_session(recording)) + json.dumps(Shower(recording).all(pointers_of(account)))  # fmt: skip
    assert secret not in text and "the-session" not in text


def test_80_lost_events() -> None:
    for count, text in ((1, "One event reached"), (3, "3 events reached")):
        account = of(turn(asked(), ("recorder.drop_detected", {"count": count}), said_()))
        assert any(line["text"].startswith(text) for line in lines(account, "not-checked"))
    assert not any("reached guardhook" in line["text"] for line in lines(of(turn(asked(), said_())), "not-checked"))


def test_81_names_of_files() -> None:
    recording = turn(asked(), shell("pytest"), edit("a\x1b[2J\u202e.py"), edit("b.py"), said_())
    text = json.dumps(of(recording, PYTEST), ensure_ascii=False)
    assert "a[2J.py and b.py" in text and "\x1b" not in text and "\u202e" not in text
    hidden = json.dumps(of(recording, PYTEST, hide_paths=True))
    assert "a[2J" not in hidden and "b.py" not in hidden and "names left out" in hidden


def test_82_damaged_events() -> None:
    recording = turn(asked(), called(SEARCH, output=[1]), said_("ok"))
    good = of(recording)
    damaged: list[Any] = [None, 3, [], {"type": 3, "seq": 1}, {"type": "x"}, {"type": "x", "seq": "1"}, {"type": "x", "seq": 1, "data": []}, {"type": "x", "seq": True}]  # fmt: skip
    events = recording["events"]
    mixed = {**recording, "events": [*damaged[:4], *events[:3], *damaged[4:], *events[3:]]}
    account = of(mixed)
    assert account["unread"] == good["unread"] + len(damaged)
    assert {**account, "unread": 0} == {**good, "unread": 0}
    for nothing in (None, [], "x", {}, {"events": {}}):
        with pytest.raises(TypeError):
            account_for_answer(nothing)


def test_sessions_are_told_turn_by_turn() -> None:
    recording = turn(asked(), called(SEARCH, output=[]), said_(), again(), called(SEARCH, output=[1]), said_("two"))
    found = account_for_session(recording)
    assert [t["standing"] for t in found["turns"]] == ["not-sure", "consistent"]  # type: ignore[union-attr, index, attr-defined]
    assert found["standing"] == "not-sure" and found["tone"] == "bad" and found["totals"]["calls"] == 2  # type: ignore[index]
    first = of(recording, turn=1)
    assert first["run"] == {"runId": RUN, "turn": 1, "turns": 2, "harness": "codex", "complete": False}
    with pytest.raises(UnknownTurn):
        of(recording, turn=3)


def test_other_sentences() -> None:
    plan = called("TodoWrite", {"todos": [1, 2, 3]})
    skill = called("Skill", {"skill": "pdf"})
    helper = [("spawn_agent.started", {"agent_type": "explorer", "agent_id": "a1"})]
    steered = [("steering.received", {"message": "also this", "content": "also this"})]
    refused = [("tool.call.started", {"call_id": "r", "tool": "Bash", "arguments": "{}"}), ("tool.approval_denied", {"call_id": "r", "tool": "Bash"}),
               ("tool.call.completed", {"call_id": "r", "tool": "Bash", "executed": False, "error": "x", "output": ""})]  # fmt: skip
    declined = [("tool.call.started", {"call_id": "s", "tool": "Web", "arguments": "{}"}), ("tool.approval_required", {"call_id": "s", "source": "harness"}),
                ("tool.approval_denied", {"call_id": "s", "tool": "Web"})]  # fmt: skip
    account = of(turn(asked("p" * 2500), plan, skill, helper, steered, refused, declined, called("Read", output="x", incomplete=["cut"]), said_()))  # fmt: skip
    assert said_by(account, "asked")["asked.prompt.clipped"].startswith("The request as reported (first 2000 of 2500 characters)")  # fmt: skip
    assert said_by(account, "asked")["asked.steered.one"] == "One more message came in while it worked."
    understood = said_by(account, "understood")
    assert understood["understood.plan.many"] == "It wrote down a plan of 3 steps."
    assert understood["understood.skill"] == "It used the skill pdf." and "explorer" in understood["understood.delegated.one"]  # fmt: skip
    checked = said_by(account, "checked")
    assert checked["checked.refused.harness"].endswith("did not permit Bash.") and checked["checked.declined"].startswith("A call to Web")  # fmt: skip
    assert "found.cut" in said_by(account, "found")
    last = of(turn(asked(), edit(), shell("pytest", 1), said_()), PYTEST)
    assert signals(last) == [("verification-failed-last", "bad")] and "exit code 1" in said_by(last, "checked")["checked.verify.fail"]  # fmt: skip
    posts = of({**turn(asked(), edit(), said_()), "structure": {"dialect": "codex", "hooks": [{"event": "PreToolUse"}]}}, PYTEST)  # fmt: skip
    assert state(posts, "verification") == "unreachable" and "missed.hooks" in said_by(posts, "not-checked")


def test_97_unknown_reasons_are_passed_over() -> None:
    found = assess_turn(turn(asked(), denied(), said_()))
    assert found is not None and isinstance(found["reasons"], list)
    later = {**found, "reasons": [{"reason": "moon-phase", "witness": []}, *found["reasons"]]}
    assert list(standing_text(later, Paint(False))) == list(standing_text(found, Paint(False)))


JUNK: list[Any] = [None, 0, -1, True, 1.5, "", "x", "\ud800", "\x00", [], {}, [[]], {"a": 1}, 10**30, "[REDACTED:x]", ["stripped"], {"content": [{"type": "text", "text": "[]"}]}, {"command": ["a", 1]}]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["type", "seq", "ts", "data", "call_id", "tool", "output", "arguments", "executed", "error", "exit_code",
       "count", "message", "prompt", "content", "kind", "incomplete", "policy", "decision", "agent_type", "run_id", "conversation_id", "session"]), st.sampled_from(JUNK)), min_size=1, max_size=8))  # fmt: skip
def test_82_damaged_members(damage: list[tuple[int, str, Any]]) -> None:
    declared = declarations.of({"verify": [{"id": "t", "argv": ["pytest"], "covers_answer": True}], "tools": [{"name": SEARCH, "rows_at": "items", "role": "search"}], "names_and_numbers": True}, origin=CONFIG)  # fmt: skip
    recording = turn(asked(), shell("pytest", 1), edit(), denied(), called(SEARCH, output={"items": [1]}), called("TodoWrite", {"todos": [1]}),
                     [("recorder.drop_detected", {"count": 1})], said_("`x` 42"), again(), called(SEARCH, output="[]"), said_())  # fmt: skip
    events = recording["events"]
    for place, name, value in damage:
        event = events[place % len(events)]
        target = (
            event if name in ("type", "seq", "ts", "data") or not isinstance(event.get("data"), dict) else event["data"]
        )
        target[name] = copy.deepcopy(value)
    account = of(recording, declared)
    assert [r["heading"] for r in account["rows"]] == HEADINGS and len(plain.encode(account)) < limits.ACCOUNT_BYTES
    assert "\x00" not in "\n".join([*as_text(account, Paint(False), 80), *as_markdown(account)])
    account_for_session(recording, declarations=declared)
    assess_turn(recording, declarations=declared)
    Shower(recording, declarations=declared).all(pointers_of(account))
    facts_.look(events)


# --- sentences that must be true of the session they tell of ------------------------------------------------------------


def _interrupted(event: str) -> tuple[str, dict[str, Any]]:
    return "hook.unknown", {"event": event}


def test_hooks_are_said_to_be_missing_only_where_their_registration_is_known() -> None:
    killed = of(turn(asked(), shell("sleep 9", done=False)))
    refused = of(turn(asked(), denied(), said_()))
    for account in (killed, refused):
        assert "were not installed" not in json.dumps(account)
    assert state(refused, "decided-enforced") == "unreachable"
    silent = of(turn(asked(), shell("a", done=False), shell("b", done=False), said_()))
    assert said_by(silent, "not-checked").keys() == {"missed.results"}
    known = of({**turn(asked(), denied(), said_()), "structure": {"dialect": "codex", "hooks": [{"event": "PreToolUse"}]}})  # fmt: skip
    assert "missed.hooks" in said_by(known, "not-checked")


def test_a_call_of_which_nothing_more_is_known_is_a_call() -> None:
    one = said_by(of(turn(asked(), shell("sleep 9", done=False))), "checked")
    assert one == {"checked.unknown.one": "One tool call is recorded, and not whether it ran."}
    two = said_by(of(turn(asked(), shell("a", done=False), shell("b", done=False))), "checked")
    assert two == {"checked.unknown.many": "2 tool calls are recorded, and not whether they ran."}


@pytest.mark.parametrize("event", ["interrupt", "StopFailure"])
def test_what_was_interrupted_waits_for_nobody(event: str) -> None:
    id = "call-x"
    waiting = [*shell("git push", done=False, id=id), ("tool.approval_required", {"call_id": id, "source": "harness"})]
    assert of(turn(asked(), waiting))["standing"] == "ask"
    account = of(turn(asked(), waiting, _interrupted(event)))
    assert account["standing"] == "not-sure" and "waiting" not in account["summary"]["sentence"]
    assert of(turn(asked(), _interrupted(event), waiting))["standing"] == "ask"


@pytest.mark.parametrize(
    ("output", "length"),
    [
        ({"stdout": "hi", "stderr": "", "interrupted": False}, 2),
        ({"stdout": "hi", "stderr": "oh", "interrupted": False, "isImage": False}, 4),
        ({"llmContent": "Found 1 match", "returnDisplay": {"summary": "1"}}, 13),
        ([{"type": "text", "text": "four"}], 4),
        ({"result": "hello"}, 5),
        ("plain", 5),
        ({"stdout": "hi", "stderr": "", "rows": [1]}, 43),
    ],
)
def test_length_is_that_of_what_the_tool_said(output: object, length: int) -> None:
    text = output if isinstance(output, str) else json.dumps(output)
    found = said_by(of(turn(asked(), called("Tool", output=text), said_())), "found")
    assert found == {"found.output.many": f"Tool returned {length} characters of output."}


def test_declared_silence_is_seen_inside_what_a_harness_puts_around_it() -> None:
    declared = declarations.of({"tools": [{"name": "Search", "role": "search", "empty_text": ["No matches"]}]})
    for output in ({"stdout": "", "stderr": ""}, {"llmContent": "No matches", "returnDisplay": {}}):
        account = of(turn(asked(), called("Search", output=json.dumps(output)), said_()), declared)
        assert signals(account) == [("undeclared-empty-used", "bad")]
    cut = of(turn(asked(), called("Search", output=json.dumps({"stdout": "x", "stderr": "", "truncated": True})), said_()))  # fmt: skip
    assert said_by(cut, "found").keys() == {"found.cut"}


@pytest.mark.parametrize(("by", "sentence"), [("policy", "checked.refused.harness"), ("user", "checked.declined")])
def test_a_denial_that_a_stream_tells_of_is_no_failure(by: str, sentence: str) -> None:
    """Streams give such calls a result and an error as if they had run, and tell of the decision afterwards."""
    calls_ = [*called("Bash", output="no", error="hook: no", step=3), *called("Bash", output="x", error="boom", step=3)]
    told = ("trace.decision", {"step": 3, "chosen": "deny", "rationale": "hook: no", "decided_by": by})
    account = of(turn(asked(), calls_, told, said_()))
    assert said_by(account, "checked").keys() == {"checked.total.one", "checked.tool.one", sentence}
    assert "1 failed, 1 stopped" in json.dumps(account)
    for other in ({"step": 4}, {"rationale": "something else"}, {"chosen": "allow"}):
        account = of(turn(asked(), calls_, (told[0], {**told[1], **other}), said_()))
        assert "2 failed, 0 stopped" in json.dumps(account)


def test_one_character_is_one() -> None:
    found = said_by(of(turn(asked(), called("Tool", output="x"), said_())), "found")
    assert found == {"found.output.one": "Tool returned one character of output."}


def test_a_patch_changes_all_files_that_it_names() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: sub/b.py\n+x\n*** Delete File: c.py\n*** End Patch"
    calls_ = called("apply_patch", {"command": patch}, kind="file_edit", output="ok")
    account = of(turn(asked(), shell("pytest"), calls_, said_()), PYTEST)
    assert "3 files changed after the last check that passed: a.py, sub/b.py and c.py." in said_by(account, "not-checked").values()  # fmt: skip
    two = of(turn(asked(), shell("pytest"), calls_, edit("a.py"), edit("d.py"), said_()), PYTEST)
    assert "4 files changed after the last check that passed: a.py, sub/b.py, c.py and d.py." in said_by(two, "not-checked").values()  # fmt: skip
