"""Gemini CLI and its descendant Qwen Code, headless (`-p`)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realclients.driver import MCP_NAME, Driver, Home, Hook, mcp_settings
from realclients.generatecontent import GenerateContent
from realclients.modelserver import Call, ModelServer, Script, Turn


class Gemini(Driver):
    program = "gemini"
    gate_event = "BeforeTool"
    mcp_tool = f"mcp_{MCP_NAME}_write"
    settings = ".gemini/settings.json"
    auth = "gemini-api-key"
    per_second = 1000  # hook time limits are milliseconds

    def server(self, script: Script) -> ModelServer:
        return GenerateContent(script)

    def settle(self, home: Home) -> None:
        home.write(self.settings, {
            "security": {"auth": {"selectedType": self.auth}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "mcpServers": {name: {**entry, "trust": True} for name, entry in mcp_settings().items()},
        })  # fmt: skip

    def register(self, home: Home, hooks: Sequence[Hook]) -> None:
        settings = home.read_json(self.settings)
        table: dict[str, list[object]] = {}
        for hook in hooks:
            entry: dict[str, Any] = {"type": "command", "command": shlex.join(hook.argv)}
            entry["timeout"] = hook.seconds * self.per_second
            table.setdefault(hook.event or self.gate_event, []).append({"hooks": [entry]})
        home.write(self.settings, {**settings, "hooks": table})

    def command(self, home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        words = [
            *self.installed.argv, "-m", "gemini-2.5-flash", "--approval-mode", "yolo",
            "--output-format", "stream-json", "-p", prompt,
        ]  # fmt: skip
        return words, {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
            "NO_COLOR": "1",
        }

    def shell(self, command: str) -> Call:
        return Call("run_shell_command", {"command": command, "description": "scripted"})

    def write(self, path: Path, text: str) -> Call:
        return Call("write_file", {"file_path": str(path), "content": text})

    def delegate(self, task: str) -> list[Turn]:
        return [(Call("invoke_agent", {"agent_name": "generalist", "prompt": task}),)]

    def reported(self, stdout: str, stderr: str) -> list[str]:
        return [line.strip() for line in stderr.splitlines() if "hook" in line.lower()]


class QwenCode(Gemini):
    program = "qwen"
    gate_event = "PreToolUse"
    mcp_tool = f"mcp__{MCP_NAME}__write"
    settings = ".qwen/settings.json"
    auth = "gemini"
    per_second = 1

    def command(self, home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        words, extra = super().command(home, work, port, prompt)
        return [*words, "--auth-type", "gemini"], extra

    def delegate(self, task: str) -> list[Turn]:
        return [(Call("agent", {"description": "scripted", "prompt": task, "subagent_type": "general-purpose"}),)]
