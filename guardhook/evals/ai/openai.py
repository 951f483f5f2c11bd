"""OpenAI: chat completions, which many local servers speak as well."""

from __future__ import annotations

from guardhook.evals.ai.provider import ProviderError, Question, Reply, Request, count, joined, rows, table
from guardhook.evals.ai.settings import Choice


def request(choice: Choice, question: Question) -> Request:
    headers = {} if choice.key is None else {"authorization": f"Bearer {choice.key}"}
    body: dict[str, object] = {
        "model": choice.model,
        "max_completion_tokens": question.max_tokens,
        "messages": [{"role": "system", "content": question.system}, {"role": "user", "content": question.text}],
    }
    return Request(f"{choice.base_url}/chat/completions", headers, body)


def reply(answer: dict[str, object]) -> Reply:
    found = rows(answer.get("choices"))
    first = table(found[0] if found else None)
    message = table(first.get("message"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        raise ProviderError("reply", f"the model refused: {refusal[:200]}")
    content = message.get("content")
    parts = [content] if isinstance(content, str) else []
    if isinstance(content, list):
        parts = [str(p["text"]) for p in map(table, content) if isinstance(p.get("text"), str)]
    usage = table(answer.get("usage"))
    cut = first.get("finish_reason") == "length"
    return Reply(
        joined(parts, "openai", cut), count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), cut
    )
