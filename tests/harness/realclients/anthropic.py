"""The Anthropic Messages API, as far as Claude Code needs it."""

from __future__ import annotations

import json
from typing import Any

from realclients.modelserver import Call, ModelServer, Reply, Request, Say, ToolResult, Turn

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}


class Messages(ModelServer):
    def answer(self, request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            return Reply.json({"input_tokens": 100})
        if request.method != "POST" or path != "/v1/messages":
            return Reply.json({"type": "error", "error": {"type": "not_found_error", "message": "no such path"}}, 404)
        body = request.body
        messages = body["messages"]
        # Titles, summaries and the like come without tools; they are no turns of the conversation.
        name, number = "side", 0
        turn: Turn = (Say("ok"),)
        if body.get("tools"):
            first = next((_text(message["content"]) for message in messages if message["role"] == "user"), "")
            name, number, turn = self.script.turn(first, len(messages))
        blocks = [_block(part, f"toolu_{name}_{number}_{index}") for index, part in enumerate(turn)]
        stop = "tool_use" if any(isinstance(part, Call) for part in turn) else "end_turn"
        head = {
            "id": f"msg_{name}_{number}", "type": "message", "role": "assistant", "model": body.get("model", "mock"), "stop_sequence": None,
        }  # fmt: skip
        if not body.get("stream"):
            return Reply.json({**head, "content": blocks, "stop_reason": stop, "usage": USAGE})
        return Reply.events(_stream(head, blocks, stop))

    def results_in(self, request: Request) -> list[ToolResult]:
        found = []
        for message in (request.body or {}).get("messages", ()):
            content = message.get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_result":
                    found.append(
                        ToolResult(block["tool_use_id"], _text(block.get("content")), bool(block.get("is_error")))
                    )
        return found


def _block(part: Say | Call, identity: str) -> dict[str, Any]:
    if isinstance(part, Say):
        return {"type": "text", "text": part.text}
    return {"type": "tool_use", "id": identity, "name": part.tool, "input": part.input}


def _stream(head: dict[str, Any], blocks: list[dict[str, Any]], stop: str) -> list[tuple[str | None, Any]]:
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": {**head, "content": [], "stop_reason": None, "usage": USAGE}})
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        events.append(("content_block_start", {"index": index, "content_block": empty}))
        events.append(("content_block_delta", {"index": index, "delta": delta}))
        events.append(("content_block_stop", {"index": index}))
    events.append(("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": USAGE}))
    events.append(("message_stop", {}))
    return [(name, {"type": name, **data}) for name, data in events]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or () if isinstance(block, dict))
