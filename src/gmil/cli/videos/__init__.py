"""``gmil video``: from video files to event detectors."""
