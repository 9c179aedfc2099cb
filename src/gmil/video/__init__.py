"""From video files to event detectors: HOG3D, visual words, frames as instances, videos as bags.

Decoding needs PyAV (``pip install 'gmil[video]'``); everything that works on features of frames does not.
"""

from __future__ import annotations

from gmil.video.crossval import EventCV, bags_for_folds, cross_validate_events, label_folds
from gmil.video.decoding import read_frames, video_info
from gmil.video.detection import Detection, detect
from gmil.video.events import EventDetectors
from gmil.video.exports import write_events
from gmil.video.features import read_features
from gmil.video.hog3d import Hog3DSettings, hog3d
from gmil.video.indexing import IndexResult, index_videos, vocabulary_of
from gmil.video.labels import EventLabels, match_labels, read_event_labels
from gmil.video.live import watch
from gmil.video.motion import MotionSettings
from gmil.video.page import write_page
from gmil.video.settings import IndexSettings
from gmil.video.snippets.annotations import read_annotations
from gmil.video.snippets.scoring import score_frames
from gmil.video.timeline import Segment, TimeLine, overlap, segments
from gmil.video.topics import Topics, learn_topics
from gmil.video.vocabulary import Vocabulary, learn_vocabulary

__all__ = [
    "Detection",
    "EventCV",
    "EventDetectors",
    "EventLabels",
    "Hog3DSettings",
    "IndexResult",
    "IndexSettings",
    "MotionSettings",
    "Segment",
    "TimeLine",
    "Topics",
    "Vocabulary",
    "bags_for_folds",
    "cross_validate_events",
    "detect",
    "hog3d",
    "index_videos",
    "label_folds",
    "learn_topics",
    "learn_vocabulary",
    "match_labels",
    "overlap",
    "read_annotations",
    "read_event_labels",
    "read_features",
    "read_frames",
    "score_frames",
    "segments",
    "video_info",
    "vocabulary_of",
    "watch",
    "write_events",
    "write_page",
]
