"""export: its formats, its warnings, its refusals."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.store import Appender, Filter, golden, open_store

HOSTILE = "a\x1b[31mred\x07\r\nnext\x9b2J\u202eevil\x7f \ud83d\ude00 \u4e16"


def run(data: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["export", *args, "--dir", str(data)], env={"GUARDHOOK_DIR": ""})


def put(data: Path, name: str, *steps: dict[str, object], end: str | None = "completed", **start: object) -> None:
    lines: list[tuple[str, dict[str, object]]] = [("trace.start", {"agent_name": "bot", "input": {"q": 1}, **start})]
    for number, more in enumerate(steps, 1):
        lines.append(("trace.step", {"step_number": number, "step_type": "tool_call", "name": "Bash", **more}))
    if end:
        lines.append(("trace.end", {"status": end, "output": {"a": 1}}))
    Appender(explicit(str(data)), redaction="full").put(name, lines, opens=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "gh"
    put(
        found, "trc_one", {"input": {"command": "ls"}, "snapshot": {"token_count": 7}}, {"error": "broke", "model": "m"}
    )
    put(found, "trc_two", {"name": HOSTILE, "input": {"command": HOSTILE}}, agent_name=HOSTILE, end=None)
    put(found, "trc_fork", {}, parent_trace_id="trc_one", forked_from_step=1, metadata={"status": "own", "x": 1})
    return found


def test_json_is_one_array_and_jsonl_the_same_traces_line_by_line(data: Path) -> None:
    array = run(data)
    lines = run(data, "--format", "jsonl")
    assert array.exit_code == lines.exit_code == 0
    found = json.loads(array.stdout)
    assert [json.loads(line) for line in lines.stdout.splitlines()] == found
    assert {t["id"] for t in found} == {"trc_one", "trc_two", "trc_fork"}
    one = next(t for t in found if t["id"] == "trc_one")
    assert [s["step_number"] for s in one["steps"]] == [1, 2] and one["steps"][1]["error"] == "broke"
    assert "evals" not in one and "snapshot" not in one["steps"][0]
    assert array.stdout.startswith('[\n  {\n    "id"') and array.stdout.endswith("\n  }\n]\n")


@pytest.mark.parametrize("format", ["json", "jsonl", "golden"])
def test_nothing_that_was_recorded_reaches_the_terminal_as_itself(data: Path, format: str) -> None:
    result = run(data, "--format", format, *(["--all-projects"] if format == "golden" else []))
    assert result.stdout.isascii() and result.stdout.replace("\n", "").isprintable()
    two = next(t for t in map(json.loads, run(data, "--format", "jsonl").stdout.splitlines()) if t["id"] == "trc_two")
    assert two["steps"][0]["input"]["command"].encode("utf-16", "surrogatepass") == HOSTILE.encode(
        "utf-16", "surrogatepass"
    )


def test_evals_and_snapshots_only_when_asked_for(data: Path) -> None:
    found = json.loads(run(data, "trc_one", "--with-evals", "--with-snapshots").stdout)
    assert len(found) == 1 and found[0]["evals"] == []
    assert found[0]["steps"][0]["snapshot"]["token_count"] == 7 and found[0]["steps"][1]["snapshot"] is None


def test_golden_keeps_what_check_compares(data: Path) -> None:
    result = run(data, "--format", "golden", "--all-projects", "--with-evals")
    found = {e["id"]: e for e in json.loads(result.stdout)}
    assert set(found) == {"trc_one", "trc_two"}  # no forks
    assert "change nothing" in result.stderr
    one = found["trc_one"]
    assert list(one) == [
        "id", "agent_name", "input", "expected_output", "steps_summary", "eval_criteria", "metadata",
    ]  # fmt: skip
    assert one["steps_summary"] == [
        {"step_number": 1, "step_type": "tool_call", "name": "Bash", "input": {"command": "ls"}, "failed": False},
        {"step_number": 2, "step_type": "tool_call", "name": "Bash", "input": {}, "model": "m", "failed": True},
    ]
    assert one["metadata"]["status"] == "completed" and one["expected_output"] == {"a": 1}


def test_golden_is_written_step_by_step_and_reads_as_one(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"steps_summary": [], "a": {"steps_summary": []}}
    put(
        data,
        "trc_tricky",
        {"input": own},
        {"input": {}},
        input=own,
        metadata={"steps_summary": [], "text": '\n  "steps_summary": []'},
    )
    put(data, "trc_bare", input={"q": 2})
    with open_store(explicit(str(data))) as store:
        want = [golden.entry(store, trace) for trace in store.iterate(Filter(forks=False))]
    real = golden.entry
    monkeypatch.setattr(golden, "entry", lambda store, trace, *, steps=True: real(store, trace, steps=False))
    assert json.loads(run(data, "--format", "golden", "--all-projects").stdout) == want


def test_golden_puts_metadata_aside_whose_name_it_needs(data: Path) -> None:
    put(data, "trc_meta", {}, metadata={"status": "mine", "tags": "t", "x": 1})
    found = {e["id"]: e for e in json.loads(run(data, "--format", "golden", "--all-projects").stdout)}
    metadata = found["trc_meta"]["metadata"]
    assert metadata["trace_metadata_status"] == "mine" and metadata["trace_metadata_tags"] == "t"
    assert metadata["status"] == "completed" and metadata["tags"] == [] and metadata["x"] == 1


def test_golden_is_of_the_current_project(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / ".git").mkdir(parents=True)
    put(data, "trc_here", {}, project=str(here))
    monkeypatch.chdir(here)
    assert [e["id"] for e in json.loads(run(data, "--format", "golden").stdout)] == ["trc_here"]
    assert len(json.loads(run(data).stdout)) == 4


def test_an_output_file_is_private_and_whole(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = run(data, "--format", "golden", "--all-projects", "--output", str(file))
    assert (
        result.exit_code == 0 and result.stdout == "" and "1 of 2 entries are not from completed runs" in result.stderr
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(json.loads(file.read_text())) == 2
    file.chmod(0o644)
    empty = run(data, "--format", "jsonl", "--status", "failed", "--output", str(file))
    assert empty.exit_code == 0 and file.read_text() == "" and stat.S_IMODE(file.stat().st_mode) == 0o644
    assert "empty" in run(data, "--format", "golden", "--tag", "none", "--output", str(file)).stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gh", "out.json"]
    assert run(data, "--output", str(tmp_path / "no" / "such")).exit_code == 1


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["trc_one", "--status", "failed"], 2), (["--format", "xml"], 2), (["--status", "done"], 2), (["--since", "soon"], 2), (["--tag", ""], 2),
        (["--agent", " "], 2), (["--output", ""], 2), (["nope"], 1), (["trc"], 2), (["--project", ".", "--all-projects"], 2), (["--nope"], 2),
    ],
)  # fmt: skip
def test_mistakes(data: Path, words: list[str], status: int) -> None:
    result = run(data, *words)
    assert result.exit_code == status and result.stdout == ""


def test_where_nothing_was_recorded_nothing_is_made(tmp_path: Path) -> None:
    result = run(tmp_path / "gh", "--output", str(tmp_path / "file"))
    assert result.exit_code == 1 and list(tmp_path.iterdir()) == []


# --- parquet -------------------------------------------------------------------------------------------------------


def table(path: Path) -> list[dict[str, object]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    return rows


def test_parquet_has_one_row_per_step_with_its_trace(data: Path, tmp_path: Path) -> None:
    put(data, "trc_empty", started_at="whenever")
    out = tmp_path / "x.parquet"
    result = run(data, "--format", "parquet", "-o", str(out), "--with-evals", "--with-snapshots")
    assert (result.exit_code, result.stdout) == (0, "") and stat.S_IMODE(out.stat().st_mode) == 0o600
    rows = table(out)
    traces = {t["id"]: t for t in map(json.loads, run(data, "--format", "jsonl", "--with-snapshots").stdout.splitlines())}  # fmt: skip
    assert len(rows) == sum(max(1, len(t["steps"])) for t in traces.values())
    for row in rows:
        trace = traces[row["trace_id"]]
        assert (row["trace_agent_name"], row["trace_status"], row["trace_evals"]) == (trace["agent_name"], trace["status"], "[]")  # fmt: skip
        assert json.loads(str(row["trace_input"])) == trace["input"] and json.loads(str(row["trace_tags"])) == []
        if row["step_number"] is None:
            assert row["trace_id"] == "trc_empty" and row["trace_started_at"] is None and row["name"] is None
            continue
        step = trace["steps"][row["step_number"] - 1]
        assert [row[k] for k in ("step_id", "step_type", "name", "error", "model", "duration_ms")] == [step[k] for k in ("id", "step_type", "name", "error", "model", "duration_ms")]  # fmt: skip
        assert json.loads(str(row["input"])) == step["input"]
        assert (None if row["snapshot"] is None else json.loads(str(row["snapshot"]))) == step["snapshot"]
        assert row["started_at"].isoformat(timespec="milliseconds") == step["started_at"].replace("Z", "+00:00")  # type: ignore[attr-defined]


def test_parquet_of_one_trace_and_of_none(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    assert run(data, "trc_one", "--format", "parquet", "--output", str(out)).exit_code == 0
    assert {r["trace_id"] for r in table(out)} == {"trc_one"}
    assert run(data, "--agent", "nobody", "--format", "parquet", "--output", str(out)).exit_code == 0 and table(out) == []  # fmt: skip


def test_parquet_is_written_in_row_groups(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = pytest.importorskip("pyarrow.parquet")
    from guardhook.store import parquet

    put(data, "trc_many", *({"input": {"n": n, "pad": "x" * 50}} for n in range(40)))
    out = tmp_path / "x.parquet"
    for name, most in (("GROUP_ROWS", 7), ("GROUP_CHARS", 400)):
        with monkeypatch.context() as patch:
            patch.setattr(parquet, name, most)
            assert run(data, "trc_many", "--format", "parquet", "--output", str(out)).exit_code == 0
        found = reader.ParquetFile(out)
        assert found.num_row_groups > 4
        assert [json.loads(i)["n"] for i in found.read().column("input").to_pylist()] == list(range(40))


def test_parquet_needs_a_file_and_its_library(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(data, "--format", "parquet")
    assert result.exit_code == 2 and "--output" in result.stderr
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    out = tmp_path / "x.parquet"
    result = run(data, "--format", "parquet", "--output", str(out))
    assert result.exit_code == 2 and "guardhook[parquet]" in result.stderr and not out.exists()


def test_a_long_trace_is_one_line_of_jsonl_written_in_pieces(data: Path) -> None:
    from guardhook.store import Filter, export, open_store

    put(data, "trc_many", *({"input": {"text": "  a\n  b\\ \x7f" + HOSTILE}} for _ in range(50)), metadata={"k": "  v"})
    pieces: list[str] = []
    with open_store(explicit(str(data))) as store:
        export.write(pieces.append, store, store.iterate(Filter(ids=("trc_many",))), "jsonl")
        array: list[str] = []
        export.write(array.append, store, store.iterate(Filter(ids=("trc_many",))), "json")
    text = "".join(pieces)
    assert len(pieces) > 50 and text.count("\n") == 1 and '": ' not in text and text.isascii()
    assert [json.loads(text)] == json.loads("".join(array))
