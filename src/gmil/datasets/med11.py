"""Video frames as word histograms, with hidden witnesses of events: data of the size of TRECVID MED11, made to order.

TRECVID MED11 itself is under licence. The paper's experiment on it has 813 videos of five events, millions of frames
and 1000 numbers a frame; what is made here has the same shape and nothing else of it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.bags import tables
from gmil.bags.parquet_files import parquet_writer
from gmil.safety.atomic import new_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

_WORDS_PER_FRAME = 60
_SCENES = 40
_SCENES_PER_VIDEO = 5
_WORDS_OF_A_SCENE = 0.3
_WORDS_OF_AN_ACTION = 0.3
_ACTIONS_ALONE = 0.7
_FRAMES_AT_ONCE = 8192


class _World(NamedTuple):
    """What all videos share: words of every scene and of every action, as distributions."""

    scenes: Floats  # (n_scenes, n_features), cumulative
    actions: Floats  # (n_events + 1, n_features), cumulative; an event is an action together with the next


def make_med11(
    path: str | os.PathLike[str],
    *,
    n_bags: int = 813,
    n_instances: int = 2_600_000,
    n_features: int = 1000,
    n_events: int = 5,
    witness_rate: float = 0.05,
    n_files: int = 16,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write bags of word histograms to a folder of Parquet files, one video at a time.

    A video shows a few scenes, each with words of its own. An event is two actions at once, in a stretch of frames;
    either action alone is seen in other stretches, of videos of all events, so that no word gives an event away. A
    frame is a histogram of 60 words, most of its numbers zero, that adds up to 1. Columns: ``bag``, ``label`` (E001,
    E002 ...), ``witness`` (whether a frame shows the event) and ``features``. Bags lie one after the other and never in
    two files. The folder appears when it is complete.

    Parameters
    ----------
    path : path
        The folder; one that exists is refused.
    n_bags, n_instances, n_features, n_events : int
        Videos, frames in all, words, and events. A video takes one event.
    witness_rate : float
        The share of frames that show the event of their video, at least one.
    n_files : int
        Files in the folder.
    random_state : int
        The seed; a video does not depend on how many files there are.
    progress : callable, optional
        Called with the number of frames written and of all.
    """
    sizes = _sizes(n_bags, n_instances, np.random.default_rng([random_state, 0]))
    world = _make_world(n_features, n_events, np.random.default_rng([random_state, 1]))
    shares = np.array_split(np.arange(n_bags), min(n_files, n_bags))
    written = 0
    with new_folder(Path(path)) as folder:
        for number, share in enumerate(shares):
            with _writer(folder / f"part-{number:03d}.parquet", n_features) as write:
                for bag in share.tolist():
                    size, event = int(sizes[bag]), bag % n_events
                    generator = np.random.default_rng([random_state, 2, bag])
                    frames, shows_event = _video(world, size, event, witness_rate, generator)
                    write(f"video{bag:06d}", f"E{event + 1:03d}", frames, shows_event)
                    written += size
                    if progress is not None:
                        progress(written, n_instances)


def _sizes(n_bags: int, n_instances: int, generator: np.random.Generator) -> Integers:
    if not 1 <= n_bags <= n_instances:
        msg = f"n_instances={n_instances} must be at least n_bags={n_bags}, which must be at least 1."
        raise ValueError(msg)
    shares = generator.lognormal(0, 0.6, size=n_bags)
    return 1 + generator.multinomial(n_instances - n_bags, shares / shares.sum())


def _make_world(n_features: int, n_events: int, generator: np.random.Generator) -> _World:
    common = 1 / np.arange(1, n_features + 1) ** 0.8  # few words are frequent, most are rare
    common /= common.sum()
    scenes = [_mixed(common, _WORDS_OF_A_SCENE, generator) for _ in range(_SCENES)]
    actions = [_mixed(common, 0.8, generator) for _ in range(n_events + 1)]
    return _World(np.cumsum(scenes, axis=1), np.cumsum(actions, axis=1))


def _mixed(common: Floats, share: float, generator: np.random.Generator) -> Floats:
    """Return a distribution of words of which a share is its own: a few dozen words, at random."""
    own = generator.dirichlet(np.full(len(common), 0.02))
    mixed: Floats = (1 - share) * common + share * own
    return mixed


