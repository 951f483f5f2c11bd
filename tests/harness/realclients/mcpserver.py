"""A stdio MCP server with two tools: `echo` gives its text back, `write` writes its text to a path. Run as a script."""

from __future__ import annotations

import json
import sys
from typing import Any

TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "echo",
        "description": "Gives the text back",
        "inputSchema": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "write",
        "description": "Writes the text to the path",
        "inputSchema": {
            "type": "object",
            "properties": {"path": TEXT, "text": TEXT},
            "required": ["path", "text"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
    },
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result for a request, or None for a method that this server does not have."""
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ghtest", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        if params.get("name") == "write":
            with open(arguments["path"], "w") as handle:
                handle.write(arguments["text"])
        return {"content": [{"type": "text", "text": "said: " + str(arguments.get("text"))}], "isError": False}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") is None or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "no such method"}
        else:
            reply["result"] = result
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
