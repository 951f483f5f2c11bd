"""Google: generateContent of the Gemini API. The key goes in a header, never into the address, which ends up in logs."""

from __future__ import annotations

import urllib.parse

from guardhook.evals.ai.provider import ProviderError, Question, Reply, Request, count, joined, rows, table
from guardhook.evals.ai.settings import Choice


def request(choice: Choice, question: Question) -> Request:
    model = urllib.parse.quote(choice.model.removeprefix("models/"), safe="")
    headers = {} if choice.key is None else {"x-goog-api-key": choice.key}
    body: dict[str, object] = {
        "contents": [{"role": "user", "parts": [{"text": f"{question.system}\n\n{question.text}"}]}],
        "generationConfig": {"maxOutputTokens": question.max_tokens},
    }
    return Request(f"{choice.base_url}/v1beta/models/{model}:generateContent", headers, body)


def reply(answer: dict[str, object]) -> Reply:
    found = rows(answer.get("candidates"))
    first = table(found[0] if found else None)
    blocked = table(answer.get("promptFeedback")).get("blockReason")
    if not first and isinstance(blocked, str):
        raise ProviderError("reply", f"google refused the prompt: {blocked[:80]}")
    parts = map(table, rows(table(first.get("content")).get("parts")))
    texts = [str(p["text"]) for p in parts if isinstance(p.get("text"), str) and p.get("thought") is not True]
    usage = table(answer.get("usageMetadata"))
    out = count(usage.get("candidatesTokenCount"))
    thoughts = count(usage.get("thoughtsTokenCount"))
    cut = first.get("finishReason") == "MAX_TOKENS"
    spent = out if out is None or thoughts is None else out + thoughts
    return Reply(joined(texts, "google", cut), count(usage.get("promptTokenCount")), spent, cut)