def _video(
    world: _World, size: int, event: int, rate: float, generator: np.random.Generator
) -> tuple[NDArray[np.float32], Booleans]:
    """Return the frames of a video, (n_frames, n_features), and which of them show its event."""
    actions = _actions(size, event, len(world.actions) - 1, rate, generator)
    return _frames(world, actions, generator), actions[0] < actions[1]


def _actions(size: int, event: int, n_events: int, rate: float, generator: np.random.Generator) -> Integers:
    """Return the two actions of every frame, (2, n_frames): -1 for none, the same twice for one alone."""
    actions = np.full((2, size), -1, dtype=np.int64)
    length = min(size, max(1, round(rate * size)))
    for action in generator.permutation(n_events + 1):
        if generator.random() < _ACTIONS_ALONE:
            actions[:, _stretch(size, length, generator)] = action
    actions[:, _stretch(size, length, generator)] = [[event], [event + 1]]
    return actions


def _stretch(size: int, length: int, generator: np.random.Generator) -> slice:
    start = int(generator.integers(size - length + 1))
    return slice(start, start + length)


def _frames(world: _World, actions: Integers, generator: np.random.Generator) -> NDArray[np.float32]:
    size, n_features = actions.shape[1], world.scenes.shape[1]
    shown = generator.integers(len(world.scenes), size=_SCENES_PER_VIDEO)
    scene_of = shown[np.arange(size) * _SCENES_PER_VIDEO // size]
    frames = np.empty((size, n_features), dtype=np.float32)
    for start in range(0, size, _FRAMES_AT_ONCE):
        part = slice(start, min(start + _FRAMES_AT_ONCE, size))
        words = _draw_words(world, scene_of[part], actions[:, part], generator)
        places = np.arange(len(words))[:, None] * n_features + words
        counts = np.bincount(places.ravel(), minlength=len(words) * n_features)
        frames[part] = counts.reshape(len(words), n_features) / np.float32(_WORDS_PER_FRAME)
    return frames


def _draw_words(world: _World, scenes: Integers, actions: Integers, generator: np.random.Generator) -> Integers:
    """Return the words of frames, (n_frames, words per frame): of the scene, of the one action or of the other."""
    draws = generator.random((len(scenes), _WORDS_PER_FRAME))
    words = np.empty(draws.shape, dtype=np.int64)
    for scene in np.unique(scenes):
        rows = scenes == scene
        words[rows] = np.searchsorted(world.scenes[scene], draws[rows])
    kinds = generator.random(draws.shape) // _WORDS_OF_AN_ACTION  # 0 and 1: of the first and of the second action
    for kind, shown in enumerate(actions):
        for action in np.unique(shown[shown >= 0]):
            here = (kinds == kind) & (shown == action)[:, None]
            words[here] = np.searchsorted(world.actions[action], generator.random(int(here.sum())))
    return np.minimum(words, world.scenes.shape[1] - 1)


# -------------------------------------------------------------------------------- writing


@contextlib.contextmanager
def _writer(path: Path, n_features: int) -> Iterator[Callable[..., None]]:
    """Yield a function that appends one bag to a Parquet file, as a row group of its own."""
    empty = _bag_table("", "", np.empty((0, n_features), dtype=np.float32), np.empty(0, dtype=bool))
    # Without a dictionary, and with a light compression, features are read twice as fast.
    how = {"compression": "lz4", "use_dictionary": ["bag", "label"]}
    with parquet_writer(path, empty.schema, **how) as writer:

        def write(bag: str, label: str, frames: Floats, shows_event: Booleans) -> None:
            table = _bag_table(bag, label, frames, shows_event)
            writer.write_table(table, row_group_size=max(1, table.num_rows))

        yield write


def _bag_table(bag: str, label: str, frames: Floats, shows_event: Booleans) -> pa.Table:
    size = len(frames)
    columns = {"bag": np.full(size, bag, dtype=object), "label": np.full(size, label, dtype=object)}
    if size == 0:
        columns = {name: np.empty(0, dtype=np.str_) for name in columns}
    return tables.to_list_table({**columns, "witness": shows_event}, frames, None)
