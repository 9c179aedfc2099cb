"""A long stream that is watched: every planted event once, how late, and whether memory grows.

``python benchmarks/video_watch.py --out results/watch [--minutes 30] [--repeat 1] [--fast] [--stream-seed 41]``

A detector of "dash" is trained on generated clips, as in ``video_events.py``. The stream is one long scene of other
motion, with the event three times a minute; with ``--repeat`` there is a hard cut wherever the scene begins again. It
is played at its own speed, unless ``--fast`` is given. Targets: no growth of memory after the first minute, a delay
below 2 s, every planted event reported once.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import time
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
from video_clips import RATE, draw_stream, make_clips, plan_clips, write_video

EVENT = "dash"


def trained(folder: Path, seed: int) -> EventDetectors:
    """Return detectors of one event, from generated clips; clips with other events are among those without it."""
    model = folder / "model.gmil"
    if not model.exists():
        clips = plan_clips(30, 20, 50, seed)
        if not (folder / "clips" / "labels.csv").exists():
            make_clips(folder / "clips", clips, seed)
        settings = IndexSettings(
            descriptor=Hog3DSettings(half=True), sample_per_video=200, sample_size=36_000, max_iter=20
        )
        frames = folder / "frames.parquet"
        index_videos([folder / "clips" / clip.name for clip in clips], frames, settings)
        data = match_labels(read_features(frames), read_event_labels(folder / "clips" / "labels.csv"))
        shown = data.y[:, [data.events.index(EVENT)]]
        words = vocabulary_of(frames)
        # Not balanced: in a stream the event is rarer than in the clips.
        EventDetectors.fit(data.bags, shown, [EVENT], vocabulary=words).save(model)
    return EventDetectors.load(model)


def write_stream(path: Path, minutes: float, seed: int) -> list[tuple[float, float]]:
    """Write the stream and return when the event is planted, in seconds: three times a minute, for about a second."""
    generator, n_frames = np.random.default_rng(seed), int(minutes * 60 * RATE)
    starts = [start + int(generator.integers(50, 400)) for start in range(0, n_frames - 450, 20 * RATE)]
    events = tuple((EVENT, start, start + int(generator.integers(20, 31))) for start in starts)
    write_video(path, draw_stream(n_frames, events, seed))
    return [(first / RATE, (last + 1) / RATE) for _, first, last in events]


def repeated(scene: Path, target: Path, times: int) -> None:
    """Write a video that shows another one several times, without encoding it again."""
    with av.open(str(target), "w") as container:
        stream, shift = None, 0
        for _ in range(times):
            with av.open(str(scene)) as source:
                own = source.streams.video[0]
                stream = stream or container.add_stream_from_template(own)
                step = int(1 / (RATE * own.time_base))
                for packet in source.demux(own):
                    if packet.dts is not None:
                        packet.pts, packet.dts, packet.stream = packet.pts + shift, packet.dts + shift, stream
                        last = packet.pts
                        container.mux(packet)
                shift = last + step


def resident() -> float:
    """Return the memory of this process now, in MiB; where the system does not tell, the most that it ever had."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Heap(ctypes.Structure):
    """What the C library tells of its heaps (mallinfo2); all of its fields are sizes."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "free", "fast", "mapped", "in_maps", "most", "in_fast", "in_use", "unused", "on_top")
    )


def in_use() -> float | None:
    """Return what the C library has handed out and not got back, in MiB; None where it does not tell.

    Resident memory may be larger, and grow in steps: the library keeps what it got back for later.
    """
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = _Heap
    found = ask()
    return (found.in_use + found.in_maps) / 2**20


def summarise(begins: list[dict], planted: list[tuple[float, float]], *, realtime: bool) -> None:
    """Print how many planted events are reported, and how late: by the time of the newest frame, and by the clock."""
    hits = [[r for r in begins if a - 1 <= r["start"] <= b + 1] for a, b in planted]
    counts = [len(own) for own in hits]
    once, missed, others = counts.count(1), counts.count(0), len(begins) - sum(counts)
    print(f"{len(planted)} events planted: {once} reported once, {missed} missed; {others} false alarms")
    found = [(own[0], start) for own, (start, _) in zip(hits, planted, strict=True) if own]
    delays = {"the start that is reported": [report["delay"] for report in begins]}
    delays["the planted start"] = [report["start"] + report["delay"] - start for report, start in found]
    if realtime:
        delays["the planted start, by the clock"] = [report["clock"] - start for report, start in found]
    for name, seconds in delays.items():
        if seconds:
            print(f"delay behind {name}: mean {np.mean(seconds):.2f} s, most {max(seconds):.2f} s")


def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    detectors = trained(folder, arguments.seed)
    scene = arguments.minutes / arguments.repeat
    stream = folder / f"scene-{scene:g}-{arguments.stream_seed}.webm"
    times = stream.with_suffix(".json")
    if not times.exists():
        times.write_text(json.dumps(write_stream(stream, scene, arguments.stream_seed)))
    planted = json.loads(times.read_text())
    if arguments.repeat > 1:
        scene, stream = stream, folder / f"stream-{arguments.minutes:g}.webm"
        repeated(scene, stream, arguments.repeat)
        length = 60 * arguments.minutes / arguments.repeat
        planted = [(a + i * length, b + i * length) for i in range(arguments.repeat) for a, b in planted]
    begins, memory, worked, last, began = [], {}, time.process_time(), 0.0, 0.0
    for report in watch(detectors, str(stream), realtime=not arguments.fast):
        last = report["time"]
        memory.setdefault(int(last // 60), (resident(), in_use()))
        if report["kind"] == "source":
            began = began or time.monotonic()  # when the stream was opened
            print(json.dumps(report), flush=True)
        elif report["event"] == EVENT and report["state"] == "begins":
            begins.append({**report, "clock": time.monotonic() - began})
    worked = time.process_time() - worked
    summarise(begins, planted, realtime=not arguments.fast)
    print(f"{last:.0f} s of video, {worked:.0f} s of one core: {last / worked:.1f} times real time")
    (folder / "reports.json").write_text(json.dumps(begins, indent=1))
    for name, held in zip(("resident", "in use"), zip(*memory.values(), strict=True), strict=True):
        if None not in held:
            print(f"memory {name}, MiB by minute: " + ", ".join(f"{value:.0f}" for value in held))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="results/watch")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--repeat", type=int, default=1, help="show a shorter scene so many times, to save its drawing")
    parser.add_argument("--seed", type=int, default=40, help="of the clips that the detector is trained on")
    parser.add_argument("--stream-seed", type=int, default=41)
    parser.add_argument("--fast", action="store_true", help="as fast as the machine can")
    main(parser.parse_args())
