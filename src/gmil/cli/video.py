"""``gmil video index | train | cv | detect``: from video files to event detectors."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import FAILED, Progress, print_table, say
from gmil.cli.inputs import DEFAULT_METHOD, make_estimator, parse_setting, seeded
from gmil.cli.options import jobs_option, json_option, options, seed_option, setting_option
from gmil.errors import VideoError
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.video import Detection, Hog3DSettings
    from gmil.video.labels import LabelledVideos


@click.group()
def video() -> None:
    """Detect events in videos, and when they happen.

    Frames become histograms of visual words (HOG3D) or any other features, videos become bags.
    """


_jobs = jobs_option("Processes over videos; -1 is every core.")


def _choice_option(name: str, *choices: str, help: str) -> Any:  # noqa: A002  as in click
    """Return an option with one of several values, by default the first."""
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=help)


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
@click.argument("videos", nargs=-1, required=True)
@click.option("-o", "--output", required=True, metavar="PARQUET", help="Where to write the frames.")
@click.option("--vocabulary", metavar="FILE", help="Words to use again, as index wrote them beside its output.")
@click.option("--words", default=1000, show_default=True, help="Size of the vocabulary.")
@click.option("--descriptor", multiple=True, metavar="NAME=VALUE", help="A setting of HOG3D, such as half=True.")
@_choice_option("--assignment", "hard", "soft", help="Count a descriptor for its nearest word, or share it among four.")
@click.option("--window", default=15, show_default=True, help="Frames that the histogram of a frame counts.")
@click.option("--every", default=1, show_default=True, help="Keep one histogram in this many frames.")
@click.option("--rate", default=25.0, show_default=True, help="Frames per second to bring other rates to.")
@click.option("--longest-side", default=320, show_default=True, help="Pixels to bring larger pictures to.")
@seed_option("samples and words")
@_jobs
def index(videos: tuple[str, ...], output: str, vocabulary: str | None, jobs: int | None, **options: Any) -> None:
    """Turn VIDEOS into a Parquet file with a word histogram per frame.

    What is indexed already is not done again; a video that cannot be read is named, and the rest goes on. The
    vocabulary is written beside the output and used again for new videos.
    """
    from gmil.video import IndexSettings, Vocabulary, index_videos

    options["n_words"] = options.pop("words")
    options["descriptor"] = _descriptor(options["descriptor"])
    words = None if vocabulary is None else Vocabulary.load(vocabulary)
    stages: dict[str, Progress] = {}

    def progress(what: str, done: int, total: int) -> None:
        stages.setdefault(what, Progress(what))(done, total)
        if done == total:
            stages[what].__exit__()

    result = index_videos(
        videos, output, IndexSettings(**options), vocabulary=words, n_processes=jobs, progress=progress
    )
    how = "learned" if result.learned else "used again"
    say(f"{output}: {len(result.names)} videos; {len(result.vocabulary.words)} words {how}.")
    _end_with(result.failures)


def _descriptor(settings: tuple[str, ...]) -> Hog3DSettings:
    from gmil.video import Hog3DSettings

    given = dict(parse_setting(text) for text in settings)
    known = [field.name for field in dataclasses.fields(Hog3DSettings)]
    unknown = [name for name in given if name not in known]
    if unknown:
        msg = f"HOG3D has no setting {unknown[0]!r}; its settings are {', '.join(known)}."
        raise VideoError(msg)
    return Hog3DSettings(**given)


def _end_with(failures: dict[str, str]) -> None:
    """Name every video that failed; end with 1 where one did."""
    for reason in failures.values():
        say(f"left out: {reason}")
    if failures:
        sys.exit(FAILED)


@video.command()
@_features_and_labels
@click.option("-o", "--output", required=True, metavar="MODEL", help="Where to write the detectors.")
@click.option("--stretch", type=float, help="Seconds of video that a time line scores together.")
def train(output: str, stretch: float | None, seed: int, **options: Any) -> None:
    """Train a detector for every event on FEATURES: what index wrote, or other features of frames.

    Other features are one file that gmil reads, or a folder with an npy, npz or Parquet file per video.
    """
    from gmil.video import EventDetectors, vocabulary_of
    from gmil.video.events import STRETCH

    features = _one_source(options["features"], options["other"])
    refuse_target(output, features, options["labels"])
    data = _labelled(features, options["labels"], options["group"])
    estimator = _estimator(options["method"], options["settings"], seed)
    detectors = EventDetectors.fit(
        data.bags,
        data.y,
        data.events,
        estimator=estimator,
        vocabulary=vocabulary_of(features),
        stretch=STRETCH if stretch is None else stretch,
        balanced=options["balanced"],
        topics=options["topics"],
        groups=data.groups,
    )
    detectors.save(output)
    counts = ", ".join(f"{event} {n}" for event, n in zip(data.events, data.y.sum(axis=0), strict=True))
    say(f"{output}: {len(data.events)} detectors from {len(data.bags)} videos ({counts}).")


def _one_source(first: str | None, second: str | None) -> str:
    if (first is None) == (second is None):
        msg = "Name the features once: as an argument, or with --features."
        raise VideoError(msg)
    return first or second or ""


def _labelled(features: str, labels: str, group: str | None) -> LabelledVideos:
    from gmil.video import match_labels, read_event_labels, read_features

    if not Path(features).exists():
        msg = f"There are no features {features!r}. Make them with gmil video index."
        raise VideoError(msg)
    data = match_labels(read_features(features), read_event_labels(labels, group=group))
    for note in data.notes:
        say(note)
    return data


def _estimator(method: str, settings: tuple[str, ...], seed: int) -> Any:
    return seeded(make_estimator(method, settings, None, None), settings, seed)


@video.command()
@_features_and_labels
@click.option("--folds", default=10, show_default=True, help="Folds of videos, stratified by events.")
@_choice_option(
    "--vocabulary",
    "folds",
    "shared",
    help="Learn the words in the training folds, or share those of index, which saw the test videos.",
)
@_jobs
@json_option
def cv(folds: int, vocabulary: str, jobs: int | None, seed: int, as_json: bool, **options: Any) -> None:
    """Cross-validate detectors on FEATURES; where the labels have start and end, also when events happen."""
    from gmil.video import bags_for_folds, cross_validate_events, label_folds

    features = _one_source(options["features"], options["other"])
    data = _labelled(features, options["labels"], options["group"])
    tested = label_folds(data.y, folds, seed, data.groups)
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
            time_lines=any(data.spans),
            seed=seed,
            progress=progress,
        )
    rows = result.measures(data)
    about = {"method": options["method"], "balanced": options["balanced"], "folds": folds, "seed": seed}
    about |= {"vocabulary": words, "topics": result.topics, "videos": len(data.bags)}
    about["groups"] = None if data.groups is None else len(set(data.groups.tolist()))
    if as_json:
        click.echo(json.dumps({**about, "events": rows}, indent=2))
    else:
        _print_rows(rows, about)


def _print_rows(rows: list[dict[str, Any]], about: dict[str, Any]) -> None:
    cells = [
        [
            row["event"],
            str(row["positives"]),
            f"{100 * row['balanced_accuracy']:.1f}",
            f"{row['auc']:.3f} ({row['auc_interval'][0]:.3f} - {row['auc_interval'][1]:.3f})",
            f"{100 * row['accuracy']:.1f} ({_percents(row['accuracy_interval'])})",
            "-" if row["time_found"] is None else f"{100 * row['time_found']:.0f}",
        ]
        for row in rows
    ]
    method = f"{about['method']}, balanced" if about["balanced"] else about["method"]
    by = f" by {about['groups']} groups" if about["groups"] else ""
    title = (
        f"{method} on {about['videos']} videos, {about['folds']}-fold{by}, seed {about['seed']}; "
        f"vocabulary: {about['vocabulary']}; topics: {_topics_text(about)}; per cent (95 % interval)"
    )
    print_table(["event", "videos", "balanced accuracy", "AUC", "accuracy", "time found"], cells, title=title)


def _percents(interval: list[float]) -> str:
    return " - ".join(f"{100 * limit:.1f}" for limit in interval)


def _topics_text(about: dict[str, Any]) -> str:
    """Return the numbers of topics; there are never more than training videos."""
    least = about["videos"] - -(-about["videos"] // about["folds"])  # training videos of the largest fold
    counts = [str(count) if count <= least else "one per training video" for count in about["topics"]]
    return ", ".join(dict.fromkeys(counts)) or "none"


@video.command()
@click.argument("model")
@click.argument("videos", nargs=-1, required=True)
@click.option(
    "--features", metavar="PATH", help="Features of these videos, for detectors trained on features from elsewhere."
)
@click.option("--rate", type=float, help="Rows of the features per second, where they have no times.")
@click.option("--html", metavar="FILE", help="Write a page that plays the videos beside their time lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the time lines, instead of a table.")
@_jobs
def detect(
    model: str,
    videos: tuple[str, ...],
    features: str | None,
    rate: float | None,
    html: str | None,
    as_json: bool,
    jobs: int | None,
) -> None:
    """Detect which events happen in VIDEOS, with what probability, and when.

    Segments less than half a second apart are merged; none is shorter than 0.4 s.
    """
    from gmil.video import EventDetectors, write_page
    from gmil.video import detect as find

    if html is not None:
        refuse_target(html, model, *videos)
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
    _end_with(failures)


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
