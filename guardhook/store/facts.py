"""What a `hook.received` line says, in one shape for all harnesses: input, result, failure, message, model, tokens.

The line's own fields (tool, call, agent …) were set by the hook; what lies inside the payload is read here by the dialect's own
reader, so that no second table of places exists. The four that share one flat shape are read directly: they are nearly all lines.
"""

from __future__ import annotations

from _blake2 import blake2b

import msgspec

_FLAT = frozenset(("claude-code", "codex", "gemini", "qwen-code"))
_FAILED_WORDS = frozenset(("failed", "failure", "error", "errored"))
_MESSAGES = ("last_assistant_message", "prompt_response", "last_agent_message")
ERROR_CHARS = 20_000


class Facts:
    """One hook event as the fold needs it. Absent facts are None."""

    __slots__ = (
        "agent",
        "agent_type",
        "call",
        "canon",
        "data",
        "error",
        "event",
        "input",
        "kind",
        "native",
        "output",
        "payload",
        "prompt",
        "seq",
        "tool",
        "ts",
        "us",
        "verdict",
    )

    def __init__(self, data: dict[str, object], seq: int, ts: str, us: int) -> None:
        payload = data.get("payload")
        self.data = data
        self.seq = seq
        self.ts = ts
        self.us = us
        self.payload: dict[str, object] = payload if isinstance(payload, dict) else {}
        self.event = text(data.get("event")) or "other"
        self.native = text(data.get("native_event"))
        self.call = text(data.get("call"))
        self.agent = text(data.get("agent"))
        self.tool = text(data.get("tool"))
        self.kind = text(data.get("kind"))
        verdict = data.get("verdict")
        self.verdict: dict[str, object] | None = verdict if isinstance(verdict, dict) else None
        self.agent_type: str | None = None
        self.error: str | None = None
        self.prompt: str | None = None
        self.canon: str | None = None
        self.input: object
        self.output: object
        dialect = data.get("dialect")
        if not isinstance(dialect, str) or dialect in _FLAT:
            self._flat()
        else:
            self._read(dialect)
        if self.tool and self.input is not None:
            self.canon = canonical(self.input)

    def _flat(self) -> None:
        payload = self.payload
        self.input = payload.get("tool_input")
        self.output = payload.get("tool_response", payload.get("tool_output"))
        self.prompt = text(payload.get("prompt"))
        self.agent_type = text(payload.get("agent_type"))
        error = payload.get("error")
        if error is not None and error != "":
            self.error = error if isinstance(error, str) else flat(error)

    def _read(self, dialect: str) -> None:
        from guardhook.dialects import table

        try:
            event = table.load(dialect).read(self.payload, {}, self.native)
        except Exception:  # a payload that was cut or hollowed out by redaction; the line itself still counts
            self._flat()
            return
        self.input = event.input
        self.output = event.output
        self.error = event.error
        self.prompt = event.prompt
        self.agent_type = event.agent_type

    @property
    def message(self) -> str | None:
        """The agent's last words, where the event carries them."""
        for key in _MESSAGES:
            found = text(self.payload.get(key))
            if found is not None:
                return found
        return None

    @property
    def model(self) -> str | None:
        found = text(self.payload.get("model"))
        if found is None:
            request = self.payload.get("llm_request")
            found = text(request.get("model")) if isinstance(request, dict) else None
        return found

    @property
    def tokens(self) -> int | None:
        """Tokens of one model request: Codex `token_usage`, Gemini `usageMetadata`."""
        usage = self.payload.get("token_usage")
        if isinstance(usage, dict):
            return _total(usage, "total_tokens", ("input_tokens", "output_tokens"))
        response = self.payload.get("llm_response")
        usage = response.get("usageMetadata") if isinstance(response, dict) else None
        if isinstance(usage, dict):
            return _total(usage, "totalTokenCount", ("promptTokenCount", "candidatesTokenCount"))
        return None

    @property
    def duration(self) -> int | None:
        """How long the call took by the harness's own count, milliseconds."""
        value = self.payload.get("duration_ms")
        return value if type(value) is int and 0 <= value < 1 << 53 else None

    @property
    def cut(self) -> bool:
        """Whether something of the input is missing from the line."""
        pointers = self.data.get("cut")
        return bool(self.data.get("stripped")) or (isinstance(pointers, list) and bool(pointers))

    def blocked(self) -> bool:
        """Whether the recorded answer kept the call from running."""
        verdict = self.verdict
        if verdict is None or verdict.get("mode") == "observe":
            return False
        if verdict.get("action") == "deny":
            return True
        if verdict.get("action") != "require_review":
            return False
        answer = verdict.get("answer")
        if not isinstance(answer, dict):
            return False
        said = answer.get("stdout")
        return answer.get("exit") == 2 or (isinstance(said, str) and ('"deny"' in said or '"block"' in said))

    def failure(self) -> str | None:
        """Why the call failed, None when nothing says that it did."""
        if self.event == "post_tool_failure":
            words = _words(self.output) if isinstance(self.output, dict) else None
            return (self.error or failure(self.output, self.kind) or words or "tool failed")[:ERROR_CHARS]
        found = failure(self.output, self.kind)
        if found is None and self.kind != "shell" and isinstance(self.output, str):
            # Written by the client in front of a patch's own words; a shell command could print it.
            head, _, rest = self.output.partition("\n")
            word, _, number = head.partition(": ")
            if word == "Exit code" and number.isdigit() and int(number) != 0 and rest.startswith("Wall time"):
                found = f"exited with code {int(number)}"
        return None if found is None else found[:ERROR_CHARS]


