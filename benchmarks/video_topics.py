"""Which look at the words of frames tells events: words, weighted words, topics, or words and topics together.

``python benchmarks/video_topics.py DIR... --seeds SEED... [--folds 10]``

DIR are folders of ``video_events.py``, whose clips and words are used again; the words are those of ``index``, shared
by all folds, everything else is learned in the training folds (`WeightedGMIL`, ``balanced=True``). With two folds half
as many videos are learned from, which tells the looks apart better. "told" is no detector: a linear model that was told
when events happen, to see what the words know.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.svm import LinearSVC

from gmil import WeightedGMIL
from gmil.video import EventDetectors, label_folds, learn_topics, match_labels, read_event_labels, read_features

_TOLD_EVERY = 4  # frames


def as_they_are(_):
    return lambda bags: bags


def rooted(_):
    return lambda bags: bags.with_instances(np.sqrt(bags.instances))


def weighted(train):
    idf = np.log1p(1 / np.maximum((train.instances > 0).mean(axis=0), 1 / train.n_instances)).astype(np.float32)
    return lambda bags: bags.with_instances(bags.instances * idf)


def directions(n):
    """The directions of most variance that topics are turned from."""

    def learn(train):
        words = learn_topics(train, 1)
        found = PCA(n, whiten=True, svd_solver="covariance_eigh").fit(np.sqrt(train.instances) * words.weights)
        return lambda bags: bags.with_instances(found.transform(np.sqrt(bags.instances) * words.weights))

    return learn


def topics(n):
    return lambda train: learn_topics(train, n).of


LOOKS = {
    "words": as_they_are,
    "square roots of words": rooted,
    "words by inverse document frequency": weighted,
    "50 directions of most variance": directions(50),
    **{f"{n} topics": topics(n) for n in (25, 35, 50, 70, 100)},
}


def decide(data, folds, learn, seed, topics=0):
    """Return out-of-fold decisions of detectors, (n_videos, n_events); with topics, of all looks weighed."""
    decisions = np.empty(data.y.shape)
    for fold in range(folds.max() + 1):
        test = folds == fold
        look = learn(data.bags[~test])
        estimator = WeightedGMIL(random_state=seed)
        train = look(data.bags[~test])
        model = EventDetectors.fit(train, data.y[~test], data.events, estimator=estimator, balanced=True, topics=topics)
        decisions[test] = model.decide(look(data.bags[test]))
    return decisions


def told(data, folds):
    """Return decisions of linear models of frames that know when events happen; of a video the eighth highest."""
    times = data.bags.instance_info.column("time").to_numpy()
    video = np.repeat(np.arange(len(data.bags)), data.bags.sizes)
    frames = data.bags.instances / np.maximum(np.linalg.norm(data.bags.instances, axis=1, keepdims=True), 1e-12)
    decisions = np.empty(data.y.shape)
    for j, event in enumerate(data.events):
        spans = [data.spans[i].get(event, []) for i in range(len(data.bags))]
        happens = np.array([any(a <= t < b for a, b in spans[i]) for i, t in zip(video, times, strict=True)])
        for fold in range(folds.max() + 1):
            train = np.flatnonzero(folds[video] != fold)[::_TOLD_EVERY]
            model = LinearSVC(class_weight="balanced").fit(frames[train], happens[train])
            for i in np.flatnonzero(folds == fold):
                decisions[i, j] = np.sort(model.decision_function(frames[video == i]))[-8]
    return decisions


def measures(y, decisions):
    """Return balanced accuracy and AUC of every event, (n_events, 2)."""
    return np.array(
        [
            (balanced_accuracy_score(true, found > 0), roc_auc_score(true, found))
            for true, found in zip(y.T, decisions.T, strict=True)
        ]
    )


def main(arguments: argparse.Namespace) -> None:
    found: dict[str, list] = {}
    for folder, seed in zip(arguments.folders, arguments.seeds, strict=True):
        data = match_labels(
            read_features(Path(folder) / "frames.parquet"), read_event_labels(Path(folder) / "clips" / "labels.csv")
        )
        folds = label_folds(data.y, arguments.folds, seed)
        decisions = {name: decide(data, folds, learn, seed) for name, learn in LOOKS.items()}
        decisions["mean of words and 50 topics"] = (decisions["words"] + decisions["50 topics"]) / 2
        for numbers in ([50], [35, 50, 70], [25, 50, 100]):
            name = f"words and {', '.join(map(str, numbers))} topics, weighed"
            decisions[name] = decide(data, folds, as_they_are, seed, numbers)
        decisions["told"] = told(data, folds)
        for name, values in decisions.items():
            found.setdefault(name, []).append(measures(data.y, values))
    sets = f"{len(arguments.seeds)} sets of clips, {arguments.folds}-fold"
    print(f"{sets}: mean (least) balanced accuracy and mean (least) AUC")
    for name, values in found.items():
        means, least = np.mean(values, axis=0), np.min(values, axis=0)
        cells = [
            f"{event} {a:.3f} ({b:.3f}) {c:.3f} ({d:.3f})"
            for event, (a, c), (b, d) in zip(data.events, means, least, strict=True)
        ]
        print(f"{name:40}" + "; ".join(cells), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", required=True, help="of the clips in each folder")
    parser.add_argument("--folds", type=int, default=10)
    main(parser.parse_args())
