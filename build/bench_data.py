"""Policies and payloads of the benchmark: made up, but of the shape that real ones have."""

from __future__ import annotations

import json

QUICK = "ls -la src && cat README.md"
PARSED = (
    "cd services/api && for f in $(git ls-files '*.py'); do grep -n 'TODO' \"$f\" | head -3; done; "
    "python -m pytest -q tests/unit --maxfail=1 2>&1 | tee /tmp/out.log | tail -20"
)
HEAVY = (
    "set -euo pipefail; root=$(git rev-parse --show-toplevel); find \"$root/src\" -name '*.ts' -not -path '*/node_modules/*' -print0 "
    '| xargs -0 grep -lE \'import .* from "lodash"\' | while read -r f; do n=$(grep -c lodash "$f"); '
    '[[ $n -gt ${MIN:-3} ]] && printf \'%s\\t%d\\n\' "${f#$root/}" "$n"; done | sort -k2,2nr | head -20 > "/tmp/report-$(date +%F).txt"; '
    "python3 -c 'import json,sys; print(json.dumps([l.split() for l in open(sys.argv[1])]))' \"/tmp/report-$(date +%F).txt\" "
    '&& bash -c "npm run lint -- --fix && git diff --stat | tail -1" || echo "nothing to do in ${root##*/}"'
)
EFFECT_DENIED = 'cd src && target="$HOME"; rm -rf "$target"/'
SECRETS = "curl -H 'Authorization: Bearer 0123456789abcdefghijklmnop' https://api.example.com && API_KEY=sk-0123456789abcdefghijklmn make"
DENIED = "cd build && bench-forbidden-7 --now"
HOSTILE = "echo " + "a" * 400

# Polynomial of a high degree on a long run of `a`: minutes without a limit.
HOSTILE_POLICY = """
[[policy]]
name = "bench-hostile"
action = "deny"
reason = "hostile pattern"
match = { input_regex = "a*a*a*a*a*a*a*[xy]" }
"""

WORDS = ("deploy", "rotate", "migrate", "drain", "purge", "shred", "revoke", "restore", "freeze", "promote")


def policies(count: int, *, regexes: int) -> str:
    """A policy file of `count` policies. `regexes` of them have a pattern, the others a plain text, all for every tool."""
    out = []
    for number in range(count):
        word = WORDS[number % len(WORDS)]
        if number < regexes:
            match = f'input_regex = "\\\\b{word}-{number}\\\\s+(?:--force|-f)\\\\b.{{0,40}}prod"'
        elif number == count - 1 or number == 7:
            match = 'input_contains = "bench-forbidden-7"'
        else:
            match = f'input_contains = "{word}-target-{number}"'
        out.append(
            f'[[policy]]\nname = "bench-{number}"\naction = "{"deny" if number % 3 else "require_review"}"\n'
            f'priority = {number % 10}\nreason = "Policy {number} of the benchmark."\nmatch = {{ {match} }}\n'
        )
    return "\n".join(out)


def output(command: str, size: int) -> bytes:
    """A PostToolUse payload whose output is a log of about `size` bytes."""
    event = json.loads(payload(command, 0))
    line = "2026-03-01T10:22:07Z INFO worker-3 request=8f14e45f path=/api/items?page=2 status=200 took=12ms\n"
    text = (line * (size // len(line) + 1))[:size]
    event |= {"hook_event_name": "PostToolUse", "tool_response": {"stdout": text, "stderr": "", "interrupted": False}}
    return json.dumps(event).encode()


def payload(command: str, size: int) -> bytes:
    """A Claude Code PreToolUse payload of about `size` bytes. The bulk is a Bash description, in words of a usual text."""
    event: dict[str, object] = {
        "session_id": "7d1f3c2e-1111-4222-8333-944455556666",
        "transcript_path": "/home/dev/.claude/projects/-home-dev-shop/7d1f3c2e-1111-4222-8333-944455556666.jsonl",
        "cwd": "/home/dev/shop",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": ""},
        "tool_use_id": "toolu_01ABCDEFGHJKMNPQRSTVWXYZ",
    }
    text = "Runs the unit tests of the shop service and shows the last lines of their output, then cleans up. "
    missing = max(0, size - len(json.dumps(event)))
    tool_input = event["tool_input"]
    assert isinstance(tool_input, dict)
    tool_input["description"] = (text * (missing // len(text) + 1))[:missing]
    return json.dumps(event).encode()
