"""`guardhook rollout simulate`: do a run's calls fit together?"""

from __future__ import annotations

import click

from guardhook.commands import reading, rollout_named

_SHOWN = 50


@click.command("simulate")
@click.argument("name", metavar="RUN|FILE")
@click.option("--detail", is_flag=True, help="Say how much of it two independent events prove.")
@rollout_named.headless
@reading.as_json
@reading.directory
def command(name: str, detail: bool, allow_headless: bool, as_json: bool, directory: str | None) -> None:
    """Check that a run's calls fit together: announced, started, ended, in this order and with the same input. Nothing is run.

    Status 0 when everything fits, 3 when not.
    """
    from guardhook.rollout.simulate import simulate

    found = rollout_named.named(name, directory, as_json, allow_headless=allow_headless)
    result = simulate(found.events, found.gaps)
    if as_json:
        reading.print_json(result.as_dict(detail=detail))
    else:
        from guardhook.views.text import count, one_line

        rollout_named.tolerate()
        say = "fit together" if result.matched else "DON'T fit together"
        click.echo(f"{count(result.events_replayed)} events, {count(result.step_count)} steps: the calls {say}.")
        for mismatch in result.mismatches[:_SHOWN]:
            click.echo(f"  {one_line(mismatch)}")
        if len(result.mismatches) > _SHOWN:
            click.echo(f"  and {count(len(result.mismatches) - _SHOWN)} more; --json names them")
        if detail:
            for key, value in result.detail.items():
                click.echo(f"{key.replace('_', ' ')}: {one_line(_words(value), max(40, reading.width() - 20))}")
    if not result.matched:
        raise SystemExit(3)


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{v} {k}" for k, v in value.items())
    if isinstance(value, list):
        return f"{len(value)}" + (": " + ", ".join(map(_words, value[:10])) if value else "")
    return str(value)
