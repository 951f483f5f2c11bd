"""Anthropic: the Messages API."""

from __future__ import annotations

from guardhook.evals.ai.provider import Question, Reply, Request, count, joined, rows, table
from guardhook.evals.ai.settings import Choice

VERSION = "2023-06-01"


def request(choice: Choice, question: Question) -> Request:
    headers = {"anthropic-version": VERSION}
    if choice.key is not None:
        headers["x-api-key"] = choice.key
    body: dict[str, object] = {
        "model": choice.model,
        "max_tokens": question.max_tokens,
        "system": question.system,
        "messages": [{"role": "user", "content": question.text}],
    }
    return Request(f"{choice.base_url}/v1/messages", headers, body)


def reply(answer: dict[str, object]) -> Reply:
    blocks = map(table, rows(answer.get("content")))
    parts = [str(b["text"]) for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str)]
    usage = table(answer.get("usage"))
    cut = answer.get("stop_reason") == "max_tokens"
    return Reply(
        joined(parts, "anthropic", cut), count(usage.get("input_tokens")), count(usage.get("output_tokens")), cut
    )
