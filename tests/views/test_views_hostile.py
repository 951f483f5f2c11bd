"""Whatever was recorded, whatever a name or an argument is: no command gives a terminal anything that it acts on, or that hides or reorders text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from guardhook.commands import TABLE, main
from guardhook.core.folders import explicit
from guardhook.journal import line, write
from guardhook.store import TraceRecorder, open_store
from guardhook.views import text

BAD = "\x1b[31m\x1b]0;t\x07\x9b2J\u202e\u2066\u200d\u200b\ufeff\u00ad\u2028\u2029\U000e0041\ud800\x7f\x00\b"
ODD = f"A{BAD}Z"
LINES = f"one\r\ntwo\n{ODD}\ttab"
SESSION = f"s{BAD}"

# Commands that are not called here, and why.
ELSEWHERE = {
    "hook": "prints a dialect's answer, tested with the gate",
    "pause": "asks a person at a terminal of his own",
    "trust": "asks a person at a terminal of his own",
    "serve": "runs until it is stopped; its errors are called below",
    "otel": "runs until it is stopped",
    "dashboard": "needs a terminal",
    "doctor": "starts the clients of this machine",
}


def payload(event: str, **more: object) -> dict[str, object]:
    return {
        "hook_event_name": event,
        "session_id": SESSION,
        "cwd": f"/p{BAD}",
        "transcript_path": ODD,
        "permission_mode": ODD,
        "model": ODD,
        **more,
    }


def record(folders: object, ts: int, event: str, native: str, **more: object) -> None:
    body = payload(native, **more)
    verdict = {"action": "deny", "policy": ODD, "layer": "user", "reason": LINES, "span": ODD, "set": "s", "mode": "enforce", "cause": ODD, "degraded": ODD, "us": 1,
               "answer": {"exit": 2, "stdout": ODD, "stderr": ODD}}  # fmt: skip
    data: dict[str, object] = {
        "session": SESSION, "dialect": "claude-code", "client": ODD, "native_event": native, "event": event, "call": ODD, "agent": ODD, "cwd": ODD, "tool": body.get("tool_name"),
        "kind": "shell", "payload": body, "redacted": [f"/{ODD}"], "cut": [f"/{ODD}"], "effects": [{"kind": "run", "program": ODD, "path": ODD}],
        "verdict": verdict if event == "pre_tool" else None,
    }  # fmt: skip
    outcome = write.append(
        explicit(str(folders)).journal,
        write.Record(line.RECEIVED, ts, "claude-code", SESSION, ODD, f"/root{BAD}", True, event == "session_end", data), budget=5.0,
    )  # fmt: skip
    assert outcome.state == "recorded"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which every text is hostile."""
    base = tmp_path_factory.mktemp("hostile") / "gh"
    now = 1_790_000_000_000_000_000
    for number, (event, native, more) in enumerate([
        ("session_start", "SessionStart", {"source": ODD}),
        ("user_prompt", "UserPromptSubmit", {"prompt": LINES}),
        ("pre_tool", "PreToolUse", {"tool_name": ODD, "tool_input": {"command": LINES, ODD: [ODD]}}),
        ("post_tool", "PostToolUse", {"tool_name": ODD, "tool_input": {"command": LINES}, "tool_response": {"stdout": LINES, ODD: ODD}}),
        ("notification", "Notification", {"message": LINES}),
        ("subagent_start", "SubagentStart", {"agent_type": ODD, "agent_id": ODD}),
        ("user_prompt", "UserPromptSubmit", {"prompt": ODD}),
        ("stop", "Stop", {"last_assistant_message": LINES}),
        ("session_end", "SessionEnd", {"reason": ODD}),
    ]):  # fmt: skip
        record(base, now + number * 1_000_000_000, event, native, **more)
    folders = explicit(str(base))
    recorder = TraceRecorder(folders)
    tame = ODD.replace("\ud800", "")
    recorder.start_trace(
        tame,
        input={"x": LINES.replace("\ud800", "")},
        agent_version=tame,
        tags=[tame],
        session_id=tame,
        metadata={tame: tame},
    )
    number = recorder.start_step("tool_call", tame, input={"a": tame})
    recorder.add_decision(
        number, chosen=tame, rationale=LINES.replace("\ud800", ""), options=[{"option": tame}]
    ) if hasattr(recorder, "add_decision") else None
    recorder.end_step(number, output=tame, error=LINES.replace("\ud800", ""))
    recorder.end_trace(output={"t": tame}, error=tame)
    (base / "policies").mkdir()
    (base / "policies" / "own.toml").write_text(
        f'[[policy]]\nname = "{json.dumps(tame)[1:-1]}"\ndescription = "{json.dumps(tame)[1:-1]}"\naction = "warn"\nreason = "{json.dumps(tame)[1:-1]}"\nmatch = {{ input_contains = "never" }}\n'
    )  # fmt: skip
    bad = base / "journal" / line.day(now) / "bad-00.jsonl"
    bad.write_bytes(b"\x1b[31m garbage \xc2\x9b \xe2\x80\xae\n")
    bad.chmod(0o600)
    return base


