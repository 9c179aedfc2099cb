"""Fights in real surveillance clips: every descriptor alone and together, by folds of whole sources.

``python benchmarks/fights.py CLIPS --out results/fights [--seeds 0 1 2] [--encoding fisher] [--descriptors ...]``

CLIPS is a folder of videos with ``labels.csv`` (columns video and event) and ``groups.csv`` (video and group). Flow is
computed once for every clip and kept in the folder of results, and so is every seed: a run that was stopped goes on.
Codebooks, weights of views and ridge penalties are learned from training clips of other sources alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from gmil import Bags, WeightedGMIL
from gmil.engine import resolve
from gmil.model_selection.scoring import fold_area
from gmil.video import EventDetectors, IndexSettings, label_folds, match_labels, read_event_labels, read_frames
from gmil.video.motion import MotionSettings, motion_by_frame
from gmil.video.vocabulary import learn_vocabulary

DESCRIPTORS = ("hog", "hof", "mbh", "trajectory", "flow", "pyramid")
KINDS = ("boxes", "picture")


def extract(clip: Path, target: Path) -> None:
    """Write the rows of boxes and of pictures of a clip, and the frames that they belong to."""
    if target.exists():
        return
    rows, frames = {kind: [] for kind in KINDS}, {kind: [] for kind in KINDS}
    for found in motion_by_frame((frame.gray for frame in read_frames(clip)), MotionSettings()):
        for kind, parts in found.items():
            for part in parts:
                rows[kind].append(part.values.astype(np.float16 if kind == "boxes" else np.float32))
                frames[kind].append(np.full(len(part.values), part.frame))
    arrays = {kind: np.concatenate(parts) for kind, parts in rows.items() if parts}
    arrays |= {f"{kind}_frames": np.concatenate(parts) for kind, parts in frames.items() if parts}
    temporary = target.with_suffix(".part.npz")
    np.savez(temporary, **arrays)
    temporary.rename(target)


def read_clip(file: Path) -> dict[str, np.ndarray]:
    """Return what `extract` wrote; a clip in which nothing moves has no boxes."""
    with np.load(file) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    width = MotionSettings().n_features
    return {"boxes": np.empty((0, width), np.float16), "boxes_frames": np.empty(0), **found}


def windows(clip: dict[str, np.ndarray], vocabulary, backend) -> np.ndarray:
    """Return the features of windows of a clip, one for every ``every`` frames, as an index of it would have them."""
    settings, last = vocabulary.settings, int(clip["picture_frames"].max())
    centres = np.arange(0, last + 1, settings.every)
    blocks = []
    for place, encoder in vocabulary.encoders():
        values = clip[place.family][:, place.columns].astype(np.float32)
        frames = np.floor(clip[f"{place.family}_frames"] + 0.5).astype(int)
        known, sizes = np.unique(frames, return_counts=True)  # boxes come frame by frame
        offsets = np.append(0, np.cumsum(sizes))
        sums = dict(zip(known.tolist(), encoder.sums(values, offsets, backend), strict=True)) if len(known) else {}
        nothing = np.zeros(encoder.n_sums, dtype=np.float32)
        first = centres - settings.window // 2
        blocks.append(
            [encoder.vector(sum((sums.get(f, nothing) for f in range(a, a + settings.window)), nothing)) for a in first]
        )
    return np.hstack([np.stack(block) for block in blocks])


def sampled(clip: dict[str, np.ndarray], most: int, seed: int) -> dict[str, np.ndarray]:
    """Return some boxes of a clip."""
    rows = clip["boxes"]
    chosen = np.random.default_rng(seed).permutation(len(rows))[:most]
    return {"boxes": rows[np.sort(chosen)]}


def run_seed(clips, videos, settings: IndexSettings, seed: int) -> dict:
    """Return the out-of-fold decisions of every view and of all together."""
    folds, backend = label_folds(videos.y, 5, seed, videos.groups), resolve("auto", 1)
    names = [*settings.descriptors, "all"]
    decisions = {name: np.empty(len(folds)) for name in names}
    weights = []
    for fold in range(5):
        test = folds == fold
        samples = [sampled(clips[i], settings.sample_per_video, i) for i in np.flatnonzero(~test)]
        vocabulary = learn_vocabulary(samples, settings)
        parts = [windows(clip, vocabulary, backend) for clip in clips]
        bags = Bags.from_list(parts)
        detectors = EventDetectors.fit(
            bags[~test],
            videos.y[~test],
            videos.events,
            estimator=WeightedGMIL(random_state=fold, witness_model=False),
            topics=0,
            groups=videos.groups[~test],
            blocks=vocabulary.blocks,
            smoothing=0.0,
        )
        for name, view in zip(settings.descriptors, detectors.views, strict=True):
            decisions[name][test] = view.decide(bags[test])[:, 0]
        decisions["all"][test] = detectors.decide(bags[test])[:, 0]
        weights.append(detectors.weights.weights[:, 0].tolist())
        print(f"seed {seed}, fold {fold}: weights {np.round(weights[-1], 2).tolist()}", flush=True)
    return {
        "folds": folds.tolist(),
        "weights": weights,
        "decisions": {name: own.tolist() for name, own in decisions.items()},
    }


def report(results: dict[int, dict], videos) -> None:
    """Print the table: accuracy and AUC of every descriptor, with intervals by source, seed by seed."""
    positive = videos.y[:, 0] == 1
    print(f"\n{len(positive)} clips of {len(set(videos.groups))} sources, 5-fold by source; 95 % intervals by source")
    for name in next(iter(results.values()))["decisions"]:
        cells, areas, rights = [], [], []
        for found in results.values():
            own, folds = np.array(found["decisions"][name]), np.array(found["folds"])
            area = fold_area(positive, own, folds, videos.groups)
            right = float(((own > 0) == positive).mean())
            cells.append(f"{area.value:.3f} ({area.low:.3f} - {area.high:.3f}) {right:.3f}")
            areas.append(area.value)
            rights.append(right)
        means = f"AUC {np.mean(areas):.3f} accuracy {np.mean(rights):.3f}"
        print(f"{name:12} {means} | " + " | ".join(cells))


def other_half(groups: np.ndarray) -> np.ndarray:
    """Return which clips are of sources on which nothing was chosen: the cells of "pyramid" were, on the others."""
    numbers = groups.astype(int)
    sources = np.random.default_rng(12345).permutation(np.unique(numbers))
    by_size = sources[np.argsort([-(numbers == source).sum() for source in sources], kind="stable")]
    return ~np.isin(numbers, by_size[::2])


def report_half(results: dict[int, dict], videos) -> None:
    """Print AUC and accuracy on the clips of sources on which nothing was chosen, all folds pooled."""
    own, positive = other_half(np.asarray(videos.groups)), videos.y[:, 0] == 1
    print(f"\n{own.sum()} clips of {len(set(videos.groups[own]))} sources on which nothing was chosen")
    for name in next(iter(results.values()))["decisions"]:
        found = [np.array(result["decisions"][name])[own] for result in results.values()]
        area = np.mean([roc_auc_score(positive[own], decisions) for decisions in found])
        right = np.mean([((decisions > 0) == positive[own]).mean() for decisions in found])
        print(f"{name:12} AUC {area:.3f} accuracy {right:.3f}")


def main(arguments: argparse.Namespace) -> None:
    folder, source = Path(arguments.out), Path(arguments.clips)
    (folder / "motion").mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in source.iterdir() if path.suffix in (".mp4", ".avi", ".mkv", ".webm"))
    for number, clip in enumerate(files, start=1):
        extract(clip, folder / "motion" / f"{clip.stem}.npz")
        if number % 50 == 0:
            print(f"{number} of {len(files)} clips", flush=True)
    clips = [read_clip(folder / "motion" / f"{clip.stem}.npz") for clip in files]
    labels = read_event_labels(source / "labels.csv", group=source / "groups.csv")
    named = Bags.from_list([np.zeros((1, 1))] * len(files), bag_ids=[clip.name for clip in files])
    videos = match_labels(named, labels)
    if len(videos.bags) < len(files):
        raise SystemExit(videos.notes[0])
    settings = IndexSettings(
        descriptors=arguments.descriptors, encodings=[arguments.encoding], every=5, sample_per_video=100, n_words=500
    )
    results = {}
    for seed in arguments.seeds:
        kept = folder / "-".join([arguments.encoding, *arguments.descriptors, f"{seed}.json"])
        if not kept.exists():
            kept.write_text(json.dumps(run_seed(clips, videos, settings, seed)))
        results[seed] = json.loads(kept.read_text())
    report(results, videos)
    if arguments.other_half:
        report_half(results, videos)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips")
    parser.add_argument("--out", default="results/fights")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--descriptors", choices=DESCRIPTORS, nargs="+", default=DESCRIPTORS)
    parser.add_argument("--other-half", action="store_true", help="of the surveillance clips: sources not chosen on")
    parser.add_argument("--encoding", choices=["words", "vlad", "fisher"], default="fisher")
    main(parser.parse_args())
