"""
Events in a video
=================

**Question.** Which events happen in a video, and when?

Labels of videos are cheap: someone notes that there was a fall. To note from
which second to which is many times the work. A video is a bag of frames here,
an event is a label of the video, and a time line shows when it happens.

Frames are described by features, from whatever network or descriptor: here
they are generated, 24 numbers a frame, ten frames a second. With video files,
:func:`gmil.video.index_videos` makes such features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import gmil
from gmil.video import overlap, segments

EVENTS = ["fall", "shout", "crash"]
RATE, SECONDS = 10, 20


def make_video(rng):
    """Return the frames of a video, and start and end of its events."""
    n_frames, n_features = RATE * SECONDS, 24
    times = np.arange(n_frames) / RATE
    frames = rng.normal(size=(n_frames, n_features))
    for _ in range(6):  # clutter: other things happen, too
        start = rng.uniform(0, SECONDS - 2)
        frames[
            (times >= start) & (times < start + 1), rng.integers(12, 24)
        ] += 3
    happens = {}
    for number, event in enumerate(EVENTS):
        if rng.random() < 0.4:
            start = rng.uniform(0, SECONDS - 3)
            end = start + rng.uniform(1.5, 3)
            during = (times >= start) & (times < end)
            frames[np.ix_(during, np.arange(4) + 4 * number)] += 2
            happens[event] = (start, end)
    return frames, happens


rng = np.random.default_rng(0)
frames, truth = zip(*(make_video(rng) for _ in range(80)))
y = np.array(
    [[event in happens for event in EVENTS] for happens in truth]
).astype(int)
number = np.tile(np.arange(RATE * SECONDS), len(frames))
videos = gmil.Bags.from_list(
    frames, instance_info={"frame": number, "time": number / RATE}
)
print(videos)
print("videos with each event:", dict(zip(EVENTS, y.sum(axis=0).tolist())))

# %%
# Which events, and when
# ----------------------
# ``WeightedGMIL`` learns all events at once, from a column of labels for each.
# Scores of frames are averaged over neighbours in time, and
# :func:`gmil.video.segments` returns when they are high, the surest segment
# first.

train, test = videos[:50], videos[50:]
model = gmil.WeightedGMIL(random_state=0).fit(train, y[:50])
probabilities = model.predict_proba(test)
scores = gmil.smooth_scores(model.score_instances(test), test, bandwidth=0.2)
lines = [
    of_video.T for of_video in test.split(scores)
]  # a row for every event
times = np.arange(RATE * SECONDS) / RATE

for number, event in enumerate(EVENTS):
    auc = roc_auc_score(y[50:, number], probabilities[:, number])
    print(f"{event}: AUC {auc:.2f} on {len(test)} new videos")
detected = probabilities > 0.5
print(
    f"{(detected & (y[50:] == 1)).sum()} of {y[50:].sum()} events are detected"
)
false_alarms = (detected & (y[50:] == 0)).sum()
print(f"{false_alarms} events are detected that do not happen")

# %%
# Is the time right? The surest segment of an event and the true one share a
# part of their time: 1 is the same segment, 0 another time.

shared = np.array(
    [
        overlap(segments(line, times)[0][:2], happens[event])
        for happens, of_video in zip(truth[50:], lines)
        for event, line in zip(EVENTS, of_video)
        if event in happens
    ]
)
print(
    f"mean overlap of {len(shared)} events with their true time: "
    f"{shared.mean():.2f}"
)
print(f"overlap of one half or more: {(shared >= 0.5).mean():.0%}")

# %%
# The time line
# -------------
# The first new video with two events. Segments are drawn where the event is
# detected.

plt.rc("font", size=12)
BLUE, ORANGE = "#0072B2", "#E69F00"

shown = int(np.flatnonzero(y[50:].sum(axis=1) == 2)[0])
fig, axes = plt.subplots(
    3, 1, figsize=(7, 5), sharex=True, layout="constrained"
)
for ax, event, line, probability in zip(
    axes, EVENTS, lines[shown], probabilities[shown]
):
    if event in truth[50 + shown]:
        ax.axvspan(
            *truth[50 + shown][event], color=ORANGE, alpha=0.4, linewidth=0
        )
    ax.plot(times, line, color=BLUE)
    for segment in segments(line, times) if probability > 0.5 else []:
        ax.hlines(0.5, segment.start, segment.end, color=BLUE, linewidth=6)
    title = f"{event}: {probability:.0%} that it happens in this video"
    ax.set_title(title, loc="left", fontsize=12)
    ax.set(ylim=(-9, 1), yticks=[-8, -4, 0], xlim=(0, SECONDS))
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylabel("score of the frame, log-odds")
axes[2].set_xlabel("seconds")
fig.suptitle("orange: true time    blue bar: detected time", fontsize=12)
plt.show()

# %%
# **What one sees.** Scores rise when the event happens, though no one told the
# model when. All of the 31 events in new videos are detected, none that does
# not happen, and the surest segment shares 0.94 of its time with the true one
# on average.
#
# **Limits.** Here an event is the same every time and frames are independent.
# In real videos the scene often tells the label better than the moment does,
# and the times are then much less certain. Scores of frames are below 0 even
# while the event happens: their order within a video is what counts.
#
# **More.** :doc:`from video files to event detectors </guide/video>`