@pytest.fixture
def surroundings(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return {"COLUMNS": "100", "GUARDHOOK_ROLLOUT_DIR": "", "GUARDHOOK_DIR": "", "NO_COLOR": "1"}


def clean(out: Result, what: object, *, data: bool = False) -> None:
    """Nothing that a terminal acts on; data: the exact lines of a documented format that goes into a pipe, in which only ASCII controls are escaped."""
    assert not isinstance(out.exception, Exception) or isinstance(out.exception, SystemExit), (what, out.exception)
    for stream, raw in (("stdout", out.stdout_bytes), ("stderr", out.stderr_bytes)):
        said = raw.decode("utf-8")  # no half surrogates either
        for char in said.replace("\n\t", "\n"):  # the choices that a usage error lists
            kind = unicodedata.category(char)
            if char == "\n" or (data and stream == "stdout" and (kind == "Cf" or "\x7f" <= char <= "\x9f")):
                continue
            assert kind not in ("Cc", "Cf", "Zl", "Zp", "Cs"), (
                what,
                stream,
                f"U+{ord(char):04X}",
                said[max(0, said.index(char) - 80) :][:160],
            )


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(context):
        if not path and name in ELSEWHERE:
            continue
        command = group.get_command(context, name)
        found += leaves(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


COMMANDS = leaves(main)


def takes(words: tuple[str, ...], option: str) -> bool:
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return any(option in p.opts for p in command.params)


def call(words: tuple[str, ...], *more: str, env: dict[str, str], store: Path) -> Result:
    own = ["--dir", str(store)] if takes(words, "--dir") else []
    if words == ("guard", "check"):  # ends its process without more ado
        done = subprocess.run(
            [sys.executable, "-m", "guardhook", *words, *more, *own],
            env={**os.environ, **env},
            input=b"",
            capture_output=True,
            timeout=60,
        )
        return Result(CliRunner(), done.stdout, done.stderr, done.stdout + done.stderr, None, done.returncode, None)
    return CliRunner().invoke(main, [*words, *more, *own], env=env, input="")


@pytest.fixture(scope="module")
def known(store: Path) -> list[str]:
    """The ids of the two traces; commands that are called add others."""
    with open_store(explicit(str(store))) as opened:
        found = [trace.id for trace in opened.iterate()]
    assert len(found) == 2
    return found


# What has to be said beside the trace, and what is data for programs rather than words for people.
MORE = {
    ("why",): ["--step", "1"],
    ("fork",): ["--from-step", "1"],
    ("replay",): ["--speed", "0"],
    ("rollout", "fork"): ["--at-step", "1"],
}
DATA = {("rollout", "export"), ("rollout", "fork"), ("bundle",), ("report",)}


@pytest.mark.parametrize("words", COMMANDS, ids="-".join)
def test_a_hostile_store_and_hostile_words(
    words: tuple[str, ...], store: Path, known: list[str], surroundings: dict[str, str]
) -> None:
    tame = ODD.replace("\ud800", "").replace("\x00", "")
    bytes_ = os.fsdecode(b"no\xffutf-8\xed\xa0\x80")  # as a shell passes on what is no text
    variants: list[list[str]] = [
        [], *[[name, *MORE.get(words, [])] for name in known], [tame], [f"--{tame}"], [bytes_, *MORE.get(words, [])],
    ]  # fmt: skip
    if words == ("watch",):
        del variants[0]  # would follow what other commands left running
    for variant in variants:
        for json_ in ([], ["--json"]) if takes(words, "--json") else ([],):
            out = call(words, *variant, *json_, env=surroundings, store=store)
            clean(out, (words, variant, json_), data=words in DATA)
            if json_ and out.exit_code in (0, 3) and words not in DATA:
                assert out.stdout.isascii(), (words, variant)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "TRACE", "--tree", "--snapshots", "--evals"], ["show", "TRACE", "--steps-only"], ["list", "--agent", ODD[:9]], ["journal", "verify"], ["policy", "list"], ["guard", "list"],
        ["check", "--golden", f"{BAD[:9]}.json"], ["serve", "--token-file", f"/x{BAD[:14]}"], ["serve", "--host", f"h{BAD[:12]}"], ["serve", "--allow-origin", BAD[:9]], [f"no{BAD[:9]}"],
        [f"--no{BAD[:9]}"], ["list", "--sort", BAD[:9]], ["list", "--since", BAD[:9]], ["show", BAD[:9]], ["audit", "verify", f"/x{BAD[:9]}"], ["rollout", "verify", f"/x{BAD[:9]}.jsonl"],
        ["config", "get", BAD[:9]], ["config", "set", BAD[:9], BAD[:9]], ["explain", f"echo {BAD[:14]}"], ["guard", "add", BAD[:9]], ["list", "--dir", f"/nowhere{BAD[:9]}"],
    ],
)  # fmt: skip
def test_hostile_options(words: list[str], store: Path, known: list[str], surroundings: dict[str, str]) -> None:
    for trace in known if "TRACE" in words else [""]:
        said = [trace if word == "TRACE" else word for word in words]
        out = CliRunner().invoke(main, [*said, *([] if "--dir" in said else ["--dir", str(store)])], env=surroundings)
        clean(out, said)


