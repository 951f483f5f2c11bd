"""`claude -p --verbose --output-format stream-json`: system, assistant, user, result.

One message of the model comes as several lines, one a block, each with the usage of the whole message: it is counted once, on the message's first step. The totals
are those of the last `result`, which sums over the session. Sub-agents' lines name the call that started them (`parent_tool_use_id`): they hang on a step
`subagent:<type>` below it. Hooks show only with `--include-hook-events`; one that failed without a verdict is kept as a guard_check.
"""

from __future__ import annotations

from collections.abc import Iterator

from guardhook.intake.streams.common import Builder, Event, Skip, given, obj, said, stamp, text, total, truthy, whole
from guardhook.store.instants import iso_ms

_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_USAGE = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
_SILENT = frozenset((
    "stream_event", "keep_alive", "control_request", "control_response", "control_cancel_request", "rate_limit_event", "tool_progress",
    "auth_status", "tool_use_summary", "prompt_suggestion",
))  # fmt: skip
_AGENTS_MOST = 4096
_EARLY_MOST = 100
_FROM_PEOPLE = ("user_temporary", "user_reject", "user_abort", "user")


class Translator:
    """A trace per session id, ended by its last `result` when the stream (or the next session) says that there is no more."""

    agent = "claude-code"
    source = "claude-stream"
    version = "claude_code_version"

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._build = Builder()
        self._fresh(None)

    def _fresh(self, session: str | None) -> None:
        self._session = session
        self._head: Event | None = None
        self._prompts: list[str] = []
        self._messages: set[str] = set()  # whose usage was counted
        self._agents: dict[str, int] = {}  # call that started a sub-agent -> its anchor step
        self._spawned: dict[str, int] = {}  # call that has a result and whose sub-agent goes on -> its step
        # Failed calls, which may turn out to have been denied -> step, end, error
        self._failed: dict[str, tuple[int, str | None, str]] = {}
        self._reasons: dict[str, str] = {}  # call -> why it was denied
        self._result: Event | None = None
        self._over = False  # nothing was said after the last result
        self._usage: dict[str, int] = {}  # of all results
        self._ms = 0
        self._stamped = False  # lines have times; results and system lines have none, theirs is the last one
        self._last: str | None = None
        self._early: list[Event] = []  # system lines before the first time stamp

    def line(self, value: Event, now_us: int) -> Iterator[Event]:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise Skip("no type")
        if kind in _SILENT:
            return
        if kind not in ("system", "assistant", "user", "result"):
            raise Skip(f"unknown type {kind!r}")
        session = text(value.get("session_id"))
        if session is not None and session != self._session:
            yield from self.end(now_us)
            self._fresh(session)
        now = iso_ms(now_us) if self._live else None
        given_at = stamp(value.get("timestamp"))
        self._stamped = self._stamped or given_at is not None
        at = given_at or (self._last if self._stamped or self._last is None else now)
        if kind == "system":
            if at is None and value.get("subtype") != "init":
                self._early.append(value)
                del self._early[:-_EARLY_MOST]
                return
            yield from self._system(value, at)
            return
        at = self._last = at or now
        if self._early:
            early, self._early = self._early, []
            for held in early:
                yield from self._system(held, at)
        self._over = kind == "result"
        if kind == "assistant":
            yield from self._begun(at)
            yield from self._assistant(value, at)
        elif kind == "user":
            yield from self._user(value, at)
        else:
            yield from self._begun(at)
            self._result = value
            self._ms += whole(value.get("duration_ms")) or 0
            yield from self._denied(value)
            for name in _USAGE:
                number = whole(obj(value.get("usage")).get(name))
                if number is not None:
                    self._usage[name] = self._usage.get(name, 0) + number

    def end(self, now_us: int) -> Iterator[Event]:
        """Without a `result` as the last word the run has not said how it ended: it is left running."""
        if self._head is not None:
            yield from self._begun(self._last)
        if self._build.trace is None:
            return
        at = self._last
        yield from self._build.interrupted(at)
        if self._result is not None and self._over:
            yield self._ended(self._result, at)
        self._build.trace = None
        self._fresh(None)

    # --- lines --------------------------------------------------------------------------------------------------

    def _begun(self, at: str | None) -> Iterator[Event]:
        """The trace's start, once it is clear what it was asked."""
        if self._build.trace is None:
            head, self._head = self._head or {}, None
            yield self._build.start(
                self.agent, self.source, session_id=self._session, started_at=at,
                input={"prompt": self._prompts[0]} if self._prompts else None, **head,
            )  # fmt: skip

    def _system(self, value: Event, at: str | None) -> Iterator[Event]:
        subtype = value.get("subtype")
        if subtype == "init":
            if self._build.trace is None:  # every turn has one
                self._head = given(
                    agent_version=text(value.get(self.version)),
                    metadata=given(
                        cwd=text(value.get("cwd")), model=text(value.get("model")), permission_mode=text(value.get("permissionMode")) or text(value.get("permission_mode")),
                    ),
                )  # fmt: skip
        elif subtype == "permission_denied":
            call, why = text(value.get("tool_use_id")), text(value.get("decision_reason")) or text(value.get("message"))
            if call and why and len(self._reasons) < _AGENTS_MOST:
                self._reasons[call] = why
        elif subtype == "compact_boundary":
            yield from self._begun(at)
            yield self._step("thought", "compaction", value, at, output=obj(value.get("compact_metadata")) or None)
        elif subtype == "informational" and value.get("tag") == "hook_no_verdict":
            yield from self._begun(at)
            yield self._step(
                "guard_check", "hook_no_verdict", value, at, output={"content": value.get("content")}, error="a hook gave no verdict"
            )  # fmt: skip
        elif subtype == "hook_response" and _broken(value):
            yield from self._begun(at)
            yield self._step(
                "guard_check", f"hook:{text(value.get('hook_name')) or 'hook'}", value, at,
                output=given(outcome=value.get("outcome"), exit_code=value.get("exit_code"), stdout=text(value.get("stdout"))),
                error=text(value.get("stderr")) or f"the hook ended with {value.get('exit_code')}",
            )  # fmt: skip
        elif subtype in ("task_notification", "task_updated"):
            yield from self._task_end(value, at)

    def _assistant(self, value: Event, at: str | None) -> Iterator[Event]:
        message = obj(value.get("message"))
        model = text(message.get("model"))
        tokens = self._tokens(message)
        parent: list[int | None] = []
        blocks = message.get("content")
        for block in blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]:
            if not isinstance(block, dict):
                continue
            if not parent:
                yield from self._anchor(value, at, parent)
            more = given(model=model, tokens_used=tokens, parent_step=parent[0])
            kind = block.get("type")
            if kind == "text" and text(block.get("text")):
                yield self._step("output", "assistant_message", value, at, output={"text": block["text"]}, **more)
            elif kind in ("thinking", "redacted_thinking"):
                yield self._step(
                    "thought", "thinking", value, at, output={"text": text(block.get("thinking")) or ""},
                    duration_ms=whole(value.get("thinking_duration_ms")), **more,
                )  # fmt: skip
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                yield from self._use(value, block, at, more)
            elif isinstance(kind, str) and kind.endswith("_tool_result"):  # of tools that run on the model's side
                yield from self._tool_result(value, block, at)
                continue
            else:
                continue
            tokens = None

    def _use(self, value: Event, block: Event, at: str | None, more: Event) -> Iterator[Event]:
        key = text(block.get("id"))
        name = text(block.get("name")) or "tool"
        fields = {"input": block.get("input", {}), "started_at": at, "metadata": self._metadata(value, call=key)}
        yield from self._build.open(name, key, "tool_call", **fields, **more)

    def _user(self, value: Event, at: str | None) -> Iterator[Event]:
        content = obj(value.get("message")).get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
        if results:
            yield from self._begun(at)
            for block in results:
                yield from self._tool_result(value, block, at)
            return
        said_ = "\n".join(str(b["text"]) for b in blocks if isinstance(b, dict) and text(b.get("text")))
        if not said_.strip() or text(value.get("parent_tool_use_id")):
            return  # a sub-agent's task is the input of the call that started it
        if value.get("isSynthetic") is True or value.get("isMeta") is True:
            yield from self._begun(at)
            yield self._step("thought", "feedback", value, at, output={"text": said_})
            return
        self._prompts.append(said_)
        yield from self._begun(at)

    def _tool_result(self, value: Event, block: Event, at: str | None) -> Iterator[Event]:
        key = text(block.get("tool_use_id"))
        call = self._build.find(key, "")
        if call is None or key is None:
            raise Skip(f"a result that fits no open call ({key or 'no id'})")
        meta = _meta(value, key)
        permission = obj(meta.get("permission_decision"))
        rejected = permission.get("decision") in ("reject", "deny") or meta.get("non_execution_kind") is not None
        output = _flat(block.get("content"))
        error = (output or "tool failed") if truthy(block.get("is_error")) else None
        yield self._build.close(
            call, output={"result": output}, error=error, ended_at=at,
            metadata=given(
                permission=("denied" if rejected else text(permission.get("decision"))),
                permission_source=text(permission.get("source")),
                blocked=True if rejected else None,
                agent_id=text(obj(value.get("tool_use_result")).get("agentId")),
            ) or None,
        )  # fmt: skip
        if rejected:
            source = str(permission.get("source") or meta.get("non_execution_kind") or "")
            person = source in _FROM_PEOPLE or (
                meta.get("non_execution_kind") == "user-rejected" and source != "config"
            )
            yield self._build.decision(
                call.number, "deny", "user" if person else "policy", self._reasons.pop(key, error)
            )
        elif error is not None and len(self._failed) < _AGENTS_MOST:
            self._failed[key] = (call.number, at, error)
        anchor = self._agents.get(key)
        launched = obj(value.get("tool_use_result")).get("isAsync")
        if launched is True and len(self._spawned) < _AGENTS_MOST:
            self._spawned[key] = call.number
        if anchor is not None and launched is not True:
            yield from self._close_anchor(key, at, {"text": output} if output else None, error)

    def _denied(self, result: Event) -> Iterator[Event]:
        """Marks calls of which only the end of the stream says that they were denied (earlier versions)."""
        listed = result.get("permission_denials")
        for denial in listed if isinstance(listed, list) else ():
            key = text(obj(denial).get("tool_use_id"))
            if key is not None and key in self._failed:
                number, ended_at, error = self._failed.pop(key)
                yield self._build.decision(number, "deny", "policy", self._reasons.pop(key, error))
                yield given(
                    type="step_end", trace_id=self._build.trace, step_number=number, ended_at=ended_at,
                    metadata={"blocked": True, "permission": "denied"},
                )  # fmt: skip

    # --- sub-agents ---------------------------------------------------------------------------------------------

    def _anchor(self, value: Event, at: str | None, parent: list[int | None]) -> Iterator[Event]:
        """Puts the step that a line's steps belong below into parent, and makes it when the line is its sub-agent's first."""
        key = text(value.get("parent_tool_use_id"))
        if key is None:
            parent.append(None)
            return
        if key not in self._agents and len(self._agents) < _AGENTS_MOST:
            call = self._build.find(key, "")
            kind = text(value.get("subagent_type")) or text(value.get("agent_type")) or "subagent"
            yield from self._build.open(
                f"subagent:{kind}", f"agent\0{key}", "thought", started_at=at,
                parent_step=self._spawned.get(key) if call is None else call.number,
                metadata=self._metadata(value, agent_type=kind, description=text(value.get("task_description"))),
            )  # fmt: skip
            self._agents[key] = self._build.number
        parent.append(self._agents.get(key))

    def _task_end(self, value: Event, at: str | None) -> Iterator[Event]:
        key = text(value.get("tool_use_id"))
        status = text(value.get("status"))
        if key is not None and status in ("completed", "failed", "killed", "stopped"):
            summary = text(value.get("summary"))
            error = None if status == "completed" else summary or f"the sub-agent {status}"
            yield from self._close_anchor(key, at, None if summary is None else {"text": summary}, error)

    def _close_anchor(self, key: str, at: str | None, output: object, error: str | None) -> Iterator[Event]:
        call = self._build.find(f"agent\0{key}", "")
        if call is not None:
            yield self._build.close(call, ended_at=at, output=output, error=error)

    # --- values -------------------------------------------------------------------------------------------------

    def _tokens(self, message: Event) -> int | None:
        """The usage of a message, the first time that it comes."""
        name = text(message.get("id"))
        usage = obj(message.get("usage"))
        if not usage or name in self._messages:
            return None
        if name is not None:
            self._messages.add(name)
        return total(usage, *_USAGE)

    def _step(self, step_type: str, name: str, value: Event, at: str | None, **fields: object) -> Event:
        return self._build.step(step_type, name, started_at=at, ended_at=at, metadata=self._metadata(value), **fields)

    def _metadata(self, value: Event, **more: object) -> Event:
        return given(source=self.source, agent_id=text(value.get("agent_id")), **more)

    def _ended(self, result: Event, at: str | None) -> Event:
        subtype = text(result.get("subtype"))
        failed = truthy(result.get("is_error")) or (subtype is not None and subtype != "success")
        answer = text(result.get("result"))
        errors = result.get("errors")
        error = None
        if failed:
            error = (
                (said(errors[0]) if isinstance(errors, list) and errors else None)
                or answer
                or subtype
                or "the run failed"
            )
        models = {n: obj(u) for n, u in obj(result.get("modelUsage")).items()}
        counted = [n for n in (total(usage, *_MODEL_USAGE) for usage in models.values()) if n is not None]
        denials = result.get("permission_denials")
        return self._build.end(
            "failed" if failed else "completed",
            error=error,
            output=None if answer is None else {"text": answer},
            total_tokens=sum(counted) if counted else total(dict(self._usage), *_USAGE),
            total_cost_usd=result.get("total_cost_usd"),
            total_duration_ms=self._ms or None,
            ended_at=at,
            untimed=at is None,
            metadata=given(
                usage=dict(self._usage) or None,
                model_usage=models or None,
                turns=result.get("num_turns"),
                stop_reason=text(result.get("stop_reason")),
                terminal_reason=text(result.get("terminal_reason")),
                permission_denials=len(denials) if isinstance(denials, list) else None,
                follow_up_prompts=self._prompts[1:] or None,
            ),
        )


def _broken(value: Event) -> bool:
    """A hook that neither passed nor blocked: any exit code but 0 and 2, or cancelled."""
    return value.get("outcome") == "cancelled" or (
        value.get("outcome") == "error" and value.get("exit_code") not in (0, 2)
    )


def _meta(value: Event, key: str) -> Event:
    listed = value.get("tool_result_meta")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and item.get("id") == key:
            return item
    return {}


def _flat(content: object) -> str:
    """A result's text: as it is, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text") if isinstance(p, dict) and isinstance(p.get("text"), str) else p for p in content]
        return "\n".join(p if isinstance(p, str) else _said(p) for p in parts)
    return "" if content is None else _said(content)


def _said(value: object) -> str:
    from guardhook.core.jsontext import dumps

    if isinstance(value, dict) and value.get("type") in ("image", "document"):
        return f"[{value['type']}]"
    return dumps(value)
