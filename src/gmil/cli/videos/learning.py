"""``gmil video train | cv``: detectors from features of frames and labels of videos."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import Progress, print_table, say
from gmil.cli.inputs import DEFAULT_METHOD, make_estimator, seeded
from gmil.cli.options import json_option, options, seed_option, setting_option
from gmil.cli.videos.shared import choice_option, crops_option, video, video_jobs
from gmil.errors import VideoError, count_of
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.video.labels import LabelledVideos


def _numbers(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[int] | None:
    """Return numbers that were given with commas between them."""
    if value is None:
        return None
    try:
        return [int(number) for number in value.split(",")]
    except ValueError:
        msg = f"{value!r} is not a number, or several with commas between them, such as 25,50."
        raise click.BadParameter(msg) from None


_features_and_labels = options(
    click.argument("features", required=False, metavar="[FEATURES]"),
    click.option("--features", "other", metavar="PATH", help="The same as FEATURES."),
    crops_option,
    click.option("--labels", required=True, metavar="CSV", help="Columns video and event, or video and 0/1 per event."),
    click.option(
        "--group",
        metavar="COLUMN|CSV",
        help="What videos belong to (camera, place), kept in one fold: a column of the labels, or a CSV file.",
    ),
    click.option("--method", default=DEFAULT_METHOD, show_default=True, help="See gmil methods."),
    setting_option,
    click.option("--balanced", is_flag=True, help="Decide as if events happened in half of the videos."),
    click.option(
        "--topics",
        metavar="NUMBERS",
        callback=_numbers,
        help="Topics of words, as further features of videos; 0 is none.  [25,50,100 for words and weighted-gmil]",
    ),
    seed_option("folds and method"),
)


@video.command()
@_features_and_labels
@click.option("-o", "--output", required=True, metavar="MODEL", help="Where to write the detectors.")
@click.option("--stretch", type=float, help="Make time lines of decisions about so many seconds, not of frames.")
@click.option("--smoothing", type=float, help="Seconds over which time lines are smoothed.  [chosen on FEATURES]")
def train(output: str, stretch: float | None, smoothing: float | None, seed: int, **options: Any) -> None:
    """Train a detector for every event on FEATURES: what index wrote, or other features of frames.

    Other features are one file that gmil reads, or a folder with an npy, npz, h5 or Parquet file per video.
    """
    from gmil.video import EventDetectors, vocabulary_of

    features = _one_source(options["features"], options["other"])
    refuse_target(output, features, options["labels"])
    data = _labelled(features, options)
    estimator = _estimator(options["method"], options["settings"], seed)
    detectors = EventDetectors.fit(
        data.bags,
        data.y,
        data.events,
        estimator=estimator,
        vocabulary=vocabulary_of(features),
        stretch=stretch,
        smoothing=smoothing,
        balanced=options["balanced"],
        topics=options["topics"],
        groups=data.groups,
    )
    detectors.save(output)
    counts = ", ".join(f"{event} {n}" for event, n in zip(data.events, data.y.sum(axis=0), strict=True))
    say(f"{output}: {count_of(len(data.events), 'detector')} from {count_of(len(data.bags), 'video')} ({counts}).")


def _one_source(first: str | None, second: str | None) -> str:
    if (first is None) == (second is None):
        msg = "Name the features once: as an argument, or with --features."
        raise VideoError(msg)
    return first or second or ""


def _labelled(features: str, options: dict[str, Any]) -> LabelledVideos:
    from gmil.video import match_labels, read_event_labels, read_features

    if not Path(features).exists():
        msg = f"There are no features {features!r}. Make them with gmil video index."
        raise VideoError(msg)
    data = match_labels(
        read_features(features, crops=options["crops"]), read_event_labels(options["labels"], group=options["group"])
    )
    for note in data.notes:
        say(note)
    return data


def _estimator(method: str, settings: tuple[str, ...], seed: int) -> Any:
    return seeded(make_estimator(method, settings, None, None), settings, seed)


@video.command()
@_features_and_labels
@click.option("--folds", default=10, show_default=True, help="Folds of videos, stratified by events.")
@choice_option(
    "--vocabulary",
    "folds",
    "shared",
    help="Learn the words in the training folds, or share those of index, which saw the test videos.",
)
@video_jobs
@json_option
def cv(folds: int, vocabulary: str, jobs: int | None, seed: int, as_json: bool, **options: Any) -> None:
    """Cross-validate detectors on FEATURES; where the labels have start and end, also when events happen."""
    from gmil.video import bags_for_folds, cross_validate_events, label_folds, vocabulary_of

    features = _one_source(options["features"], options["other"])
    data = _labelled(features, options)
    tested, known = label_folds(data.y, folds, seed, data.groups), vocabulary_of(features)
    with Progress("Videos for all folds") as progress:
        bags_of, words = bags_for_folds(
            features, data, tested, vocabulary=vocabulary, n_processes=jobs, progress=lambda _, *done: progress(*done)
        )
    with Progress("Folds") as progress:
        result = cross_validate_events(
            data,
            bags_of,
            tested,
            estimator=_estimator(options["method"], options["settings"], seed),
            vocabulary=words,
            balanced=options["balanced"],
            topics=options["topics"],
            time_lines=_has_times(data),
            seed=seed,
            blocks=() if known is None else known.blocks,
            progress=progress,
        )
    rows = result.measures(data)
    about = {"method": options["method"], "balanced": options["balanced"], "folds": folds, "seed": seed}
    about |= {"vocabulary": words, "topics": result.topics, "videos": len(data.bags)}
    about["groups"] = None if data.groups is None else len(set(data.groups.tolist()))
    if as_json:
        events = [{name: _without_nan(value) for name, value in row.items()} for row in rows]
        click.echo(json.dumps({**about, "events": events}, indent=2, allow_nan=False))
    else:
        _print_rows(rows, about)
    for row in rows:
        if row["auc_folds_dropped"]:
            say(_about_folds(row))


def _has_times(data: LabelledVideos) -> bool:
    """Tell whether time lines can be compared with the labels; say it where only the features stand in the way."""
    from gmil.video.features import times_are_known

    if not any(data.spans):
        return False
    if times_are_known(data.bags):
        return True
    say("The labels have start and end, but the features no times, so that time lines are not evaluated. Add time.")
    return False


def _print_rows(rows: list[dict[str, Any]], about: dict[str, Any]) -> None:
    cells = [
        [
            row["event"],
            str(row["positives"]),
            f"{100 * row['balanced_accuracy']:.1f}",
            "-" if math.isnan(row["auc"]) else f"{row['auc']:.3f} ({_between(row['auc_interval'], '.3f')})",
            f"{100 * row['accuracy']:.1f} ({_between([100 * limit for limit in row['accuracy_interval']], '.1f')})",
            "-" if row["time_found"] is None else f"{100 * row['time_found']:.0f}",
        ]
        for row in rows
    ]
    method = f"{about['method']}, balanced" if about["balanced"] else about["method"]
    by = f" by {count_of(about['groups'], 'group')}" if about["groups"] else ""
    title = (
        f"{method} on {about['videos']} videos, {about['folds']}-fold{by}, seed {about['seed']}; "
        f"vocabulary: {about['vocabulary']}; topics: {_topics_text(about)}; per cent (95 % interval)"
    )
    print_table(["event", "videos", "balanced accuracy", "AUC", "accuracy", "time found"], cells, title=title)


def _between(interval: list[float], form: str) -> str:
    return " - ".join(format(limit, form) for limit in interval)


def _without_nan(value: Any) -> Any:
    """Return a measure as JSON knows it: null where it is not defined."""
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _about_folds(row: dict[str, Any]) -> str:
    """Return why an AUC is missing, or about some of the folds alone."""
    if math.isnan(row["auc"]):
        return f"{row['event']} has no AUC: no fold has videos with and without it. Take fewer folds, or more videos."
    left = count_of(row["auc_folds_dropped"], "fold that lacks", "folds that lack")
    return f"The AUC of {row['event']} leaves out {left} videos with or without it."


def _topics_text(about: dict[str, Any]) -> str:
    """Return the numbers of topics; there are never more than training videos."""
    least = about["videos"] - -(-about["videos"] // about["folds"])  # training videos of the largest fold
    counts = [str(count) if count <= least else "one per training video" for count in about["topics"]]
    return ", ".join(dict.fromkeys(counts)) or "none"
