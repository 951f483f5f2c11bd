"""Claude Code, headless (`-p`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from realclients.anthropic import Messages
from realclients.driver import MCP_NAME, Driver, Home, Hook, mcp_settings
from realclients.modelserver import Call, ModelServer, Script, Turn

KEY = "sk-ant-test-00000000000000000000"


class ClaudeCode(Driver):
    program = "claude"
    settings = ".claude/settings.json"

    def server(self, script: Script) -> ModelServer:
        return Messages(script)

    def settle(self, home: Home) -> None:
        home.write(
            self.settings, {"permissions": {"allow": ["Bash", "Write", "Edit", "Agent", "Task", f"mcp__{MCP_NAME}"]}}
        )
        home.write(".claude.json", {
            "hasCompletedOnboarding": True, "numStartups": 3, "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "mcpServers": mcp_settings(),
        })  # fmt: skip

    def register(self, home: Home, hooks: Sequence[Hook]) -> None:
        settings = home.read_json(self.settings)
        table: dict[str, list[object]] = {}
        for hook in hooks:
            entry = {"type": "command", "command": hook.argv[0], "args": list(hook.argv[1:]), "timeout": hook.seconds}
            table.setdefault(hook.event or self.gate_event, []).append({"hooks": [entry]})
        home.write(self.settings, {**settings, "hooks": table})

    def command(self, home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        words = [
            *self.installed.argv, "-p", prompt, "--output-format", "stream-json", "--verbose", "--include-hook-events",
            "--permission-mode", "acceptEdits",
        ]  # fmt: skip
        return words, {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def trust(self, home: Home, work: Path) -> None:
        """Answers the question about the folder beforehand; headless sessions don't ask it."""
        state = home.read_json(".claude.json")
        answered = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        home.write(".claude.json", {**state, "projects": {**state.get("projects", {}), str(work): answered}})

    def shell(self, command: str) -> Call:
        return Call("Bash", {"command": command, "description": "scripted"})

    def write(self, path: Path, text: str) -> Call:
        return Call("Write", {"file_path": str(path), "content": text})

    def delegate(self, task: str) -> list[Turn]:
        return [(Call("Agent", {"description": "scripted", "prompt": task, "subagent_type": "general-purpose"}),)]

    def reported(self, stdout: str, stderr: str) -> list[str]:
        found = []
        for line in stdout.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("subtype") == "hook_response":
                found.append(
                    f"{event.get('hook_event')}: exit {event.get('exit_code')} {event.get('outcome')} {event.get('stderr', '')[:200]}"
                )
        return found
