"""The `guard` and `policy` commands as a person or a script runs them: streams and exit codes, in processes of their own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from guardhook.commands import main


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "gh"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *words: str, stdin: str = "", **env: str) -> Done:
    """In this process, which saves a third of a second each time; `process` is for what needs one of its own."""
    done = CliRunner().invoke(main, words, input=stdin, env={"GUARDHOOK_DIR": str(home), **env})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def process(home: Path, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GUARDHOOK_DIR": str(home), **env}
    return subprocess.run(
        [sys.executable, "-m", "guardhook", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def add(home: Path, name: str, pattern: object, action: str = "deny", *more: str) -> Done:
    text = pattern if isinstance(pattern, str) else json.dumps(pattern)
    return run(home, "guard", "add", "--name", name, "--pattern", text, "--action", action, *more)


STEP = json.dumps({"name": "bash", "step_type": "tool_call", "input": {"command": "drop   table users"}})


def test_a_policys_life(home: Path) -> None:
    added = add(home, "no-drop", {"input_regex": r"drop\s+table"}, "deny", "--reason", "tables stay", "--priority", "7")
    assert added.returncode == 0
    ident = added.stdout.strip()
    assert ident.startswith("pol_")
    listed = json.loads(run(home, "guard", "list", "--json").stdout)
    row = next(r for r in listed["policies"] if r["name"] == "no-drop")
    assert (row["id"], row["priority"], row["enabled"], row["layer"]) == (ident, 7, True, "user")
    assert row["pattern"] == {"input_regex": r"drop\s+table"}
    tried = process(home, "guard", "test", stdin=STEP)
    assert tried.returncode == 1
    assert "DENY           no-drop" in tried.stdout
    assert run(home, "guard", "disable", ident).returncode == 0
    assert run(home, "guard", "test", stdin=STEP).returncode == 0
    assert run(home, "guard", "enable", "no-drop").returncode == 0
    as_json = run(home, "guard", "test", "--json", stdin=STEP)
    assert as_json.returncode == 1
    found = json.loads(as_json.stdout)
    assert (found["action"], found["policy"], found["counts"]["deny"]) == ("deny", "no-drop", 1)
    assert found["matches"][0]["span"] == "drop   table"
    assert run(home, "guard", "remove", "no-drop").returncode == 0
    assert run(home, "guard", "remove", "no-drop").returncode == 1


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("null", "a JSON object is needed"),
        ("[]", "a JSON object is needed"),
        ("{", "not valid JSON"),
        ('{"tool": "a", "tool": "b"}', "twice"),
        ({}, "an empty pattern matches nothing"),
        ({"input_contain": "x"}, "unknown key 'input_contain'"),
        ({"input_contains": 5}, "input_contains: text is needed"),
        ({"input_contains": None}, "input_contains: text is needed"),
        ({"input_contains": ["x"]}, "input_contains"),
        ({"input_contains": ""}, "an empty text is in everything"),
        ({"input_contains": "\u200b\u2060\ufeff"}, "nothing is left of it"),
        ({"step_type": "toolcall"}, "is not a step type"),
        ({"name_regex": "("}, "not a valid regular expression"),
        ({"name_regex": "(a+)+"}, "without a bound"),
        ({"event": "user_prompt", "tool": "shell"}, "can never match"),
    ],
)
def test_refused_patterns(home: Path, pattern: object, said: str) -> None:
    done = add(home, "x", pattern)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "policies").exists()


def test_checks_come_in_a_fixed_order(home: Path) -> None:
    assert "not valid JSON" in add(home, "", "{", "block", "--priority", "high").stderr
    assert "--action 'block'" in add(home, "", {"input_contains": ""}, "block", "--priority", "high").stderr
    assert "an empty text" in add(home, "", {"input_contains": ""}, "deny", "--priority", "high").stderr
    late = add(home, "", {"input_contains": "x"}, "deny", "--priority", "high")
    assert (late.returncode, "an integer is needed" in late.stderr) == (2, True)
    assert "name: it is empty" in add(home, "", {"input_contains": "x"}, "deny", "--priority", "").stderr


def test_a_taken_name_is_told_kindly(home: Path) -> None:
    add(home, "x", {"input_contains": "x"})
    again = add(home, "x", {"input_contains": "y"}, "deny", "--json")
    assert again.returncode == 1
    error = json.loads(again.stdout)
    assert error["ok"] is False
    assert "already a policy named 'x'" in error["error"]


def test_two_racing_adds_of_one_name(home: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "guardhook",
        "guard",
        "add",
        "--name",
        "x",
        "--action",
        "deny",
        "--pattern",
        '{"input_contains":"x"}',
    ]
    racing = [
        subprocess.Popen([*words, "--dir", str(home)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ends = [(*p.communicate(timeout=60), p.returncode) for p in racing]
    assert sorted(code for _, _, code in ends) == [0, 1, 1, 1]
    assert all("already a policy named" in err for _, err, code in ends if code == 1)


def test_a_policy_that_only_audits_is_accepted_with_a_warning(home: Path) -> None:
    done = add(home, "x", {"output_contains": "secret"})
    assert done.returncode == 0
    assert "can't stop a live call" in done.stderr


def test_list_fits_eighty_columns_and_is_plain_in_a_pipe(home: Path) -> None:
    add(home, "a-rather-long-name-for-a-policy-of-mine", {"input_contains": "x" * 100})
    done = process(home, "guard", "list", COLUMNS="80")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert "delete-root-or-home" in done.stdout


def test_list_reports_what_is_wrong(home: Path) -> None:
    add(home, "costly", {"input_regex": r"\w+@\w+"})
    (home / "exceptions.toml").write_text(
        '[[exception]]\npolicy = "costly"\nmatch = { tool = "shell" }\nreason = "x"\nexpires = 2020-01-01\n'
    )
    done = run(home, "guard", "list")
    assert done.returncode == 0
    assert "costly: its regular expression has no literal" in done.stderr
    assert "expired on 2020-01-0" in done.stderr
    assert "the next hook recompiles the policies first" in done.stderr
    (home / "policies/bad.toml").write_text("[[policy]\n")
    done = run(home, "guard", "list", "--json")
    assert done.returncode == 2
    assert "bad.toml:1: not valid TOML" in json.loads(done.stdout)["problems"][0]


def test_list_says_when_nothing_guards(home: Path) -> None:
    (home / "bin").mkdir(parents=True)
    (home / "bin/claude-code.enforce").write_text("")
    (home / "journal/2020-01-01").mkdir(parents=True)
    assert "nothing was recorded since 2020-01-01" in run(home, "guard", "list").stderr


def test_agent_text_can_not_reach_the_terminal(home: Path) -> None:
    (home / "policies").mkdir(parents=True)
    (home / "policies/x.toml").write_text(
        '[[policy]]\nname = "a"\naction = "deny"\nmatch = { input_contains = "\\u001b[2J\\u202e" }\n'
    )
    done = run(home, "guard", "list", "--project", str(home))
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


def test_shipped_policies_are_switched_by_an_override_and_never_removed(home: Path) -> None:
    bomb = "b() { b | b & }; b"
    assert run(home, "guard", "test", "--command", bomb).returncode == 1
    assert run(home, "guard", "disable", "fork-bomb").returncode == 0
    assert run(home, "guard", "test", "--command", bomb, "--json").returncode == 0
    refused = run(home, "guard", "remove", "fork-bomb")
    assert (refused.returncode, "can't be removed" in refused.stderr) == (2, True)


def test_a_shipped_pack_is_switched_as_a_whole(home: Path) -> None:
    drop = ("guard", "test", "--json", "--command", "psql -c 'DROP TABLE users'")
    assert json.loads(run(home, *drop).stdout)["action"] == "allow"
    done = run(home, "guard", "enable", "databases")
    assert (done.returncode, "database-drop" in done.stderr) == (0, True)
    assert json.loads(run(home, *drop).stdout)["action"] == "require_review"
    assert run(home, "guard", "disable", "databases").returncode == 0
    assert json.loads(run(home, *drop).stdout)["action"] == "allow"
    missing = run(home, "guard", "enable", "no-such-pack")
    assert (missing.returncode, "'no-such-pack'" in missing.stderr) == (1, True)


def test_a_pack_that_is_switched_off_and_on_again_is_what_it_was(home: Path) -> None:
    """Policies of the strict preset must not stay on in the balanced one."""

    def on() -> dict[str, bool]:
        listed = json.loads(run(home, "guard", "list", "--json").stdout)["policies"]
        return {row["name"]: row["enabled"] for row in listed if row["file"].endswith("/git.toml")}

    before = on()
    assert run(home, "guard", "disable", "git").returncode == 0 and not any(on().values()) and any(before.values())
    assert run(home, "guard", "enable", "git").returncode == 0 and on() == before and not all(before.values())
    assert run(home, "guard", "enable", "git").returncode == 0 and all(on().values())  # nothing was off: all of it


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"name": "x"}', '{"step_type": "tool_call"}'])
def test_what_can_not_be_tried_is_a_usage_error(home: Path, text: str) -> None:
    done = run(home, "guard", "test", stdin=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("guardhook: stdin: ")


def test_a_payload_from_a_file(home: Path, tmp_path: Path) -> None:
    payload = {
        "session_id": "s",
        "transcript_path": "/t",
        "cwd": "/",
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
    }
    payload |= {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}, "tool_use_id": "t"}
    path = tmp_path / "payload.json"
    path.write_text(json.dumps(payload))
    assert run(home, "guard", "test", "--file", str(path)).returncode == 1
    assert run(home, "guard", "test", "--file", str(tmp_path / "none")).returncode == 2


# -- policy ------------------------------------------------------------------------------------------------------------------


def test_compile_tells_errors_with_their_place(home: Path) -> None:
    assert run(home, "policy", "compile").returncode == 0
    (home / "policies").mkdir()
    (home / "policies/x.toml").write_text('[[policy]]\nname = "a"\naction = "deny"\nmatch = { tol = "shell" }\n')
    done = run(home, "policy", "compile")
    assert done.returncode == 2
    assert "policies/x.toml:4: policy[0].match.tol: unknown key" in done.stderr
    as_json = run(home, "policy", "compile", "--json")
    assert json.loads(as_json.stdout)["ok"] is False


def test_shipped_examples_all_pass(home: Path) -> None:
    done = run(home, "policy", "test", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["examples"] > 100


def test_a_failing_example_fails_the_test(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        '[[policy]]\nname = "a"\naction = "deny"\nmatch = { input_contains = "rm" }\n'
        '[[policy.example]]\ncommand = "rm x"\nexpect = "deny"\n[[policy.example]]\ncommand = "rm y"\nexpect = "allow"\n'
    )
    done = run(home, "policy", "test", str(path))
    assert done.returncode == 1
    assert "FAILED a: rm y: expected allow, got deny" in done.stderr
    assert "2 examples, 1 failed" in done.stdout


def test_show(home: Path) -> None:
    done = run(home, "policy", "show", "delete-root-or-home")
    assert done.returncode == 0
    assert 'action = "deny"' in done.stdout
    assert json.loads(run(home, "policy", "show", "fork-bomb", "--json").stdout)["policy"]["name"] == "fork-bomb"
    assert run(home, "policy", "show", "nope").returncode == 1


def test_what_is_not_there_is_told_and_not_taken_for_success(home: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for words in (("policy", "test", nowhere), ("guard", "list", "--project", nowhere)):
        done = run(home, *words)
        assert done.returncode == 2
        assert "there is no such" in done.stderr
        assert json.loads(run(home, *words, "--json").stdout)["ok"] is False
    assert run(home, "policy", "compile", "--project", nowhere).returncode == 2


def test_a_pattern_is_not_called_a_payload(home: Path) -> None:
    said = add(home, "a", "{tool: 1}").stderr
    assert "--pattern: not valid JSON (character 1)" in said
    assert "payload" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[policy]]\nname = "a"\naction = "block"\nmatch = { tool = "x" }\n', "deny, require_review, warn, allow"),
        (
            '[[policy]]\nname = "a"\naction = "deny"\npresets = ["lax"]\nmatch = { tool = "x" }\n',
            "use one of balanced, strict",
        ),
    ],
)
def test_a_wrong_word_in_a_policy_is_answered_with_the_right_ones(home: Path, text: str, expected: str) -> None:
    (home / "policies").mkdir(parents=True)
    (home / "policies/x.toml").write_text(text)
    done = run(home, "policy", "compile")
    assert done.returncode == 2
    assert expected in done.stderr
