"""config list, get, set, unset, test-ai: what they print, where, and how they end."""

from __future__ import annotations

import json
import stat
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main, reading
from guardhook.commands.folders import resolve
from guardhook.core import folders as core
from guardhook.policy import settings, settings_check
from guardhook.policy.settings import Key

SECRET = "sk-test-0123456789-abcd"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "system").mkdir()
    monkeypatch.setattr(core, "system_folder", lambda platform: str(tmp_path / "system"))
    return tmp_path / "gh"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting that is secret, whatever other parts of the product have."""
    rows = (*(k for k in settings.KEYS if not k.name.startswith("ai.")), Key("ai.api_keys.one", "secret", "a key"))
    for module in (settings_check, sys.modules["guardhook.commands.config"]):
        monkeypatch.setattr(module, "KEYS", rows)


def run(data: Path, *words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(
        main, ["config", *words, "--dir", str(data)], input=stdin, env={"GUARDHOOK_DIR": "", "COLUMNS": "80"}
    )


def test_listing_needs_no_file_and_makes_none(data: Path) -> None:
    result = run(data, "list")
    assert result.exit_code == 0 and not data.exists()
    assert "gate.preset" in result.stdout and "balanced" in result.stdout
    assert all(len(line) <= 90 for line in result.stdout.splitlines())
    assert all(f"\n{key.name}" in result.stdout for key in settings.KEYS)  # none is cut
    found = json.loads(run(data, "list", "--json").stdout)
    names = [s["name"] for s in found["settings"]]
    assert names == [k.name for k in settings.KEYS] and found["problems"] == []
    preset = found["settings"][names.index("gate.preset")]
    assert (preset["value"], preset["origin"], preset["choices"]) == ("balanced", "default", ["observe", "balanced", "strict"])  # fmt: skip


def test_set_get_unset(data: Path) -> None:
    done = run(data, "set", "gate.watchdog", "2.5")
    assert done.exit_code == 0 and done.stdout == "" and "gate.watchdog = 2.5" in done.stderr
    assert stat.S_IMODE((data / "config.toml").stat().st_mode) == 0o600 and stat.S_IMODE(data.stat().st_mode) == 0o700
    assert run(data, "get", "gate.watchdog").stdout == "2.5\n"
    assert json.loads(run(data, "get", "gate", "--json").stdout)["value"] == {"watchdog": 2.5}
    assert run(data, "set", "capture.redaction.stop", "none").exit_code == 0
    assert run(data, "set", "capture.redaction.custom", "ab[0-9]{20},cd[0-9]{20}").exit_code == 0
    rows = json.loads(run(data, "list", "--json").stdout)["settings"]
    assert len({s["name"] for s in rows}) == len(rows) == len(settings.KEYS)
    listed = {s["name"]: s for s in json.loads(run(data, "list", "--json").stdout)["settings"]}
    assert listed["capture.redaction.stop"]["value"] == "none" and listed["gate.watchdog"]["origin"] == "user"
    gone = run(data, "unset", "gate.watchdog", "--json")
    assert json.loads(gone.stdout)["ok"] and run(data, "get", "gate.watchdog").stdout == "3\n"
    assert run(data, "unset", "gate.watchdog").exit_code == 1


def test_hooks_get_the_new_setting_at_once(data: Path) -> None:
    from guardhook.policy import compiled

    assert run(data, "set", "gate.preset", "strict").exit_code == 0
    assert compiled.load(resolve(str(data))).config["preset"] == "strict"


def test_what_is_not_set_leaves_stdout_empty(data: Path) -> None:
    result = run(data, "get", "capture.retention")
    assert (result.exit_code, result.stdout) == (0, "") and "(not set)" in result.stderr
    assert json.loads(run(data, "get", "capture.retention", "--json").stdout)["value"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["get", "gate.presett"], "`gate.preset`"), (["set", "capture.mod", "full"], "`capture.mode`"), (["set", "preset", "strict"], "`gate.preset`"), (["set", "gate", "x"], "gate.preset"),
        (["set", "gate.preset", "lax"], "balanced"), (["set", "gate.preset", ""], "value"), (["set", "gate.preset"], "value"), (["set", "capture.redaction.*", "full"], "redaction"),
        (["unset", "gate.presett"], "`gate.preset`"), (["set", "capture.redaction.nope", "full"], "event"), (["frob"], "frob"), (["get"], "NAME"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_what_was_meant_and_change_nothing(data: Path, words: list[str], says: str) -> None:
    for more in ([], ["--json"]):
        result = run(data, *words, *more)
        assert result.exit_code == 2 and says in (result.stdout if more else result.stderr)
    assert not (data / "config.toml").exists()


def test_a_broken_file_is_not_a_missing_one(data: Path) -> None:
    data.mkdir()
    (data / "config.toml").write_text("[gate\n")
    for words in (["list"], ["get", "gate.preset"], ["set", "gate.preset", "strict"], ["test-ai"]):
        result = run(data, *words)
        assert result.exit_code == 2 and "config.toml" in result.stderr and "Traceback" not in result.stderr
    assert (data / "config.toml").read_text() == "[gate\n"


def test_misspelt_sections_are_told_and_kept(data: Path) -> None:
    data.mkdir()
    (data / "config.toml").write_text("[gaate]\npreset = 'strict'\n")
    result = run(data, "list")
    assert result.exit_code == 0 and "config.toml:1: gaate" in result.stderr and "`gate`" in result.stderr
    assert json.loads(run(data, "list", "--json").stdout)["problems"][0]["line"] == 1
    assert "gaate" in run(data, "set", "capture.mode", "full").stderr
    assert "[gaate]\npreset = 'strict'\n" in (data / "config.toml").read_text()
    listed = CliRunner().invoke(main, ["guard", "list", "--dir", str(data)], env={"GUARDHOOK_DIR": ""})
    assert "gaate" in listed.stderr


def test_what_the_machine_locked_is_refused_by_name(data: Path) -> None:
    (data.parent / "system" / "config.toml").write_text("[gate]\nlocked = true\npreset = 'strict'\n")
    for words in (["set", "gate.preset", "observe"], ["unset", "gate.preset"]):
        result = run(data, *words)
        assert result.exit_code == 2 and "gate.preset" in result.stderr and "locked" in result.stderr
    listed = {s["name"]: s for s in json.loads(run(data, "list", "--json").stdout)["settings"]}
    assert listed["gate.preset"]["locked"] and not listed["gate.watchdog"]["locked"]
    assert run(data, "set", "gate.watchdog", "2").exit_code == 0


@pytest.mark.usefixtures("keys")
def test_secrets_come_from_stdin_and_are_never_shown(data: Path) -> None:
    done = run(data, "set", "ai.api_keys.one", "-", stdin=SECRET + "\n")
    assert done.exit_code == 0 and f'one = "{SECRET}"' in (data / "config.toml").read_text()
    outputs = [done, run(data, "list"), run(data, "list", "--json"), run(data, "get", "ai.api_keys.one")]
    outputs += [run(data, "get", name, "--json") for name in ("ai.api_keys.one", "ai", "ai.api_keys")]
    outputs.append(run(data, "set", "ai.api_keys.one", SECRET, "--json"))
    assert all(SECRET not in r.output and r.exit_code == 0 for r in outputs)
    assert outputs[3].stdout == "sk-t…abcd\n"


def test_names_and_values_are_completed() -> None:
    from guardhook.commands import config

    ctx = config.set_.make_context("set", ["gate.preset"], resilient_parsing=True)
    name, value = config.set_.params[:2]
    assert "capture.mode" in [c.value for c in name.shell_complete(ctx, "capture.m")]
    ctx.params["name"] = "gate.preset"
    assert [c.value for c in value.shell_complete(ctx, "s")] == ["strict"]


def test_test_ai_asks_the_probe(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    probe = types.ModuleType("guardhook.evals.probe")
    probe.run = lambda folders, as_json: asked.append((folders.config, as_json))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "guardhook.evals.probe", probe)
    assert run(data, "test-ai", "--json").exit_code == 0 and asked == [(str(data), True)]


@pytest.mark.parametrize(
    ("system", "user", "seconds"),
    [
        ("", "", 1800), ("", "[capture]\nidle_minutes = 5\n", 300), ("[capture]\nidle_minutes = 2\n", "[capture]\nidle_minutes = 5\n", 300),
        ("[capture]\nlocked = true\nidle_minutes = 2\n", "[capture]\nidle_minutes = 5\n", 120), ("locked = true\n[capture]\nidle_minutes = 2\n", "", 120),
        ("", "[capture]\nidle_minutes = true\n", 1800), ("", "[capture]\nidle_minutes = -1\n", 1800), ("", "[capture\nidle_minutes = 5\n", 1800),
    ],
)  # fmt: skip
def test_when_a_silent_trace_counts_as_timed_out(data: Path, system: str, user: str, seconds: float) -> None:
    data.mkdir()
    (data / "config.toml").write_text(user)
    (data.parent / "system" / "config.toml").write_text(system)
    assert reading.idle_seconds(resolve(str(data))) == seconds
