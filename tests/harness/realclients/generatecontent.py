"""The Gemini generateContent API, as far as Gemini CLI and Qwen Code need it."""

from __future__ import annotations

import json
from typing import Any

from realclients.modelserver import Call, ModelServer, Reply, Request, Say, ToolResult

EMPTY = {"string": "mock", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}


class GenerateContent(ModelServer):
    def answer(self, request: Request) -> Reply:
        if request.method != "POST":
            return Reply.json({"models": []})
        path = request.path.partition("?")[0]
        verb = path.rpartition(":")[2]
        model = path.rpartition("/models/")[2].partition(":")[0]
        if verb == "countTokens":
            return Reply.json({"totalTokens": 100})
        if verb not in ("generateContent", "streamGenerateContent"):
            return Reply.json({})
        body = request.body
        if verb == "streamGenerateContent" and body.get("tools"):
            contents = body["contents"]
            first = _text(contents[0]) + "".join(_text(content) for content in contents[1:2])
            _, _, turn = self.script.turn(first, len(contents))
            parts = [_part(part) for part in turn]
        else:
            parts = [{"text": _side_answer(body)}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "mock"}
        return Reply.events([(None, answer)]) if verb == "streamGenerateContent" else Reply.json(answer)

    def results_in(self, request: Request) -> list[ToolResult]:
        contents = request.body.get("contents") if isinstance(request.body, dict) else None
        found = []
        for place, content in enumerate(contents or ()):
            for index, part in enumerate(content.get("parts") or ()):
                response = part.get("functionResponse")
                if response:
                    identity = response.get("id") or f"{place}.{index}"
                    body = response.get("response")
                    error = isinstance(body, dict) and "error" in body
                    found.append(ToolResult(identity, json.dumps(body), error))
        return found


def _part(part: Say | Call) -> dict[str, Any]:
    if isinstance(part, Say):
        return {"text": part.text}
    return {"functionCall": {"name": part.tool, "args": part.input}}


def _side_answer(body: dict[str, Any]) -> str:
    """Answers for requests about the conversation itself (routing, next speaker, titles), which name the shape that they want."""
    settings = body.get("generationConfig") or {}
    schema = settings.get("responseJsonSchema") or settings.get("responseSchema") or {}
    properties = schema.get("properties")
    if not properties:
        return "ok"
    return json.dumps(
        {
            name: (entry.get("enum") or [EMPTY.get(str(entry.get("type", "string")).lower())])[0]
            for name, entry in properties.items()
        }
    )


def _text(content: dict[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in content.get("parts") or () if isinstance(part, dict))
