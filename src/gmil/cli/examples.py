"""What ``--help`` shows of every command besides its options: one line in the list, and two examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import click


class Help(NamedTuple):
    """A summary that fits into a line of 80 columns, and examples that can be typed as they stand."""

    summary: str
    examples: tuple[str, ...]


HELP = {
    "gmil": Help("", ("gmil compare bags.csv", "gmil fit bags.csv -o model.gmil")),
    "gmil benchmark": Help(
        "Measure many methods on many sets.",
        ("gmil benchmark run leaderboard.toml", "gmil benchmark verify leaderboard.toml"),
    ),
    "gmil benchmark run": Help(
        "Measure the cells that are missing.",
        (
            "gmil benchmark run leaderboard.toml --minutes 60",
            "gmil benchmark run leaderboard.toml --methods gmil,mi-fv --sets musk1",
        ),
    ),
    "gmil benchmark verify": Help(
        "Recompute every figure from the records.",
        ("gmil benchmark verify leaderboard.toml", "gmil benchmark verify leaderboard.toml -o records"),
    ),
    "gmil benchmark show": Help(
        "Print the leaderboard.",
        ("gmil benchmark show leaderboard.toml", "gmil benchmark show leaderboard.toml -o records"),
    ),
    "gmil benchmark page": Help(
        "Write the leaderboard as a page.",
        ("gmil benchmark page leaderboard.toml", "gmil benchmark page leaderboard.toml --page page.html"),
    ),
    "gmil check": Help(
        "Can results on these data be trusted?",
        ("gmil check bags.csv --group patient -o page.html", "gmil check new.csv --model model.gmil"),
    ),
    "gmil compare": Help(
        "Compare methods, and write a report.",
        ("gmil compare bags.csv --quick", "gmil compare bags.csv --missing median -o run"),
    ),
    "gmil cv": Help(
        "Cross-validate one method.",
        ("gmil cv musk1 --repeats 5 -o page.html", "gmil cv bags.parquet --method miGraph --group patient"),
    ),
    "gmil data": Help("List, describe and convert data.", ("gmil data list", "gmil data info bags.csv")),
    "gmil data list": Help("List the data sets by name.", ("gmil data list", "gmil data list --json")),
    "gmil data show": Help(
        "Show the card of a data set: source, licence, defects of copies.",
        ("gmil data show musk1", "gmil data show birds_brown_creeper"),
    ),
    "gmil data info": Help(
        "Describe data: bags, instances, sizes, classes.",
        ("gmil data info musk1", "gmil data info molecules.csv --bag molecule --label active"),
    ),
    "gmil data convert": Help(
        "Write data in another format.",
        ("gmil data convert musk1 musk1.csv", "gmil data convert bags.csv bags.parquet --exclude 'id_*'"),
    ),
    "gmil data make": Help(
        "Generate data.",
        ("gmil data make med11 -o frames", "gmil data make slides -o slides --layout clam"),
    ),
    "gmil data make med11": Help(
        "Generate frames of videos.",
        ("gmil data make med11 -o frames", "gmil data make med11 -o small --bags 50 --instances 20000"),
    ),
    "gmil data make slides": Help(
        "Generate slides with known tumour regions.",
        ("gmil data make slides -o slides", "gmil data make slides -o slides --layout stamp --slides 20"),
    ),
    "gmil doctor": Help(
        "Show versions, backend, threads and folders.",
        ("gmil doctor", "gmil doctor --json"),
    ),
    "gmil explain": Help(
        "Explain the prediction for one bag.",
        ("gmil explain model.gmil bags.csv --bag m17", "gmil explain model.gmil bags.csv --bag m17 --top 3 --json"),
    ),
    "gmil fit": Help(
        "Fit a method, and save the model.",
        (
            "gmil fit bags.csv -o model.gmil",
            "gmil fit bags.csv --features 'desc_*' --missing median -o model.gmil",
        ),
    ),
    "gmil methods": Help(
        "List all methods, or the parameters of one.",
        ("gmil methods", "gmil methods weighted-gmil"),
    ),
    "gmil paper": Help(
        "Measure the paper's tables and figures again.",
        ("gmil paper table1 --quick", "gmil paper all --output run"),
    ),
    "gmil paper all": Help(
        "Every table and figure, and the report.",
        ("gmil paper all --quick", "gmil paper all --output run --jobs 4"),
    ),
    "gmil paper figure7": Help(
        "Accuracy over K, q and p on Musk2.",
        ("gmil paper figure7 --quick", "gmil paper figure7 --output run"),
    ),
    "gmil paper figure9": Help(
        "Seconds over the number of bags.",
        ("gmil paper figure9", "gmil paper figure9 --output run"),
    ),
    "gmil paper table1": Help(
        "Accuracy on the paper's data sets.",
        ("gmil paper table1 --quick", "gmil paper table1 --methods GMIL,miGraph --output run"),
    ),
    "gmil paper table2": Help(
        "Seconds of a 10-fold cross-validation.",
        ("gmil paper table2 --quick", "gmil paper table2 --output run"),
    ),
    "gmil paper table3": Help(
        "Events in videos, one against all others.",
        ("gmil paper table3", "gmil paper table3 --output run"),
    ),
    "gmil paper theory": Help(
        "Theorem 1 and the lemmas, measured.",
        ("gmil paper theory", "gmil paper theory --output run"),
    ),
    "gmil predict": Help(
        "Predict bags with a saved model.",
        ("gmil predict model.gmil new.csv -o predictions.csv", "gmil predict model.gmil new.csv --instances"),
    ),
    "gmil report": Help(
        "Write the page of a run, or of a model and data.",
        ("gmil report gmil-compare", "gmil report model.gmil bags.csv -o page.html"),
    ),
    "gmil score": Help(
        "Score a saved model on bags with labels.",
        ("gmil score model.gmil test.csv", "gmil score model.gmil test.csv --group patient --json"),
    ),
    "gmil slides": Help(
        "Map where in slides the scores are high.",
        ("gmil slides heatmap model.gmil slides -o maps", "gmil slides heatmap model.gmil s.parquet -o m --smooth"),
    ),
    "gmil slides heatmap": Help(
        "Maps of patches: PNG, GeoJSON, CSV, and a page.",
        (
            "gmil slides heatmap model.gmil slides -o maps",
            "gmil slides heatmap model.gmil slides -o maps --slides scans --scale cohort",
        ),
    ),
    "gmil video": Help(
        "Detect events in videos, and when they happen.",
        ("gmil video index clips/*.mp4 -o frames.parquet", "gmil video detect detectors.gmil new.mp4"),
    ),
    "gmil video cv": Help(
        "Cross-validate detectors of events.",
        ("gmil video cv frames.parquet --labels events.csv", "gmil video cv frames.parquet --labels e.csv --json"),
    ),
    "gmil video detect": Help(
        "Detect which events videos show, and when.",
        ("gmil video detect detectors.gmil new.mp4", "gmil video detect detectors.gmil new.mp4 --html page.html"),
    ),
    "gmil video index": Help(
        "Turn videos into features, a row per frame.",
        ("gmil video index clips/*.mp4 -o frames.parquet", "gmil video index one.mp4 two.mp4 -o frames.parquet"),
    ),
    "gmil video score": Help(
        "Score detectors frame by frame.",
        (
            "gmil video score detectors.gmil i3d --annotations test.txt",
            "gmil video score model.gmil test.list --annotations test.txt --json",
        ),
    ),
    "gmil video train": Help(
        "Train a detector for every event.",
        (
            "gmil video train frames.parquet --labels events.csv -o detectors.gmil",
            "gmil video train frames.parquet --labels e.csv -o d.gmil --balanced",
        ),
    ),
    "gmil video watch": Help(
        "Print events of a camera as they happen.",
        ("gmil video watch detectors.gmil rtsp://camera/stream", "gmil video watch detectors.gmil a.mp4 --realtime"),
    ),
}


def commands_of(command: click.Command, path: str = "gmil") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, each with the words that call it."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, f"{path} {name}")


def add_help(command: click.Command, path: str) -> None:
    """Give a command, which the words of ``path`` call, and all below it what `HELP` has of them."""
    for inner_path, inner in commands_of(command, path):
        describe(inner, inner_path)


def describe(command: click.Command, path: str) -> None:
    """Give one command its summary, its examples and ``-h``."""
    # click keeps the help option of a command's first call, so that it must not depend on the group above.
    command.context_settings["help_option_names"] = ["-h", "--help"]
    known = HELP.get(path)
    if known is not None:
        command.short_help = known.summary or None
        command.epilog = "\n".join(["\b", "Examples:", *(f"  {example}" for example in known.examples)])
