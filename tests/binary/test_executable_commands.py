"""Commands of the single-file executable that bring libraries along: each is used once, as a person would."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from binary_installed import DEADLY, PATH, call

sys.path.insert(0, str(Path(__file__).parents[1] / "dashboard"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

pytestmark = pytest.mark.binary
ROOT = Path(__file__).resolve().parents[2]


class Store:
    """A folder with the sample traces and one call that was denied."""

    def __init__(self, executable: Path, folder: Path) -> None:
        self.executable = executable
        self.folder = folder
        self.environment = {"PATH": PATH, "HOME": str(folder.parent), "LANG": "C.UTF-8"}
        folder.mkdir()
        words = ["hook", "PreToolUse", "--enforce", "--dialect", "claude-code", "--dir", str(folder)]
        subprocess.run([executable, *words], input=call(DEADLY), capture_output=True, timeout=60, env=self.environment)
        assert "sample traces" in self.run("demo")[1]

    def command(self, *words: str) -> list[str]:
        return [str(self.executable), *words, "--dir", str(self.folder)]

    def run(self, *words: str, stdin: bytes = b"", **more: str) -> tuple[int, str, str]:
        done = subprocess.run(
            self.command(*words), input=stdin, capture_output=True, timeout=120, env={**self.environment, **more}
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def done(self, *words: str, stdin: bytes = b"", **more: str) -> str:
        status, out, err = self.run(*words, stdin=stdin, **more)
        assert status == 0, (words, out, err)
        assert "Traceback" not in err and "internal error" not in err
        return out

    @contextmanager
    def serving(self, *words: str, until: str) -> Iterator[list[str]]:
        """A server of ours on a free port; gives the lines that it has said until it was ready."""
        process = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)  # fmt: skip
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if until in line:
                    break
            else:
                pytest.fail(f"{words} ended: {said}")
            yield said
        finally:
            process.terminate()
            rest, _ = process.communicate(timeout=60)
            assert process.returncode == 0, (said, rest)


@pytest.fixture(scope="module")
def store(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(executable, tmp_path_factory.mktemp("commands") / "data")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def fetch(url: str, data: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=data, headers=names)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return answer.status, answer.read()


def ids(store: Store) -> list[str]:
    return [item["id"] for item in json.loads(store.done("list", "--json", "--limit", "-1"))["items"]]


def denied(store: Store) -> str:
    (item,) = json.loads(store.done("list", "--json", "--agent", "claude"))["items"]
    return str(item["id"])


def test_looking_back(store: Store, tmp_path: Path) -> None:
    for name in ids(store):
        store.done("show", name)
        store.done("report", name, "-o", str(tmp_path / f"{name}.html"))
    assert "<script" in (tmp_path / "trc_demo-admin.html").read_text()
    store.done("stats")
    store.done("why", "trc_demo-travel", "--step", "9")
    assert store.run("diff", "trc_demo-support", "trc_demo-admin")[0] == 0


def test_evaluations_with_yaml_rubrics(store: Store, tmp_path: Path) -> None:
    assert store.run("eval", "trc_demo-travel")[0] in (0, 1)
    rubric = tmp_path / "rubric.yaml"
    rubric.write_text(
        "name: mine\nthreshold: 0.5\ncriteria:\n  - name: answers\n    pattern: 'a'\n    expected: true\n"
    )
    status, out, err = store.run("eval", "trc_demo-travel", "--rubric", str(rubric), "--json")
    assert status in (0, 1) and "mine" in out, err


def test_a_model_is_asked_over_http_and_tls_is_there(store: Store) -> None:
    asked: list[str] = []

    class Model(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(self.path)
            body = json.dumps({"choices": [{"message": {"content": "ok"}}], "usage": {}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    store.done("config", "set", "ai.provider", "openai")
    store.done("config", "set", "ai.base_urls.openai", f"http://127.0.0.1:{server.server_port}/v1")
    status, out, err = store.run("config", "test-ai", OPENAI_API_KEY="sk-test")
    server.shutdown()
    assert asked and "sk-test" not in out + err, (status, out, err)
    store.done("config", "set", "ai.base_urls.openai", f"https://127.0.0.1:{free_port()}/v1")
    status, out, err = store.run("config", "test-ai", OPENAI_API_KEY="sk-test")
    assert status != 0 and "internal error" not in err and "SSL" not in err.upper().replace("HTTPS", ""), err


def test_telemetry_in_both_forms(store: Store) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = b"\1" * 16, b"\2" * 8, "chat model"
    span.start_time_unix_nano, span.end_time_unix_nano = 1_790_000_000_000_000_000, 1_790_000_001_000_000_000
    other = {"traceId": "03" * 16, "spanId": "04" * 8, "name": "x", "startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000000000000001"}  # fmt: skip
    told = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [other]}]}]}).encode()
    before = len(ids(store))
    port = free_port()
    with store.serving("otel", "serve", "--port", str(port), until="recording in"):
        url = f"http://127.0.0.1:{port}/v1/traces"
        assert fetch(url, request.SerializeToString(), Content_Type="application/x-protobuf")[0] == 200
        assert fetch(url, told, Content_Type="application/json")[0] == 200
    assert len(ids(store)) == before + 2


def test_the_api(store: Store) -> None:
    port = free_port()
    with store.serving("serve", "--port", str(port), until="listening on"):
        status, body = fetch(f"http://127.0.0.1:{port}/v1/traces")
        assert status == 200 and b"trc_demo-admin" in body
        assert json.loads(fetch(f"http://127.0.0.1:{port}/openapi.json")[1])["openapi"].startswith("3.")


def test_runs_as_files(store: Store, tmp_path: Path) -> None:
    store.done("rollout", "export", "--all", str(tmp_path / "rollouts"))
    files = [str(path) for path in (tmp_path / "rollouts").rglob("*.jsonl")]
    assert files
    store.done("rollout", "verify", *files)
    store.done("archive", "save", denied(store), "--complete", "no", "--to", str(tmp_path / "archive"))
    (envelope,) = (tmp_path / "archive").glob("*.json")
    check = [str(store.executable), "archive", "check", str(envelope)]
    assert subprocess.run(check, env=store.environment, capture_output=True, timeout=60).returncode == 0
    store.done("account", denied(store))


def test_what_others_recorded(store: Store, tmp_path: Path) -> None:
    transcript = ROOT / "tests" / "fixtures" / "transcripts"
    if transcript.is_dir():
        store.done("import", str(transcript))
    events = b'{"type":"trace_start","trace_id":"x1","agent_name":"a"}\n{"type":"trace_end","trace_id":"x1","status":"completed"}\n'  # fmt: skip
    store.done("record", stdin=events)
    assert "x1" in ids(store)
    whole = tmp_path / "w.json"
    whole.write_bytes(b"\xef\xbb\xbf" + b'{"agent_name":"b","status":"completed","steps":[]}')  # with a byte order mark
    store.done("ingest", str(whole))
    # Standard streams belong to the program, so the words end before it.
    words = [str(store.executable), "run", "--dir", str(store.folder), "--", "sh", "-c", "exit 7"]
    assert subprocess.run(words, env=store.environment, timeout=60).returncode == 7


def test_the_dashboard(store: Store, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
    from test_dashboard import Screen

    screen = Screen(store.command("dashboard"), tmp_path)
    screen.until(b"admin-agent")
    os.write(screen.master, b"q")
    assert screen.end() == 0


@pytest.mark.parametrize(("words", "extra"), [(("export", "--format", "parquet", "-o", "x.parquet"), "parquet")])
def test_what_it_does_not_carry_is_told(store: Store, tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    status, _, err = store.run(*words)
    assert status != 0 and f"guardhook[{extra}]" in err and "single-file" in err
    assert not (Path.cwd() / "x.parquet").exists()


def test_every_command_starts(store: Store) -> None:
    """Its help can be read, so nothing that it imports first is missing."""
    out = store.executable
    listing = subprocess.run([out, "--help"], capture_output=True, text=True, env=store.environment, timeout=60).stdout
    names = [line.split()[0] for line in listing.partition("Commands:")[2].splitlines() if line.startswith("  ") and line[2] != " "]  # fmt: skip
    assert len(names) > 40
    for name in names:
        done = subprocess.run([out, name, "--help"], capture_output=True, text=True, env=store.environment, timeout=60)
        assert done.returncode == 0 and "Usage:" in done.stdout, (name, done.stderr)
