"""``gmil video detect``: what happens in new videos, and when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gmil.cli.console import Progress, print_table, say
from gmil.cli.videos.shared import end_with, video, video_jobs
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.video import Detection


@video.command()
@click.argument("model")
@click.argument("videos", nargs=-1, required=True)
@click.option(
    "--features", metavar="PATH", help="Features of these videos, for detectors trained on features from elsewhere."
)
@click.option("--rate", type=float, help="Rows of the features per second, where they have no times.")
@click.option("--html", metavar="FILE", help="Write a page that plays the videos beside their time lines.")
@click.option("--events", metavar="FILE", help="Write when events happen: a .csv, .json, .vtt or .edl file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the time lines, instead of a table.")
@video_jobs
def detect(
    model: str,
    videos: tuple[str, ...],
    features: str | None,
    rate: float | None,
    html: str | None,
    events: str | None,
    as_json: bool,
    jobs: int | None,
) -> None:
    """Detect which events happen in VIDEOS, with what probability, and when.

    Segments less than half a second apart are merged; none is shorter than 0.4 s.
    """
    from gmil.video import EventDetectors, write_page
    from gmil.video import detect as find
    from gmil.video.batches import named_videos
    from gmil.video.exports import refuse_events_file, write_events

    for target in (html, events):
        if target is not None:
            refuse_target(target, model, *videos)
    if events is not None:
        refuse_events_file(events, len(named_videos(videos)))
    detectors = EventDetectors.load(model)
    with Progress("Videos") as progress:
        found, failures = find(detectors, videos, features=features, rate=rate, n_processes=jobs, progress=progress)
    if as_json:
        click.echo(json.dumps([detection.as_dict() for detection in found], indent=2))
    elif found:
        _print_detections(found)
    if html is not None and found:
        write_page(found, html)
        say(f"{html} is written.")
    if events is not None and found:
        tolerance = max(detectors.tolerance_of(detection.time_lines[0].times) for detection in found)
        write_events(found, events, tolerance)
        say(f"{events} is written; times may be off by {tolerance:.1f} s.")
    end_with(failures)


def _print_detections(found: list[Detection]) -> None:
    from gmil.video.page import clock

    rows = [
        [
            detection.video,
            line.event,
            f"{100 * line.probability:.0f} %",
            ", ".join(f"{clock(s.start)}-{clock(s.end)}" for s in line.segments) or "-",
        ]
        for detection in found
        for line in detection.time_lines
    ]
    print_table(["video", "event", "probability", "when"], rows)
