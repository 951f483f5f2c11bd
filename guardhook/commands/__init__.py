"""The command line: a table of names. Each command is one module with a `command`, imported only when it is called."""

from __future__ import annotations

import importlib
import os
from typing import ClassVar

import click

from guardhook import __version__

# name -> (module below guardhook.commands, one line of help)
TABLE: dict[str, tuple[str, str]] = {
    "account": ("account", "What an answer rests on, in plain words, and how far it stands."),
    "archive": ("archive", "Keep a run as a file of its own; pack, check and open such files."),
    "audit": ("audit", "Check the hash-chained audit trail, or keep its head elsewhere."),
    "backtest": ("backtest", "Judge recorded calls again, under other policies."),
    "bundle": ("bundle", "Write a bug report of a run: archive, account, report, doctor."),
    "check": ("check", "Hold recorded runs against golden ones."),
    "config": ("config", "Look at and change the settings in config.toml."),
    "coverage": ("coverage", "Which tool calls of the harnesses' own logs reached the gate."),
    "dashboard": ("dashboard", "The store at a glance, full screen."),
    "decisions": ("decisions", "What was decided in a trace, and by whom."),
    "demo": ("demo", "Sample traces to look around in; --reset takes them out."),
    "diff": ("diff", "Compare two traces step by step."),
    "doctor": ("doctor", "Prove that each harness is registered, trusted and fails closed."),
    "eval": ("eval_", "Judge recorded runs: presets, rubrics of your own, models."),
    "explain": ("explain", "Show what a command would do and how it would be judged."),
    "export": ("export", "Write traces out: json, jsonl, parquet, or a golden file for check."),
    "fork": ("fork", "Copy a trace up to a step, to go on from there."),
    "gc": ("gc", "Compress silent sessions, and remove old ones from the journal."),
    "guard": ("guard", "Judge a step from a script; list and edit policies."),
    "hook": ("hook", "The hook itself: payload on stdin, answer in the harness's dialect."),
    "init": ("init", "Make a place for a project's own policies."),
    "import": ("import_", "Import session logs of Claude Code, Codex, Gemini CLI, Qwen Code."),
    "ingest": ("ingest", "Take in whole traces: JSON or JSON lines."),
    "install": ("install", "Register guardhook in a harness."),
    "journal": ("journal", "Read and verify the journal."),
    "list": ("list_", "List recorded traces."),
    "otel": ("otel", "Receive OpenTelemetry from agents, and record it as traces."),
    "pause": ("pause", "Let reviews and your own policies pass for a while (for a person only)."),
    "policy": ("policy", "Write, show, test and compile policy files."),
    "record": ("record", "Record what a run tells of itself on stdin."),
    "redact": ("redact", "Take secrets out of what was recorded already."),
    "replay": ("replay", "A recorded trace at its own pace, or faster."),
    "report": ("report", "A trace, or two with their differences, as one HTML file."),
    "run": ("run", "Run a program with a trace around it."),
    "rollout": ("rollout", "Runs as rollout files: export, verify, simulate, fork, diff, drift."),
    "serve": ("serve", "Traces, runs and a live stream over HTTP, for this machine's programs."),
    "show": ("show", "Show a trace with its steps."),
    "stats": ("stats", "The store in numbers."),
    "trust": ("trust", "Let the words of a project's policies reach the agent (for a person only)."),
    "uninstall": ("uninstall", "Take guardhook out of a harness."),
    "watch": ("watch", "Follow a trace while it happens."),
    "why": ("why", "The steps that led to a step."),
}


_JSON = "guardhook.json"  # whether the answer is for a program


def _tame(error: click.UsageError) -> click.UsageError:
    """The words that were not understood may be anything; they reach the terminal as one harmless line."""
    from guardhook.core.jsontext import printable

    if isinstance(error, click.MissingParameter):  # names what is missing and its choices, nothing that was given
        return error
    if type(error).__name__ == "NoArgsIsHelpError":  # the help itself, of click 8.2 and later
        return error
    return click.UsageError(printable(error.format_message(), 4000), error.ctx)


class Table(click.Group):
    """A group whose commands stand in a table, so that one never pays for the imports of another."""

    table: ClassVar[dict[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = self.table.get(cmd_name)
        if row is None:
            return None
        command: click.Command = importlib.import_module(f"guardhook.commands.{row[0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name][1]) for name in self.list_commands(ctx)])


class Program(Table):
    """All commands. What none of them understood is told as one harmless line, or as JSON where that is wanted."""

    table = TABLE

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_JSON] = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _tame(error) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has seen enough (`| head`)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise SystemExit(0) from None
        except click.UsageError as error:
            if not ctx.meta.get(_JSON):
                raise _tame(error) from None
            from guardhook.commands.output import fail

            fail(error.format_message(), as_json=True)


@click.command(cls=Program, name="guardhook", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="guardhook")
def main() -> None:
    """A gate and a flight recorder for coding agents."""
