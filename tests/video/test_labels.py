"""Which label belongs to which video, where names are not the same."""

from __future__ import annotations

import numpy as np
import pytest

from gmil import Bags
from gmil.video import match_labels
from gmil.video.labels import EventLabels


@pytest.mark.parametrize(
    ("videos", "labelled", "kept"),
    [
        (["a/k.mp4", "b/k.mp4", "c.mp4"], ["a/k.mp4", "c.mp4"], ["a/k.mp4", "c.mp4"]),
        (["a/k.mp4", "b/k.mp4", "c.mp4", "d.mp4"], ["k.mp4", "c", "d"], ["c.mp4", "d.mp4"]),
        (["k.mp4", "k.avi", "c.mp4", "d.mp4"], ["k", "x/c.mp4", "d"], ["c.mp4", "d.mp4"]),
        (["k.mp4", "k.avi", "c.mp4"], ["k.mp4", "k", "c"], ["k.mp4", "k.avi", "c.mp4"]),
    ],
)
def test_a_label_belongs_to_one_video_only(videos, labelled, kept):
    bags = Bags.from_list([np.full((2, 1), i) for i in range(len(videos))], bag_ids=videos)
    labels = EventLabels(["jump"], {name: {"jump"} if i == 0 else set() for i, name in enumerate(labelled)})
    labels.of_video[labelled[-2]].add("jump")  # whichever is kept, one has the event and one has not
    found = match_labels(bags, labels)
    assert found.bags.bag_ids.tolist() == kept
    left = [name for name in videos if name not in kept]
    assert not left or all(name in found.notes[0] for name in left)
