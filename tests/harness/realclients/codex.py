"""Codex CLI, headless (`codex exec`)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from realclients.driver import MCP_NAME, MCP_SERVER, Driver, Home, Hook
from realclients.modelserver import Call, ModelServer, Script, Turn
from realclients.responses import Responses

MODEL = "gpt-5.5"  # calls its tools directly
CODE_MODE_MODEL = "gpt-6.2-sol"  # calls them from a JavaScript cell


class Codex(Driver):
    program = "codex"
    settings = ".codex/config.toml"

    def server(self, script: Script) -> ModelServer:
        return Responses(script)

    def settle(self, home: Home) -> None:
        arguments = json.dumps(["-I", "-S", str(MCP_SERVER)])
        home.write(self.settings, f'''# settings of the test user
model = "{MODEL}"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:1/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[mcp_servers.{MCP_NAME}]
command = {json.dumps(sys.executable)}
args = {arguments}
''')  # fmt: skip

    def register(self, home: Home, hooks: Sequence[Hook]) -> None:
        table: dict[str, list[object]] = {}
        for hook in hooks:
            entry = {"type": "command", "command": shlex.join(hook.argv), "timeout": hook.seconds}
            table.setdefault(hook.event or self.gate_event, []).append({"hooks": [entry]})
        home.write(".codex/hooks.json", {"hooks": table})
        home.stand_in = bool(hooks)

    def command(self, home: Home, work: Path, port: int, prompt: str) -> tuple[list[str], dict[str, str]]:
        words = [
            *self.installed.argv, "exec", "--skip-git-repo-check", "-C", str(work),
            "-c", f'model_providers.scripted.base_url="http://127.0.0.1:{port}/v1"', prompt,
        ]  # fmt: skip
        if home.stand_in:
            words.append("--dangerously-bypass-hook-trust")
        return words, {"SCRIPTED_KEY": "none", "RUST_LOG": "error"}

    def shell(self, command: str) -> Call:
        return Call("exec_command", {"cmd": command})

    def write(self, path: Path, text: str) -> Call:
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        return Call("apply_patch", f"*** Begin Patch\n*** Add File: {path.name}\n{lines}*** End Patch")

    def mcp(self, path: Path, text: str) -> Call:
        return Call("write", {"path": str(path), "text": text}, namespace=f"mcp__{MCP_NAME}")

    def cell(self, command: str) -> Call:
        """A code-mode cell that runs a shell command and goes on whatever comes back."""
        script = f"""
try {{ text(await tools.exec_command({{cmd: {json.dumps(command)}}})); }} catch (error) {{ text('caught: ' + error); }}
text('the cell went on');
"""
        return Call("exec", script)

    def delegate(self, task: str) -> list[Turn]:
        spawn = Call("spawn_agent", {"message": task, "agent_type": "default"}, namespace="multi_agent_v1")
        return [(spawn,), (self.shell("sleep 2"),)]

    def reported(self, stdout: str, stderr: str) -> list[str]:
        return [line.strip() for line in stderr.splitlines() if line.startswith("hook")]
