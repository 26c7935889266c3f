"""`bubblescope explain`: what a name means."""

from __future__ import annotations

import click

from bubblescope.cli import pages

__all__ = ["command"]


@click.command("explain")
@click.argument("name", metavar="[NAME]", required=False)
def command(*, name: str | None) -> None:
    """Explain a metric, a cause, a finding, a what-if or a schedule.

    NAME is a word of the tables, or a key of the JSON report. Without a NAME it lists what can be
    explained.

    \b
    Examples:
      bubblescope explain gap
      bubblescope explain causes.imbalance
      bubblescope explain missing-ranks
      bubblescope explain zb-v
      bubblescope explain without=
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.report import explained  # noqa: PLC0415  rich is not for --help

    pages.show(explained.contents() if name is None else explained.explain(name))
