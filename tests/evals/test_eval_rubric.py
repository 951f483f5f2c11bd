"""Rubrics of the user's own: formats, polarity, and every mistake that a file can make."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardhook.evals import rubric_file
from tests.evals.evals_rig import one, put, refused, results, run, scores, step

GOOD = {"name": "house rules", "criteria": [{"name": "greets", "pattern": "hello|good day", "expected": True}]}
YAML = """
name: house rules
threshold: "0.5"
criteria:
  - name: greets
    pattern: 'hello\\s+\\w+'
    expected: true
    weight: 3
  - {name: no secrets, pattern: "password", expected: no}
"""
TOML = """
name = "house rules"
threshold = 0.5
[[criteria]]
name = "greets"
pattern = 'hello\\s+\\w+'
expected = true
weight = 3
[[criteria]]
name = "no secrets"
pattern = "password"
expected = false
"""


def rubric(data: Path, value: object, name: str = "r.json") -> str:
    data.mkdir(exist_ok=True)
    path = data / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_the_three_formats_mean_the_same(tmp_path: Path) -> None:
    put(tmp_path, "t", step(output={"text": "Hello world"}), end={"output": "the PASSWORD"})
    as_json = {
        "name": "house rules", "threshold": 0.5, "criteria": [
            {"name": "greets", "pattern": r"hello\s+\w+", "expected": True, "weight": 3}, {"name": "no secrets", "pattern": "password", "expected": False},
        ],
    }  # fmt: skip
    files = [rubric(tmp_path, YAML, "a.yaml"), rubric(tmp_path, YAML, "a.YML"), rubric(tmp_path, TOML, "a.toml"), rubric(tmp_path, as_json, "a.txt")]  # fmt: skip
    for path in files:
        found = one(tmp_path, "t", "--rubric", path, code=0)
        assert (found["evaluator_type"], found["evaluator_name"], found["score"], found["passed"]) == ("rubric", "house rules", 0.75, True)  # fmt: skip
        assert found["details"]["threshold"] == 0.5
        assert [(c["name"], c["score"], c["weight"], c.get("steps")) for c in found["details"]["criteria"]] == [
            ("greets", 1, 3, [1]), ("no secrets", 0, 1, None),
        ]  # fmt: skip


FIELDS = {
    "output": ({"end": {"output": "MARK"}}, True), "step output": ({"steps": [step(output={"a": "MARK"})]}, True), "input": ({"input": "MARK"}, False),
    "error": ({"end": {"status": "failed", "error": "MARK"}}, False), "step name": ({"steps": [step("thought", "MARK")]}, False),
    "step input": ({"steps": [step(input={"x": ["MARK"]})]}, False), "step error": ({"steps": [step(error="MARK")]}, False),
    "agent": ({"agent_name": "MARK"}, None),
}  # fmt: skip


@pytest.mark.parametrize("where", FIELDS)
def test_polarity_says_which_texts_are_searched(tmp_path: Path, where: str) -> None:
    spec, out = FIELDS[where]
    more: dict[str, Any] = {k: v for k, v in spec.items() if k != "steps"}
    put(tmp_path, "t", *spec.get("steps", [step()]), **more)  # type: ignore[misc]
    path = rubric(tmp_path, {"name": "r", "criteria": [
        {"name": "must", "pattern": "mark", "expected": True}, {"name": "must not", "pattern": "mark", "expected": False},
    ]})  # fmt: skip
    found = scores(one(tmp_path, "t", "--rubric", path))
    assert found == {"must": 1 if out is True else 0, "must not": 1 if out is None else 0}


@pytest.mark.parametrize("text", ['say "hi"', "C:\\dir", "first\nsecond", "tab\there", "ünïcode"])
def test_texts_are_found_as_they_were_said(tmp_path: Path, text: str) -> None:
    import regex

    put(tmp_path, "t", step(output={"text": f"before {text} after"}))
    path = rubric(tmp_path, {"name": "r", "criteria": [{"name": "c", "pattern": regex.escape(text), "expected": True}]})
    assert scores(one(tmp_path, "t", "--rubric", path)) == {"c": 1}


def test_it_combines_with_presets(tmp_path: Path) -> None:
    put(tmp_path, "t", step(output="hello"))
    path = rubric(tmp_path, GOOD)
    found = results(tmp_path, "t", "--rubric", path, "--preset", "safety-check", code=0)
    assert [e["evaluator_name"] for e in found] == ["safety-check", "house rules"]
    assert len(results(tmp_path, "t", "--rubric", path, "--all")) == 4


def broken(**more: object) -> dict[str, object]:
    return {"name": "r", "criteria": [{"name": "c", "pattern": "x", "expected": True, **more}]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "object"), ("", "empty"), ("{", "not valid JSON"), ("null", "object"), ({"criteria": GOOD["criteria"]}, "name"), ({"name": " ", "criteria": GOOD["criteria"]}, "name"),
        ({"name": 5, "criteria": GOOD["criteria"]}, "name"), ({"name": "a\nb", "criteria": GOOD["criteria"]}, "name"), ({"name": "r"}, "criteria"), ({"name": "r", "criteria": []}, "criteria"),
        ({"name": "r", "criteria": {}}, "criteria"), ({"name": "r", "criteria": [7]}, "criterion 1"), (broken(name=None), "criterion 1, name"), (broken(pattern=5), "criterion 1 ('c'), pattern"),
        (broken(pattern=""), "pattern"), (broken(pattern="("), "pattern"), (broken(pattern="(a|b)*"), "pattern"), (broken(pattern="(a+)+$"), "pattern"), (broken(pattern="x" * 10_001), "pattern"),
        (broken(expected="true"), "expected"), (broken(expected=1), "expected"), (broken(expected=None), "expected"), (broken(weight=-1), "weight"), (broken(weight="1"), "weight"),
        (broken(weight=True), "weight"), (broken(weight=0), "weights are 0"), (broken(weigth=2), "did you mean 'weight'"), ({**GOOD, "threshold": "abc"}, "threshold"),
        ({**GOOD, "threshold": 1.01}, "threshold"), ({**GOOD, "threshold": True}, "threshold"), ({**GOOD, "threshold": "nan"}, "threshold"), ({**GOOD, "threshold": "0_1"}, "threshold"),
        ({"name": "r", "criteria": [*GOOD["criteria"], *GOOD["criteria"]]}, "already"), ('{"name": "a", "name": "b"}', "twice"), ('{"name": NaN}', "NaN"), ("[" * 5000, "nested"),
        (" " * 300_000, "larger than"),
    ],
)  # fmt: skip
def test_mistakes_are_usage_errors_that_name_the_place(tmp_path: Path, value: object, said: str) -> None:
    put(tmp_path, "t", step(output=1))
    path = rubric(tmp_path, value)
    told = refused(run(tmp_path, "t", "--rubric", path, "--json"), 2)
    assert path in told["error"] and said in told["error"]
    assert json.loads(run(tmp_path, "t", "--json", command="show").stdout)["evals"] == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.yaml", "name: [", "line 1"), ("r.yaml", "name: a\nname: b\n", "line 2, column 1: the key 'name' appears twice"), ("r.yaml", "!!python/object/apply:os.system ['true']", "line 1"),
        ("r.yaml", "a: &a [x]\nb: [" + ", ".join(["*a"] * 100) + "]", "too many aliases"), ("r.yaml", "a: &a {x: 1}\nb: {<<: *a}", "merge keys"), ("r.yaml", "[" * 5000, "nested too deep"),
        ("r.yaml", "a: *nope", "line 1"), ("r.yaml", "\x00", "special characters"), ("r.yaml", "d: 2026-99-99", "month"), ("r.yaml", "- &x [*x]", "object"), ("r.yaml", "a: b\n--- \nc: d", "line 2"),
        ("r.toml", "name = ", "end of document"), ("r.toml", "\u00e9", "line 1"), ("r.yaml", "? [a]\n: b", "line 1"),
    ],
)  # fmt: skip
def test_syntax(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(rubric_file.BadRubric, match=r"r[.]") as caught:
        rubric_file.load(rubric(tmp_path, text, name))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_what_a_small_file_blows_up_to_is_never_written_out(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 31))
    for key in ("threshold", "name", "criteria"):
        with pytest.raises(rubric_file.BadRubric):
            rubric_file.load(
                rubric(
                    tmp_path,
                    f"name: r\n{bomb}{key}2: 1\n{key}: *a30\n".replace(
                        "name: r\n", "" if key == "name" else "name: r\n"
                    ),
                    "r.yaml",
                )
            )
    huge = "0x" + "f" * 20_000
    for text in (
        f"name: r\nthreshold: {huge}\ncriteria: []",
        f"name: r\ncriteria: [{{name: c, pattern: x, expected: true, weight: {huge}}}]",
    ):
        with pytest.raises(rubric_file.BadRubric):
            rubric_file.load(rubric(tmp_path, text, "r.yaml"))


def loaded_in_another_process(path: str) -> str:
    """What loading says, where memory and time are bounded: a file that takes all there is must not take this process along."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "from guardhook.evals import rubric_file\ntry:\n    rubric_file.load(sys.argv[1])\nexcept rubric_file.BadRubric as error:\n    print(error)\n"
    )
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120).stdout