def test_every_command_is_called_here_or_says_why_not() -> None:
    assert {words[0] for words in COMMANDS} | set(ELSEWHERE) == set(TABLE)


@pytest.mark.parametrize(
    "char",
    [
        "\x1b",
        "\x07",
        "\n",
        "\x9b",
        "\u202e",
        "\u200d",
        "\ufeff",
        "\u00ad",
        "\u2028",
        "\u2029",
        "\ud800",
        "\U000e0041",
        "\t",
        "\x7f",
    ],
)
def test_what_does_not_reach_a_terminal_as_itself(char: str) -> None:
    for said in (text.one_line(f"a{char}b"), *text.block(f"a{char}b", 80)):
        assert char not in said and said.isprintable()
    assert len("".join(text.block(f"a{char}b", 80)).splitlines()) == 1


@pytest.mark.parametrize(
    "said",
    ["é", "e\u0301", "😀", "⚠\ufe0f", "✔\ufe0f done", "1\ufe0f", "日本語", "ñ n\u0303", "Z\u0335\u0336", "한국어"],
)
def test_what_people_write_stays(said: str) -> None:
    assert text.one_line(said) == said


@pytest.mark.parametrize(
    "said",
    ["a\ufe0f", "/\u0338", "Z\u0335\u0336\u0337", "\u0301", " \u0301", "\ufe0f", "⚠\ufe0f\ufe0f\ufe0f", "⚠\u200d⚠"],
)
def test_what_hides_is_shown(said: str) -> None:
    shown = text.one_line(said)
    assert shown != said and "\\u" in shown


def test_an_error_is_one_line(surroundings: dict[str, str], tmp_path: Path) -> None:
    out = CliRunner().invoke(main, ["show", "a\nb\u2028c", "--dir", str(tmp_path)], env=surroundings)
    assert len(out.stderr.splitlines()) == 1
    assert os.linesep == "\n"
