"""Made-up traces for `guardhook demo`: what a failed, a timed-out, a well-planned and a guarded run look like. And three policies to look at.

Times are told back from now, so that the samples are always recent. Every trace has the tag `demo` and `metadata.demo`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from guardhook.store.instants import iso_ms

TAG = "demo"
DIALECT = "demo"  # begins the names of the journal files, so that exactly these can be taken out again
Line = tuple[str, dict[str, object]]
Step = dict[str, object]

POLICIES = """\
[[policy]]
name = "sample-no-delete"
description = "Nothing is deleted by an agent on its own."
action = "deny"
priority = 100
reason = "Deleting is for a person to do."
suggest = "Say what should be deleted and why, and let the user do it."
match = { step_type = "tool_call", name_contains = "delete" }

[[policy]]
name = "sample-links-in-answers"
description = "Answers with web addresses are worth a look."
action = "warn"
priority = 75
match = { step_type = "output", output_contains = "http" }

[[policy]]
name = "sample-long-generations"
description = "Model calls that ask for very long answers cost money."
action = "warn"
priority = 50
match = { step_type = "llm_call", input_contains = "max_output_tokens" }
"""


class Sample(NamedTuple):
    """One trace. age: seconds from its start to now. steps: in order, with `ms` for how long each took."""

    id: str
    age: int
    start: dict[str, object]
    steps: tuple[Step, ...]
    end: dict[str, object]

    def lines(self, now_us: int) -> Iterator[Line]:
        """The trace as journal lines."""
        at = now_us - self.age * 1_000_000
        yield "trace.start", {**self.start, "tags": [TAG], "metadata": {"demo": True}, "started_at": iso_ms(at)}
        tokens = 0
        begun = at
        for number, step in enumerate(self.steps, 1):
            ms = step["ms"]
            assert isinstance(ms, int)
            used = step.get("tokens_used", 0)
            tokens += used if isinstance(used, int) else 0
            given = {k: v for k, v in step.items() if k != "ms"}
            yield "trace.step", {
                **given, "step_number": number, "started_at": iso_ms(at), "ended_at": iso_ms(at + ms * 1000), "duration_ms": ms,
            }  # fmt: skip
            at += ms * 1000
        yield "trace.end", {"ended_at": iso_ms(at), "total_duration_ms": (at - begun) // 1000, "total_tokens": tokens, **self.end}  # fmt: skip


def _step(kind: str, name: str, ms: int, input: object = None, output: object = None, **more: object) -> Step:
    return {"step_type": kind, "name": name, "ms": ms, "input": input, "output": output, **more}


SAMPLES = (
    Sample(
        "trc_demo-support", 2 * 3600,
        {"agent_name": "support-bot", "agent_version": "1.4.0", "trigger": "user_message", "input": {"ticket": 4711, "text": "I was charged twice for my order."}},
        (
            _step("thought", "read the ticket", 300, output={"text": "A double charge. The order has to be looked at first."}),
            _step("retrieval", "search_articles", 420, {"query": "charged twice"}, {"hits": ["refunds", "pending charges"]}),
            _step("llm_call", "plan", 2_100, {"messages": 3, "max_output_tokens": 16_000}, {"text": "Look the order up, then compare its payments."}, model="demo-large", tokens_used=1_240),
            _step("tool_call", "lookup_order", 5_000, {"order": "A-1001"}, error="order service: 503 service unavailable"),
            _step("thought", "try once more", 200, output={"text": "The service may be back in a moment."}, caused_by_step=4),
            _step("tool_call", "lookup_order", 5_000, {"order": "A-1001"}, error="order service: 503 service unavailable", caused_by_step=5),
            _step(
                "decision", "give up or hand over", 900, caused_by_step=6, tokens_used=310,
                decision={
                    "chosen": "tell the customer to wait", "rationale": "No person was on call.", "confidence": 0.4, "decided_by": "agent",
                    "options": [{"option": "tell the customer to wait", "score": 0.4}, {"option": "hand over to a person", "score": 0.35}],
                },
            ),
            _step("error", "no answer", 50, error="the order could not be looked up"),
        ),
        {"status": "failed", "error": "the order could not be looked up"},
    ),
    Sample(
        "trc_demo-coder", 26 * 3600,
        {"agent_name": "code-agent", "agent_version": "0.9.2", "trigger": "user_message", "input": {"prompt": "The date parser fails on leap days. Please fix it."}},
        (
            _step("thought", "find the parser", 400, output={"text": "The parser is in dates.py."}),
            _step("tool_call", "Read", 35, {"file_path": "src/dates.py"}, {"lines": 120}),
            _step("llm_call", "propose a change", 3_400, {"messages": 6}, {"text": "February needs a check for leap years."}, model="demo-code", tokens_used=2_950),
            _step("tool_call", "Edit", 40, {"file_path": "src/dates.py", "old_string": "28", "new_string": "29"}, {"ok": True}, caused_by_step=3),
            _step("tool_call", "Bash", 6_200, {"command": "pytest -q tests/test_dates.py"}, {"stdout": "2 failed, 14 passed"}, error="exit status 1", caused_by_step=4),
            _step("tool_call", "Bash", 6_100, {"command": "pytest -q tests/test_dates.py"}, {"stdout": "2 failed, 14 passed"}, error="exit status 1", caused_by_step=5),
            _step("output", "answer", 700, output={"text": "Two tests still fail; years that end in 00 are treated wrongly."}, tokens_used=180),
        ),
        {"status": "failed", "error": "tests fail", "output": {"text": "Two tests still fail; years that end in 00 are treated wrongly."}},
    ),
    Sample(
        "trc_demo-research", 3 * 86_400,
        {"agent_name": "researcher", "trigger": "cron", "input": {"topic": "heat pumps in old buildings"}},
        (
            _step("thought", "split the question", 500, output={"text": "Cost, noise, and radiators."}),
            _step("llm_call", "write search terms", 1_800, {"messages": 2}, {"terms": 6}, model="demo-small", tokens_used=640),
            _step("retrieval", "web_search", 900, {"query": "heat pump old building cost"}, {"hits": 10}),
            _step("retrieval", "web_search", 1_100, {"query": "heat pump noise limits"}, {"hits": 8}),
            _step("tool_call", "fetch", 2_400, {"url": "https://example.com/heat-pumps"}, {"bytes": 48_211}),
            _step("tool_call", "fetch", 30_000, {"url": "https://example.org/report.pdf"}, error="timed out after 30 s"),
            _step("llm_call", "summarise", 9_500, {"messages": 9, "max_output_tokens": 32_000}, {"text": "So far: …"}, model="demo-large", tokens_used=11_800),
            _step("retrieval", "web_search", 1_000, {"query": "radiator size heat pump"}, {"hits": 9}),
            _step("tool_call", "fetch", 240_000, {"url": "https://example.net/archive"}, error="no answer"),
        ),
        {"status": "timeout", "error": "no result after 5 minutes"},
    ),
    Sample(
        "trc_demo-travel", 40 * 60,
        {"agent_name": "travel-planner", "agent_version": "3.0.1", "trigger": "user_message", "session_id": "demo-session-travel", "input": {"prompt": "Two nights in Lisbon in May, not more than 600 euros."}},
        (
            _step("thought", "understand the wish", 250, output={"text": "Dates are free, the budget is not."}),
            _step("tool_call", "search_flights", 1_900, {"to": "LIS", "month": "May"}, {"offers": 14}, parent_step=1),
            _step("tool_call", "search_hotels", 1_700, {"city": "Lisbon", "nights": 2}, {"offers": 31}, parent_step=1),
            _step(
                "decision", "which flight", 800, parent_step=1, caused_by_step=2, tokens_used=420,
                decision={
                    "chosen": "Tuesday, 08:10", "rationale": "It is 70 euros cheaper and leaves two whole days.", "confidence": 0.86, "decided_by": "agent",
                    "options": [{"option": "Tuesday, 08:10", "score": 0.86}, {"option": "Friday, 19:40", "score": 0.52, "rationale": "One day less."}],
                },
                snapshot={"context_window": [{"role": "user", "content": "not more than 600 euros"}], "environment": {"currency": "EUR"}, "tool_state": {"cart": []}, "token_count": 420},
            ),
            _step("decision", "which hotel", 700, parent_step=1, caused_by_step=3, tokens_used=390, decision={"chosen": "Casa Azul", "rationale": "Close to the tram, and within the budget.", "confidence": 0.74, "decided_by": "agent"}),
            _step("tool_call", "hold_flight", 1_300, {"flight": "Tue 08:10"}, {"hold": "F-77"}, parent_step=4, caused_by_step=4),
            _step("tool_call", "hold_room", 1_100, {"hotel": "Casa Azul"}, {"hold": "H-12"}, parent_step=5, caused_by_step=5),
            _step("decision", "book it?", 20_000, caused_by_step=7, decision={"chosen": "yes", "rationale": "The traveller said so.", "decided_by": "user"}),
            _step("tool_call", "book", 2_200, {"holds": ["F-77", "H-12"]}, {"total": 548}, caused_by_step=8),
            _step("output", "answer", 600, output={"text": "Booked for 548 euros: https://example.com/trips/548"}, tokens_used=210),
        ),
        {"status": "completed", "output": {"text": "Booked for 548 euros: https://example.com/trips/548"}, "total_cost_usd": 0.0184},
    ),
    Sample(
        "trc_demo-admin", 15 * 60,
        {"agent_name": "admin-agent", "agent_version": "2.2.0", "trigger": "api", "input": {"task": "Free some space on the file server."}},
        (
            _step("thought", "find what is large", 300, output={"text": "Old exports are the likely culprits."}),
            _step("tool_call", "list_folders", 640, {"order": "size"}, {"folders": ["exports", "photos", "mail"]}),
            _step("tool_call", "delete_folder", 0, {"path": "/srv/exports"}, error="blocked: Deleting is for a person to do.", caused_by_step=2),
            _step("guard_check", "guard:sample-no-delete", 0, {"tool": "delete_folder"}, {"action": "deny"}, caused_by_step=3, decision={"chosen": "deny", "rationale": "Deleting is for a person to do.", "confidence": 1, "decided_by": "policy"}),
            _step("thought", "another way", 350, output={"text": "Compressing frees space as well, and loses nothing."}, caused_by_step=4),
            _step("tool_call", "compress_folder", 8_400, {"path": "/srv/exports"}, {"before_mb": 9_120, "after_mb": 2_310}, caused_by_step=5),
            _step("llm_call", "write the report", 1_200, {"messages": 4}, {"text": "6.8 GB freed."}, model="demo-small", tokens_used=520),
            _step("output", "answer", 300, output={"text": "6.8 GB freed by compressing old exports; whether they may be deleted is for you to say."}),
        ),
        {"status": "completed", "output": {"text": "6.8 GB freed by compressing old exports; whether they may be deleted is for you to say."}},
    ),
)  # fmt: skip
