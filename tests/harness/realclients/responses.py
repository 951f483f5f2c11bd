"""The OpenAI Responses API, as far as Codex needs it."""

from __future__ import annotations

import json
from typing import Any

from realclients.modelserver import Call, ModelServer, Reply, Request, Say, ToolResult


class Responses(ModelServer):
    def answer(self, request: Request) -> Reply:
        if request.method != "POST" or not request.path.partition("?")[0].endswith("/responses"):
            return Reply.json({"error": {"message": "no such path"}}, 404)
        history = request.body["input"]
        # What the user said comes after messages about the environment, and a sub-agent's task is a user message too.
        said = "\n".join(_text(item) for item in history if item.get("role") == "user")
        name, number, turn = self.script.turn(said, len(history))
        identity = f"resp_{name}_{number}"
        events: list[tuple[str, dict[str, Any]]] = [("response.created", {"response": {"id": identity}})]
        for index, part in enumerate(turn):
            events.append(("response.output_item.done", {"item": _item(part, f"{name}_{number}_{index}")}))
        usage = {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110,
        }  # fmt: skip
        events.append(("response.completed", {"response": {"id": identity, "usage": usage}}))
        return Reply.events([(event, {"type": event, **data}) for event, data in events])

    def results_in(self, request: Request) -> list[ToolResult]:
        items = request.body.get("input", ()) if isinstance(request.body, dict) else ()
        return [
            ToolResult(item.get("call_id", ""), _output(item.get("output")))
            for item in items
            if item.get("type", "").endswith("_output")
        ]


def _item(part: Say | Call, identity: str) -> dict[str, Any]:
    if isinstance(part, Say):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        return {
            "type": "message", "role": "assistant", "id": "msg_" + identity, "status": "completed", "content": content,
        }  # fmt: skip
    call = {"call_id": "call_" + identity, "name": part.tool}
    if part.freeform:
        return {
            "type": "custom_tool_call", "id": "ctc_" + identity, "status": "completed", "input": part.input, **call,
        }  # fmt: skip
    item = {"type": "function_call", "id": "fc_" + identity, "arguments": json.dumps(part.input), **call}
    if part.namespace:
        item["namespace"] = part.namespace
    return item


def _output(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)


def _text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if isinstance(part, dict))
