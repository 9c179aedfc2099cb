"""``gmil video score``: frame-level figures of saved detectors, as the field of anomaly detection reports them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gmil.cli.console import print_table, said_warnings
from gmil.cli.options import json_option
from gmil.cli.results import number
from gmil.cli.videos.shared import crops_option, frames_option, video
from gmil.errors import count_of

if TYPE_CHECKING:
    from gmil.video.snippets.scoring import FrameScores


@video.command()
@click.argument("model")
@click.argument("features")
@click.option("--annotations", required=True, metavar="FILE", help="Lines: name class start end start end, in frames.")
@crops_option
@frames_option
@json_option
def score(model: str, features: str, annotations: str, crops: str, snippet_frames: int, as_json: bool) -> None:
    """Score the detectors of MODEL on FEATURES of annotated test videos, frame by frame.

    AUC and average precision are over the frames of all videos, by class (its videos and all normal ones), and of
    anomalous videos alone. The score of a frame is the highest over the events of MODEL, smoothed as in time lines.
    """
    import numpy as np

    from gmil.video import EventDetectors, read_features
    from gmil.video.snippets.annotations import read_annotations
    from gmil.video.snippets.scoring import score_frames

    detectors = EventDetectors.load(model)
    bags = read_features(features, crops=crops, snippet_frames=snippet_frames)
    scores = detectors.smoothed_scores(bags).max(axis=1)
    starts = np.asarray(bags.instance_info.column("frame"))  # type: ignore[union-attr]
    names = [str(name) for name in bags.bag_ids]  # type: ignore[union-attr]
    known = read_annotations(annotations)
    with said_warnings():
        found = score_frames(names, bags.split(scores), bags.split(starts), known, snippet_frames)
    if as_json:
        click.echo(json.dumps({"model": model, "features": features, **found.as_dict()}, indent=2))
    else:
        _print(found, model)


def _print(found: FrameScores, model: str) -> None:
    rows = [
        ["all videos", str(found.n_videos), number(found.auc, ".3f"), number(found.average_precision, ".3f")],
        [
            "anomalous videos alone",
            str(sum(n for _, _, n in found.by_class.values())),
            number(found.auc_anomalous, ".3f"),
            number(found.average_precision_anomalous, ".3f"),
        ],
        *(
            [kind, str(n), number(area, ".3f"), number(precision, ".3f")]
            for kind, (area, precision, n) in found.by_class.items()
        ),
    ]
    frames, videos = count_of(found.n_frames, "frame"), count_of(found.n_videos, "video")
    title = f"{model} on {frames} of {videos}; a class is scored with all normal videos"
    print_table(["videos", "number", "frame AUC", "frame AP"], rows, title=title)
