"""A long stream that is watched: every planted event once, how late, and whether memory grows.

``python benchmarks/video_watch.py --out results/watch [--minutes 30] [--fast]``

Detectors of "dash" are trained on generated clips. The stream is a row of other clips, one in twenty with the event. It
is played at its own speed, unless ``--fast`` is given. Targets: no growth of memory after the first minute, a delay
below 2 s, every planted event reported once.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path

import av
import numpy as np

from gmil.video import (
    EventDetectors,
    Hog3DSettings,
    IndexSettings,
    index_videos,
    match_labels,
    read_event_labels,
    read_features,
    vocabulary_of,
    watch,
)
from video_clips import N_FRAMES, RATE, Clip, draw_clip, make_clips, plan_clips

EVENT = "dash"


def trained(folder: Path, seed: int) -> EventDetectors:
    """Return detectors of one event, from generated clips."""
    model = folder / "model.gmil"
    if not model.exists():
        clips = plan_clips(20, 0, 40, seed)
        make_clips(folder / "clips", clips, seed)
        settings = IndexSettings(descriptor=Hog3DSettings(half=True), n_words=300, sample_per_video=200)
        frames = folder / "frames.parquet"
        index_videos([folder / "clips" / clip.name for clip in clips], frames, settings)
        data = match_labels(read_features(frames), read_event_labels(folder / "clips" / "labels.csv"))
        detectors = EventDetectors.fit(data.bags, data.y, data.events, vocabulary=vocabulary_of(frames))
        detectors.save(model)
    return EventDetectors.load(model)


def write_stream(path: Path, minutes: float, seed: int) -> list[tuple[float, float]]:
    """Write the stream, clip after clip, and return when the event is planted, in seconds."""
    planted, generator = [], np.random.default_rng(seed)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libvpx-vp9", rate=RATE)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 128, 96, "yuv420p", 1_000_000
        stream.options = {"deadline": "realtime", "cpu-used": "8", "crf": "10"}
        for number in range(int(minutes * 60 * RATE / N_FRAMES)):
            start = int(generator.integers(10, 40))
            events = ((EVENT, start, start + 25),) if number % 20 == 10 else ()
            planted += [
                ((number * N_FRAMES + first) / RATE, (number * N_FRAMES + last) / RATE) for _, first, last in events
            ]
            for frame in draw_clip(Clip(f"clip{number % 1000:03d}.webm", events), seed + number):
                picture = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")
                container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return planted


def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    detectors = trained(folder, arguments.seed)
    stream, times = folder / f"stream-{arguments.minutes:g}.webm", folder / f"stream-{arguments.minutes:g}.json"
    if not times.exists():
        times.write_text(json.dumps(write_stream(stream, arguments.minutes, arguments.seed + 1)))
    planted = json.loads(times.read_text())
    begins, memory = [], {}
    for report in watch(detectors, str(stream), realtime=not arguments.fast):
        memory.setdefault(int(report["time"] // 60), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        if report["kind"] == "source":
            print(json.dumps(report), flush=True)
        elif report["event"] == EVENT and report["state"] == "begins":
            begins.append(report)
    hits = [sum(a - 1 <= report["start"] <= b + 1 for report in begins) for a, b in planted]
    others = len(begins) - sum(hits)
    print(
        f"{len(planted)} events planted: {hits.count(1)} reported once, {hits.count(0)} missed; {others} false alarms"
    )
    if begins:
        print(
            f"delay: mean {np.mean([r['delay'] for r in begins]):.2f} s, most {max(r['delay'] for r in begins):.2f} s"
        )
    print("peak memory in MiB by minute: " + ", ".join(f"{minute}: {most:.0f}" for minute, most in memory.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="results/watch")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--fast", action="store_true", help="as fast as the machine can")
    main(parser.parse_args())