CRITERION = "name: r\ncriteria: [{name: a, pattern: b, expected: true, weight: %s}]"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.yaml", CRITERION % ("1" + ":1" * 100_000), "more than 100 characters"), ("r.yaml", CRITERION % ("1" + ":1" * 100_000 + ".5"), "more than 100 characters"),
        ("r.yaml", CRITERION % ("!!float 1" + ":1" * 400), "more than 100 characters"), ("r.toml", ".".join("a" * 100_000) + " = 1", "line 1"), ("r.toml", "\n[" + " . ".join(["'a'"] * 40_000) + "]", "line 2"),
        ("r.toml", ".".join(['"\\"a"'] * 40_000) + " = 1", "line 1"), ("r.toml", "a = " + "1" * 5000, "digits"), ("r.toml", '"\\"' * 80_000, "line 1"),
    ],
)  # fmt: skip
def test_numbers_and_keys_without_end(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Base-60 numbers of YAML took seconds or ended in a fault of guardhook's own; a dotted key of TOML took all memory of the machine."""
    path = rubric(tmp_path, text, name)
    assert said in loaded_in_another_process(path)


def test_aliases_in_reason_are_fine(tmp_path: Path) -> None:
    text = "name: r\ncriteria:\n  - &c {name: a, pattern: x, expected: true}\n  - {name: b, pattern: &p y+, expected: false}\n  - {name: d, pattern: *p, expected: true}\n"
    found = rubric_file.load(rubric(tmp_path, text, "r.yml"))
    assert [c.name for c in found.checks] == ["a", "b", "d"] and found.checks[2].source == "y+"


@pytest.mark.parametrize("what", ["missing.yaml", "."])
def test_files_that_are_none(tmp_path: Path, what: str) -> None:
    put(tmp_path, "t", step(output=1))
    assert refused(run(tmp_path, "t", "--rubric", str(tmp_path / what), "--json"), 2)


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    put(tmp_path, "t", step(output=1))
    path = rubric(tmp_path, {**GOOD, "name": "safety-check"})
    assert "another name" in refused(run(tmp_path, "t", "--all", "--rubric", path, "--json"), 2)["error"]
    assert refused(run(tmp_path, "t", "--rubric", path, "--rubric", path, "--json"), 2)


def test_a_pattern_that_takes_too_long_is_an_error_and_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardhook.evals.rubric.SEARCH_SECONDS", 0.05)
    put(tmp_path, "t", step(output="a" * 5000 + "bc"))
    slow = rubric(
        tmp_path,
        {"name": "slow", "criteria": [{"name": "c", "pattern": "a*a*a*a*a*a*a*b$", "expected": False}]},
        "slow.json",
    )
    told = refused(run(tmp_path, "t", "--rubric", slow, "--json"), 1)
    assert "takes too long on the output of step 1" in told["hints"][0]
    done = run(tmp_path, "t", "--rubric", slow, "--preset", "safety-check", "--json")
    assert done.exit_code == 1 and [e["evaluator_name"] for e in json.loads(done.stdout)] == ["safety-check"]
    assert "takes too long" in done.stderr


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda c: st.lists(c, max_size=3) | st.dictionaries(st.sampled_from(["name", "criteria", "pattern", "expected", "weight", "threshold", "x"]), c, max_size=5), max_leaves=12))  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_is_taken_or_refused_in_words(value: object) -> None:
    try:
        found = rubric_file._Reader("r").rubric(value)
    except rubric_file.BadRubric as error:
        assert str(error).startswith("r: ")
    else:
        assert found.checks and 0 <= found.threshold <= 1


@given(st.binary(max_size=200), st.sampled_from(["r.yaml", "r.toml", "r.json"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_parsed_or_refused_in_words(data: bytes, name: str) -> None:
    try:
        rubric_file.parse(name, data)
    except rubric_file.BadRubric as error:
        assert str(error).startswith(f"{name}: ")


def test_many_searches_that_are_not_slow_one_by_one_are_too_much_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that took less than 50 ms each did not count: a long run took hours."""
    put(tmp_path, "t", *[step(output="ab" * 400)] * 9)
    path = rubric(tmp_path, {"name": "r", "criteria": [{"name": "c", "pattern": "(?:a?b?){3}[cd]", "expected": True}]})
    assert one(tmp_path, "t", "--rubric", path)["score"] == 0
    monkeypatch.setattr("guardhook.evals.rubric.ALL_SECONDS", 0.0)
    monkeypatch.setattr("guardhook.evals.rubric.CHAR_SECONDS", 0.0)
    assert "too long on this run (up to " in refused(run(tmp_path, "t", "--rubric", path, "--json"), 1)["hints"][0]
