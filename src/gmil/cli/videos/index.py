"""``gmil video index``: from video files to features of frames."""

from __future__ import annotations

from typing import Any

import click

from gmil.cli.console import Progress, say
from gmil.cli.options import names_in, seed_option
from gmil.cli.videos.shared import choice_option, end_with, settings_of, video, video_jobs
from gmil.errors import count_of, listed


@video.command()
@click.argument("videos", nargs=-1, required=True)
@click.option("-o", "--output", required=True, metavar="PARQUET", help="Where to write the frames.")
@click.option("--vocabulary", metavar="FILE", help="Words to use again, as index wrote them beside its output.")
@click.option("--words", default=1000, show_default=True, help="Size of the vocabulary.")
@click.option("--descriptor", multiple=True, metavar="NAME=VALUE", help="A setting of HOG3D, such as half=True.")
@click.option(
    "--descriptors",
    default="hog3d",
    show_default=True,
    metavar="A,B,...",
    callback=names_in,
    help="What is described: hog3d; hog, hof, mbh, trajectory in boxes along the flow; flow, pyramid of the picture.",
)
@click.option(
    "--encodings",
    default="words",
    show_default=True,
    metavar="A,B,...",
    callback=names_in,
    help="What descriptors of a window become: words, vlad, fisher.",
)
@click.option("--motion", multiple=True, metavar="NAME=VALUE", help="A setting of the flow, such as follow=False.")
@click.option("--centers", default=16, show_default=True, help="Centres of VLAD, Gaussians of Fisher vectors.")
@choice_option("--assignment", "hard", "soft", help="Count a descriptor for its nearest word, or share it among four.")
@click.option("--window", default=15, show_default=True, help="Frames that the histogram of a frame counts.")
@click.option("--every", default=1, show_default=True, help="Keep one histogram in this many frames.")
@click.option("--cuts/--no-cuts", default=True, show_default=True, help="Let descriptors end at cuts.")
@click.option("--rate", default=25.0, show_default=True, help="Frames per second to bring other rates to.")
@click.option("--longest-side", default=320, show_default=True, help="Pixels to bring larger pictures to.")
@seed_option("samples and words")
@video_jobs
def index(videos: tuple[str, ...], output: str, vocabulary: str | None, jobs: int | None, **options: Any) -> None:
    """Turn VIDEOS into a Parquet file with features of frames, by default a word histogram of HOG3D.

    The file holds the VIDEOS that are named, and no others: name the old ones, too, to add new ones. What is indexed
    already is not done again; a video that cannot be read is named, and the rest goes on. The vocabulary is written
    beside the output and used again for new videos.
    """
    from gmil.video import Hog3DSettings, IndexSettings, MotionSettings, Vocabulary, index_videos

    options |= {"n_words": options.pop("words"), "n_centers": options.pop("centers")}
    options["descriptor"] = settings_of(Hog3DSettings, "HOG3D", options["descriptor"])
    options["motion"] = settings_of(MotionSettings, "The flow", options["motion"])
    words = None if vocabulary is None else Vocabulary.load(vocabulary)
    stages: dict[str, Progress] = {}

    def progress(what: str, done: int, total: int) -> None:
        stages.setdefault(what, Progress(what))(done, total)
        if done == total:
            stages[what].__exit__()

    result = index_videos(
        videos, output, IndexSettings(**options), vocabulary=words, n_processes=jobs, progress=progress
    )
    how = "learned" if result.learned else "used again"
    what = f"{len(result.vocabulary.words)} words"
    if not result.vocabulary.settings.is_hog3d_alone:
        what = ", ".join(f"{block.name} ({block.stop - block.start})" for block in result.vocabulary.blocks)
    say(f"{output}: {count_of(len(result.names), 'video')}; {what} {how}.")
    if result.dropped:
        gone = count_of(len(result.dropped), "video that was in it is not", "videos that were in it are not")
        say(
            f"{output}: {gone} any more: {listed(result.dropped)}. "
            "Name all videos to keep them: what is indexed already is not done again."
        )
    end_with(result.failures)