def text(value: object) -> str | None:
    """A non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def flat(value: object) -> str:
    """JSON text of a value, or the text itself."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def canonical(value: object) -> str:
    """A short digest of a tool's input, equal for equal calls: key order does not count, nor does the model's `description` of the call."""
    if isinstance(value, dict) and "description" in value:
        value = {k: v for k, v in value.items() if k != "description"}
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=9).hexdigest()


def failure(value: object, kind: str | None) -> str | None:
    """The failure that a result declares by a flag of its own; text that merely looks like one, printed by a command, is none."""
    if isinstance(value, str):
        if kind == "shell" or value[:1] != "{" or len(value) > 65_536:
            return None
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    for key in ("is_error", "isError"):
        if value.get(key) in (True, 1, "true", "1"):
            return _words(value) or "tool failed"
    if value.get("interrupted") is True:
        return "interrupted"
    for key in ("exit_code", "exitCode"):
        code = value.get(key)
        if isinstance(code, (int, float)) and not isinstance(code, bool) and code != 0:
            return f"exited with code {code}"
    success = value.get("success")
    if success is False or success in ("false", "False"):
        return _words(value) or "tool reported failure"
    error = value.get("error")
    if error not in (None, "", False, 0, [], {}):
        found = error.get("message") if isinstance(error, dict) else error
        return flat(found if found else error)
    status = value.get("status")
    if isinstance(status, str) and status.lower() in _FAILED_WORDS:
        return _words(value) or f"status {status}"
    return None


def _words(value: dict[str, object]) -> str | None:
    for key in ("error", "message", "stderr", "output", "content", "text", "llmContent", "returnDisplay"):
        found = value.get(key)
        if isinstance(found, list):
            parts = [p["text"] for p in found if isinstance(p, dict) and isinstance(p.get("text"), str)]
            found = "\n".join(parts)
        if isinstance(found, dict):
            found = found.get("message")
        if isinstance(found, str) and found.strip():
            return found
    return None


def _total(usage: dict[str, object], whole: str, parts: tuple[str, ...]) -> int | None:
    value = usage.get(whole)
    if type(value) is int and 0 <= value < 1 << 53:
        return value
    found = [v for v in map(usage.get, parts) if type(v) is int and 0 <= v < 1 << 53]
    return sum(found) if found else None
