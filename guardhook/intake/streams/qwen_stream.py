"""`qwen -p --output-format stream-json`: Claude Code's lines, without times of their own: those of reading are taken while the stream is piped."""

from __future__ import annotations

from guardhook.intake.streams import claude_stream


class Translator(claude_stream.Translator):
    """As Claude Code's; the run's tokens are those of its results."""

    agent = "qwen-code"
    source = "qwen-stream"
    version = "qwen_code_version"
