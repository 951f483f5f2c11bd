"""Real clients export their telemetry to a running receiver, over each transport that they have; their sessions are traces then.

The clients see a network of their own, so the receiver is started in it, beside the client, by a small program that puts the receiver's address into the
client's words and environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from realclients.driver import PROMPT, Home, Result, run
from realclients.install import Pin

from guardhook.core.folders import explicit
from guardhook.store import Store, Trace, open_store

ROOT = Path(__file__).resolve().parents[2]
BESIDE = """
import json, os, signal, subprocess, sys
root, folder, *words = sys.argv[1:]
serve = [sys.executable, "-m", "guardhook", "otel", "serve", "--dir", folder, "--port", "0", "--grpc-port", "0", "--json"]
receiver = subprocess.Popen(serve, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root})
told = json.loads(receiver.stdout.readline())
def fill(text):
    return text.replace("@HTTP@", told["http"]).replace("@GRPC@", "http://" + str(told["grpc"]))
status = subprocess.run([fill(w) for w in words], env={k: fill(v) for k, v in os.environ.items()}, stdin=subprocess.DEVNULL).returncode
receiver.send_signal(signal.SIGTERM)
account = receiver.communicate(timeout=60)[0]
with open(folder + "/account.json", "wb") as file:
    file.write(account)
sys.exit(status if receiver.returncode == 0 else 99)
"""
Homes = Callable[[Pin, str], Home]


def claude(protocol: str) -> dict[str, str]:
    return {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1", "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "@GRPC@" if protocol == "grpc" else "@HTTP@", "OTEL_LOG_USER_PROMPTS": "1", "OTEL_LOG_TOOL_DETAILS": "1",
    }  # fmt: skip


def codex(protocol: str) -> list[str]:
    words = []
    for setting, path in (("exporter", "logs"), ("trace_exporter", "traces"), ("metrics_exporter", "metrics")):
        where = (
            '{otlp-grpc={endpoint="@GRPC@"}}'
            if protocol == "grpc"
            else f'{{otlp-http={{endpoint="@HTTP@/v1/{path}",protocol="{protocol}"}}}}'
        )
        words += ["-c", f"otel.{setting}={where}"]
    return [*words, "-c", "otel.log_user_prompt=true"]


def gemini(protocol: str) -> dict[str, str]:
    return {
        "GEMINI_TELEMETRY_ENABLED": "true", "GEMINI_TELEMETRY_TARGET": "local", "GEMINI_TELEMETRY_OTLP_PROTOCOL": protocol,
        "GEMINI_TELEMETRY_OTLP_ENDPOINT": "@GRPC@" if protocol == "grpc" else "@HTTP@", "GEMINI_TELEMETRY_LOG_PROMPTS": "true",
        "GEMINI_TELEMETRY_TRACES_ENABLED": "true",
    }  # fmt: skip


def qwen(protocol: str) -> dict[str, str]:
    """Qwen Code has the same settings under a name of its own."""
    return {name.replace("GEMINI_", "QWEN_"): value for name, value in gemini(protocol).items()}


class Session:
    """One session with the receiver beside it, and the store after it."""

    def __init__(self, result: Result, folder: Path) -> None:
        self.result = result
        self.folder = folder
        self.account = json.loads((folder / "account.json").read_text())

    def trace(self, store: Store, form: str) -> Trace:
        found = [trace for trace in store.iterate() if trace.metadata.get("source_format") == form]
        assert len(found) == 1, (form, [t.metadata for t in store.iterate()], self.account, self.result.story())
        return found[0]


def exported(home: Home, monkeypatch: pytest.MonkeyPatch, *, env: dict[str, str], arguments: list[str]) -> Session:
    work = home.work()
    folder = work.with_name(work.name + "-gh")
    folder.mkdir()
    plain = home.driver.command

    def beside(home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        words, extra = plain(home, work, port, prompt)
        return [sys.executable, "-c", BESIDE, str(ROOT), str(folder), *words], extra

    monkeypatch.setattr(home.driver, "command", beside)
    result = run(home, work=work, env=env, arguments=arguments, limit=90)
    assert result.ran and result.rc == 0, result.story()
    session = Session(result, folder)
    assert session.account["requests_refused"] == 0, session.account
    return session


@pytest.mark.dialects("claude-code")
@pytest.mark.parametrize("protocol", ["http/json", "http/protobuf", "grpc"])
def test_claude_code(plain: Home, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    session = exported(plain, monkeypatch, env=claude(protocol), arguments=[])
    with open_store(explicit(str(session.folder))) as store:
        trace = session.trace(store, "claude-code-logs")
        assert (trace.agent_name, trace.agent_version) == ("claude-code", plain.driver.installed.pin.version)
        assert trace.input == {"prompt": PROMPT} and trace.status == "completed"
        (call,) = [step for step in store.steps(trace) if step.step_type == "tool_call"]
        assert call.name == "Bash" and call.error is None
        assert [s for s in store.steps(trace) if s.step_type == "decision"] and trace.total_tokens
        assert "metrics" in trace.metadata
        assert list(store.problems()) == []
        if plain.driver.installed.pin.row == "claude-code":  # the older one has no spans
            spans = session.trace(store, "otel-genai")
            assert spans.session_id == trace.session_id and spans.input == {"prompt": PROMPT}
            assert [step.name for step in store.steps(spans) if step.step_type == "tool_call"] == ["Bash"]


@pytest.mark.dialects("codex")
@pytest.mark.parametrize("protocol", ["json", "binary", "grpc"])
def test_codex(plain: Home, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    session = exported(plain, monkeypatch, env={}, arguments=codex(protocol))
    with open_store(explicit(str(session.folder))) as store:
        trace = session.trace(store, "codex-logs")
        assert (trace.agent_name, trace.agent_version) == ("codex", plain.driver.installed.pin.version)
        assert trace.input == {"prompt": PROMPT} and trace.status == "completed"
        (call,) = [step for step in store.steps(trace) if step.step_type == "tool_call"]
        assert call.name == "exec_command" and call.error is None and isinstance(call.input, dict) and call.input["cmd"]
        assert list(store.problems()) == []
    assert session.account["rejected"]["traces"] == session.account["records"]["traces"]


@pytest.mark.dialects("gemini")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_gemini(plain: Home, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    session = exported(plain, monkeypatch, env=gemini(protocol), arguments=[])
    with open_store(explicit(str(session.folder))) as store:
        trace = session.trace(store, "gemini-cli-logs")
        assert trace.agent_name == "gemini" and trace.input == {"prompt": PROMPT} and trace.status == "completed"
        (call,) = [step for step in store.steps(trace) if step.step_type == "tool_call"]
        assert call.name == "run_shell_command" and call.error is None
        assert "metrics" in trace.metadata and trace.total_tokens
        spans = session.trace(store, "gemini-cli-spans")
        assert spans.session_id == trace.session_id
        assert [step.name for step in store.steps(spans) if step.step_type == "tool_call"] == ["run_shell_command"]
        assert list(store.problems()) == []


@pytest.mark.dialects("qwen-code")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_qwen_code(plain: Home, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    session = exported(plain, monkeypatch, env=qwen(protocol), arguments=[])
    with open_store(explicit(str(session.folder))) as store:
        trace = session.trace(store, "qwen-code-logs")
        assert trace.agent_name == "qwen-code" and trace.input == {"prompt": PROMPT} and trace.status == "completed"
        (call,) = [step for step in store.steps(trace) if step.step_type == "tool_call"]
        assert call.name == "run_shell_command" and call.error is None and trace.total_tokens
        assert list(store.problems()) == []
