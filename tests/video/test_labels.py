"""Which label belongs to which video, where names are not the same."""

from __future__ import annotations

import numpy as np
import pytest

from gmil import Bags
from gmil.errors import GmilError
from gmil.video import label_folds, match_labels, read_event_labels
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


def labels_file(tmp_path, text, name="labels.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_groups_are_a_column_of_the_labels_or_another_file(tmp_path):
    rows = "video,event,camera\na.mp4,jump,c1\nb.mp4,,c1\nc.mp4,jump,c2\nc.mp4,fall,c2\n"
    labels = labels_file(tmp_path, rows)
    by_column = read_event_labels(labels, group="camera")
    assert by_column.groups == {"a.mp4": "c1", "b.mp4": "c1", "c.mp4": "c2"}
    assert by_column.events == ["fall", "jump"]
    other = labels_file(tmp_path, "video,group\na.mp4,x\nb.mp4,x\nc.mp4,y\n", "groups.csv")
    bags = Bags.from_list([np.zeros((2, 1))] * 3, bag_ids=["c.mp4", "a.mp4", "b.mp4"])
    assert match_labels(bags, read_event_labels(labels, group=other)).groups.tolist() == ["y", "x", "x"]
    assert match_labels(bags, read_event_labels(labels)).groups is None


def test_a_group_column_of_zeros_and_ones_is_no_event(tmp_path):
    labels = labels_file(tmp_path, "video,jump,place\na,1,0\nb,0,1\n")
    found = read_event_labels(labels, group="place")
    assert (found.events, found.groups) == (["jump"], {"a": "0", "b": "1"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("video,event,camera\na,jump,c1\nb,,\n", "Line 3 of .* has no group for b"),
        ("video,event,camera\na,jump,c1\na,fall,c2\nb,,c1\n", "Line 3 of .* has a in group c2, a line before in c1"),
        ("video,event\na,jump\nb,\n", "group must be a column of .*, or a CSV file .* got 'camera'"),
    ],
)
def test_groups_that_do_not_fit_are_refused(tmp_path, text, message):
    with pytest.raises(GmilError, match=message):
        read_event_labels(labels_file(tmp_path, text), group="camera")


def test_a_video_without_a_group_is_named(tmp_path):
    labels = labels_file(tmp_path, "video,event\na,jump\nb,\n")
    groups = labels_file(tmp_path, "video,group\na,x\n", "groups.csv")
    bags = Bags.from_list([np.zeros((2, 1))] * 2, bag_ids=["a", "b"])
    with pytest.raises(GmilError, match="group names no group for 1 of 2 videos: b"):
        match_labels(bags, read_event_labels(labels, group=groups))


def test_folds_keep_groups_whole():
    y = np.tile([[1], [0]], (20, 1))
    groups = np.repeat(np.arange(10), 4).astype(str)
    folds = label_folds(y, 5, 0, groups)
    assert all(len(set(folds[groups == group])) == 1 for group in set(groups))
    assert set(folds) == set(range(5))
