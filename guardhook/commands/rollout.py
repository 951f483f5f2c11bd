"""`guardhook rollout`: runs as rollout files, and what can be proven with them. Each subcommand is a module, imported when it is called."""

from __future__ import annotations

import importlib

import click

# name -> (module below guardhook.commands, one line of help)
_TABLE: dict[str, tuple[str, str]] = {
    "diff": ("rollout_diff", "Compare two rollouts, and say which one did better."),
    "drift": ("rollout_drift", "Would today's guardhook see and judge a run as it did then?"),
    "export": ("rollout_export", "Write runs out as rollout files."),
    "fork": ("rollout_fork", "The beginning of a run as messages, to go on from there."),
    "simulate": ("rollout_simulate", "Check that a run's calls fit together."),
    "verify": ("rollout_verify", "Check rollout files by all rules of the format."),
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_TABLE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = _TABLE.get(cmd_name)
        if row is None:
            return None
        command: click.Command = importlib.import_module(f"guardhook.commands.{row[0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _TABLE[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=_Group, name="rollout")
def command() -> None:
    """Runs as rollout files: export, verify, simulate, fork, diff, drift."""
