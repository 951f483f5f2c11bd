"""Measures `guardhook import`: time, processor time and peak memory of the whole command, on generated transcripts.

    python build/bench_intake.py [--megabytes 50] [--large 1000] [--runs 3] [--keep DIR]

The files look like Claude Code's own: one record per content block, usage repeated, tool results told twice, attachments and bookkeeping between.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_TEXT = (
    "the a to of and in for is that with this from not are be on it we can should error value function return class import test file path "
    "line number string list index result config parse render update module handler request response server client table row column query "
    "branch commit merge build cache worker thread queue timeout retry token key session user name id type about above after again all also "
    "always another any because before being below between both but by could default does done during each either else enough even every "
    "example expected fails field find first found given had has have here how however if into just keep known last later least less let like "
    "look made make many may might more most much must need never new next no nothing now off old once one only open or other our out over own "
    "part place point rather read really rest right same say second see seen set several show side simple since size small so some something "
    "start state step still stop such sure take than their them then there these they thing think time too try two under until up use used "
    "uses very want was way well were what when where whether which while who why will without word work would write yet zero array buffer "
    "byte chunk counter cursor decode encode entry flag format frame graph group header hook input iterator journal layer limit lock map "
    "match memory message method mode node object offset option order output package page parent payload pipe policy pool port process program"
)
WORDS = _TEXT.split()
TOOLS = ("Bash", "Read", "Edit", "Grep", "Write", "Glob", "WebFetch", "TodoWrite")


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def code(rng: random.Random, lines: int) -> str:
    out = []
    for number in range(1, lines + 1):
        a, b, c = rng.choices(WORDS, k=3)
        out.append(rng.choice((
            f"{number:6d}\tdef {a}_{b}({c}: str) -> int:",
            f"{number:6d}\t    {a} = self.{b}.get(\"{c}\", {rng.randrange(1000)})",
            f"{number:6d}\t    # {a} {b} {c} → {words(rng, 4)}",
            f"{number:6d}\t    return {a}[{b}] + len({c})",
            f"src/{a}/{b}.py:{number}:    raise ValueError(f\"{{{c}}} is no {a}\")",
            f"2026-11-30T00:{number % 60:02d}:01Z INFO {a}.{b}: {words(rng, 6)} id={rng.randrange(1 << 40):x}",
        )))  # fmt: skip
    return "\n".join(out)


def transcript(rng: random.Random, size: int) -> Iterator[str]:
    """Records of one session, about so many bytes."""
    session = f"{rng.getrandbits(64):016x}-bench"
    base = {"userType": "external", "entrypoint": "cli", "cwd": "/home/user/project", "sessionId": session, "version": "2.1.332", "gitBranch": "main"}  # fmt: skip
    clock = 1_796_000_000.0
    parent: str | None = None
    done = turn = 0

    def record(fields: dict[str, object]) -> str:
        nonlocal parent, clock, done
        clock += rng.random() * 3
        uuid = f"{rng.getrandbits(128):032x}"
        whole = {"parentUuid": parent, "isSidechain": False, **fields, "uuid": uuid, **base}
        whole["timestamp"] = (
            time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(clock)) + f"{int(clock * 1000) % 1000:03d}Z"
        )
        parent = uuid
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n"
        done += len(text.encode())
        return text

    while done < size:
        turn += 1
        yield record({"type": "user", "message": {"role": "user", "content": words(rng, 30)}, "promptId": f"p{turn}"})
        yield record({"type": "attachment", "attachment": {"type": "date", "date": "2026-11-30"}, "rendered": [{"content": f"<system-reminder>{words(rng, 30)}</system-reminder>"}]})  # fmt: skip
        for _ in range(rng.randrange(4, 30)):
            message = f"msg_{rng.getrandbits(80):020x}"
            usage = {
                "input_tokens": rng.randrange(1, 2000), "cache_creation_input_tokens": rng.randrange(5000), "cache_read_input_tokens": rng.randrange(90000),
                "output_tokens": rng.randrange(2000), "output_tokens_details": {"thinking_tokens": 0}, "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "service_tier": "standard", "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 2}, "iterations": [], "speed": "standard",
            }  # fmt: skip
            blocks: list[dict[str, object]] = []
            if rng.random() < 0.4:
                blocks.append({"type": "thinking", "thinking": words(rng, 40), "signature": "c2ln" * 60})
            if rng.random() < 0.5:
                blocks.append({"type": "text", "text": words(rng, 40)})
            calls = []
            for _ in range(rng.choice((1, 1, 1, 2))):
                call = f"toolu_{rng.getrandbits(96):024x}"
                name = rng.choice(TOOLS)
                given: dict[str, object] = {
                    "command": f"grep -rn {words(rng, 2)} src | head",
                    "description": words(rng, 5),
                }
                if name in ("Edit", "Write"):
                    given = {"file_path": f"/home/user/project/src/{rng.choice(WORDS)}.py", "content": code(rng, 12)}
                blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
                calls.append(call)
            for index, block in enumerate(blocks):
                yield record({
                    "type": "assistant", "apiBlockIndex": index, "requestRef": f"{rng.getrandbits(64):x}", "effort": "medium",
                    "message": {"id": message, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block], "stop_reason": "tool_use", "usage": usage},
                })  # fmt: skip
            for call in calls:
                said = code(rng, rng.choice((2, 5, 10, 30)))
                failed = rng.random() < 0.04
                yield record({
                    "type": "user", "message": {"role": "user", "content": [{"tool_use_id": call, "type": "tool_result", "content": said, "is_error": failed}]},
                    "toolUseResult": {"stdout": said, "stderr": "", "interrupted": False, "isImage": False}, "sourceToolAssistantUUID": parent,
                    "permissionDecision": {"decision": "accept", "source": "config", "reasonType": "rule"},
                })  # fmt: skip
        yield record(
            {"type": "system", "subtype": "stop_hook_summary", "hookCount": 1, "hookInfos": [], "level": "suggestion"}
        )


def write(path: Path, megabytes: float) -> int:
    """Gives the number of records."""
    rng = random.Random(7)
    count = 0
    part = list(transcript(rng, int(min(megabytes, 50) * 1_000_000)))
    with path.open("w", encoding="utf-8") as file:
        for copy in range(max(1, round(megabytes / 50)) if megabytes > 50 else 1):
            for text in part:
                # Copies get ids of their own, or they would be taken for repeated records.
                file.write(text.replace('"uuid":"', f'"uuid":"{copy}').replace('"id":"msg_', f'"id":"msg_{copy}') if copy else text)  # fmt: skip
                count += 1
    return count


def measured(command: list[str]) -> tuple[float, float, float, str]:
    """Wall and processor seconds, peak memory in MB of the command and its children, its stdout."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if process.returncode not in (0,):
        raise SystemExit(f"{command} ended with {process.returncode}: {text[-500:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--large", type=float, default=0, help="a second file of so many megabytes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder for the generated files, used again when they are there")
    parser.add_argument("--write", type=Path, help="only write a file of --megabytes")
    options = parser.parse_args()
    if options.write is not None:
        print(f"{options.write.name}: {write(options.write, options.megabytes):,} records, {options.write.stat().st_size / 1e6:.1f} MB")  # fmt: skip
        return
    with tempfile.TemporaryDirectory() as temporary:
        files = options.keep or Path(temporary)
        files.mkdir(exist_ok=True)
        for size in filter(None, (options.megabytes, options.large)):
            path = files / f"session-{size:g}.jsonl"
            if not path.exists():
                # Not in this process: a child's peak counts what its parent had when it was made.
                subprocess.run([sys.executable, __file__, "--write", str(path), "--megabytes", str(size)], check=True)
            for run in range(options.runs if size == options.megabytes else 1):
                store = Path(temporary) / f"store-{size:g}-{run}"
                words_ = [sys.executable, "-m", "guardhook", "import", str(path), "--dir", str(store)]
                wall, processor, memory, text = measured(words_)
                print(f"import {size:g} MB: {wall:.2f} s, {processor:.2f} s of processor time, {memory:.0f} MB peak; {text.splitlines()[0][:60]}")  # fmt: skip
                wall, processor, memory, text = measured(words_)
                print(f"  again: {wall * 1000:.0f} ms, {memory:.0f} MB; {text.splitlines()[0][-50:]}")


if __name__ == "__main__":
    main()
