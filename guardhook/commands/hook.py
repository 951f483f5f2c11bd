"""`guardhook hook --help`. The hook itself never comes this way: guardhook.__main__ hands it straight to the gate."""

from __future__ import annotations

import click


@click.command("hook", add_help_option=False)
@click.argument("event", required=False)
@click.option(
    "--enforce", is_flag=True, help="Block what the policies deny, and whatever goes wrong. Else only record."
)
@click.option("--dialect", metavar="ID", help="Whose hook this is; default: what the payload looks like.")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--no-input", is_flag=True, help="Keep prompts and inputs out of the journal.")
@click.option("--allow-empty", is_flag=True, help="Allow when no policy is enabled or nothing can be recorded.")
@click.option("-h", "--help", "asked", is_flag=True, help="Show this message and exit.")
@click.pass_context
def command(ctx: click.Context, /, **_: object) -> None:
    """The hook itself: an agent's payload on stdin, the answer in that agent's own words.

    `guardhook install` registers it; nobody needs to type it. Status 0 with nothing on stdout means no objection. Without
    any argument at all, the installed hook program enforces; `guardhook hook` enforces only with --enforce.
    """
    click.echo(ctx.get_help())
