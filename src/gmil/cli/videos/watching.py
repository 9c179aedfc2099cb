"""``gmil video watch``: events of a stream, as JSON lines."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from gmil.cli.console import say
from gmil.cli.videos.shared import video


@video.command()
@click.argument("model")
@click.argument("source")
@click.option("--realtime", is_flag=True, help="Play a file at its own speed.")
@click.option("--context", default=3.0, show_default=True, help="Seconds of the past that a decision is about.")
@click.option("--every", default=0.2, show_default=True, help="Seconds between decisions.")
@click.option("--reconnects", type=click.IntRange(min=0), help="How often in a row to open SOURCE again.  [no limit]")
@click.option("--patience", default=10.0, show_default=True, help="Seconds without a frame before it is opened again.")
def watch(
    model: str,
    source: str,
    realtime: bool,
    context: float,
    every: float,
    reconnects: int | None,
    patience: float,
) -> None:
    """Watch SOURCE, a file, a device (/dev/video0) or an address (rtsp://...), and print events as they happen.

    Every line is a JSON object: an event that begins or ends, or what happens to the source. Ctrl-C stops.
    """
    from gmil.video import EventDetectors
    from gmil.video.live.watching import stated_delay
    from gmil.video.live.watching import watch as reports

    detectors = EventDetectors.load(model)
    options: dict[str, Any] = {"realtime": realtime, "context": context, "every": every}
    options |= {"reconnects": reconnects, "patience": patience}
    found = reports(detectors, source, **options)
    say(f"Decisions are at most {stated_delay(detectors, every):.1f} s behind the newest frame.")
    try:
        for report in found:
            click.echo(json.dumps(report))
            sys.stdout.flush()
    except KeyboardInterrupt:
        say("Stopped.")
