"""`guardhook rollout`: runs as rollout files, and what can be proven with them. Each subcommand is a module, imported when it is called."""

from __future__ import annotations

import click

from guardhook.commands import Table

# name -> (module below guardhook.commands, one line of help)
_TABLE: dict[str, tuple[str, str]] = {
    "diff": ("rollout_diff", "Compare two rollouts, and say which one did better."),
    "drift": ("rollout_drift", "Would today's guardhook see and judge a run as it did then?"),
    "export": ("rollout_export", "Write runs out as rollout files."),
    "fork": ("rollout_fork", "The beginning of a run as messages, to go on from there."),
    "simulate": ("rollout_simulate", "Check that a run's calls fit together."),
    "verify": ("rollout_verify", "Check rollout files by all rules of the format."),
}


class _Group(Table):
    table = _TABLE


@click.command(cls=_Group, name="rollout")
def command() -> None:
    """Runs as rollout files: export, verify, simulate, fork, diff, drift."""
