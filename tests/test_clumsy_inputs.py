"""Clumsy inputs, as people have them: one sentence each with the place and the remedy, and the right exit code."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import gmil
from gmil.cli.main import main

HEAD = "bag,label,width,height"
BAGS = [f"m{bag},{bag % 2}" for bag in range(12) for _ in range(2)]
GOOD = [HEAD, *(f"{bag},{0.5 * i},{i * i % 7}" for i, bag in enumerate(BAGS))]


def edited(line, text):
    """Return the good table with another text in one line; line 1 has the names."""
    return [*GOOD[: line - 1], text, *GOOD[line:]]


def column(name, values):
    """Return the good table with one more column; values are repeated."""
    return [f"{HEAD},{name}", *(f"{row},{values[i % len(values)]}" for i, row in enumerate(GOOD[1:]))]


TABLES = {
    "good": GOOD,
    "blank": edited(4, "m1,1,,2"),
    "comma": [HEAD.replace(",", ";"), *(row.replace(",", ";").replace(".", ",") for row in GOOD[1:])],
    "mixed": [HEAD.replace(",", ";"), *(f"{bag.replace(',', ';')};0,5;{i}.5" for i, bag in enumerate(BAGS))],
    "slip": edited(5, "m1,1,1..5,2"),
    "infinite": edited(5, "m1,1,inf,2"),
    "huge": edited(5, "m1,1,1e200,2"),
    "headless": GOOD[1:2] and [row.replace("m", "") for row in GOOD[1:]],
    "bare": GOOD[:1],
    "twice": [HEAD.replace("height", "width"), *GOOD[1:]],
    "anonymous": [row.partition(",")[2] for row in GOOD],
    "ambiguous": [row.replace("bag,", "bag_id,") + (",bag_name" if i == 0 else ",x") for i, row in enumerate(GOOD)],
    "varies": edited(3, "m0,1,1,2"),
    "unlabelled": edited(4, "m1,,1,2"),
    "one-class": [row.replace(",1,", ",0,") for row in GOOD],
    "fractions": [HEAD, *(f"{bag.partition(',')[0]},0.{i // 2 + 1},1,2" for i, bag in enumerate(BAGS))],
    "three": [HEAD, *(f"m{i},{'abc'[i % 3]},{i},2" for i in range(12))],
    "rare": [HEAD, *(f"m{i},{int(i == 0)},{i},2" for i in range(12))],
    "words": [row.replace(",1,", ",yes,").replace(",0,", ",no,") for row in GOOD],
    "texts": [HEAD, *(f"{bag},red,blue" for bag in BAGS)],
    "group-gap": column("site", ["A", "A", "", ""]),
    "group-varies": column("site", ["A", "B"]),
    "one-site": column("site", ["A"]),
    "lost": [HEAD, *(f"m{i},{i % 2},{'' if i == 3 else i},2" for i in range(12))],
    "hollow": [HEAD, *(f"{bag},," for bag in BAGS)],
    "ragged": [*GOOD, "m0,0,1"],
    "narrow": [row.rpartition(",")[0] for row in GOOD],
    "wordy": edited(5, "m1,1,tall,2"),
    "bagged": [",".join([row.split(",")[0], *row.split(",")[2:]]) for row in GOOD],
    "strange": [row.replace(",1,", ",7,") for row in GOOD],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all the files, and a model of the good table."""
    folder = tmp_path_factory.mktemp("clumsy")
    for name, lines in TABLES.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "empty.csv").touch()
    (folder / "utf16.csv").write_bytes("\n".join(GOOD).encode("utf-16"))
    (folder / "latin.csv").write_bytes("\n".join([HEAD.replace("height", "höhe"), *GOOD[1:]]).encode("latin-1"))
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 4)
    (folder / "sheet.xlsx").write_bytes(b"PK\x03\x04 no table")
    (folder / "broken.parquet").write_bytes(b"PAR1 broken PAR1")
    (folder / "void").mkdir()
    (folder / "slides").mkdir()
    np.save(folder / "slides/s1.npy", np.ones((2, 2)))
    np.save(folder / "slides/s2.npy", np.ones((2, 3)))
    for name, n_lines in (("wards", 7), ("rooms", 8)):
        (folder / name).mkdir()
        for i in range(8):
            np.save(folder / name / f"s{i}.npy", np.full((2, 2), i))
        lines = ["bag,label,ward", *(f"s{i},{i % 2},w{i // 2}" for i in range(n_lines))]
        (folder / name / "labels.csv").write_text("\n".join(lines))
    frame = pd.read_csv(folder / "good.csv")
    model = gmil.GMIL(4, random_state=0).fit(*gmil.read(frame))
    model.save(folder / "model.gmil")
    (folder / "damaged.gmil").write_bytes((folder / "model.gmil").read_bytes()[:-40])
    return folder


CLUMSY = [
    # what, words, arguments, and what is said
    ("no such file", "cv nosuch.csv", "There is no file 'nosuch.csv', and no data set of that name"),
    ("an Excel file", "cv {}/sheet.xlsx", "the suffix '.xlsx' is not known; known are .parquet, .csv"),
    ("an empty file", "cv {}/empty.csv", "empty.csv is empty; at least one bag is needed"),
    ("names alone", "cv {}/bare.csv", "has a line of names but no instances below it"),
    ("no names", "cv {}/headless.csv", "where the names of its columns should be. Add a first line such as"),
    ("bytes", "cv {}/binary.csv", "binary.csv"),
    ("UTF-16", "cv {}/utf16.csv", "utf16.csv"),
    ("Latin-1", "cv {}/latin.csv", "latin.csv"),
    ("a broken Parquet file", "cv {}/broken.parquet", "broken.parquet"),
    ("a line too short", "cv {}/ragged.csv", "ragged.csv"),
    ("an empty folder", "cv {}/void", "void holds no .npy, .npz, .parquet files"),
    ("slides of two widths", "cv {}/slides", "s2.npy"),
    ("a slide without a label", "cv {}/wards", "has no label for bag s7. Every file of the folder needs a line."),
    ("a column twice", "cv {}/twice.csv", "The column 'width' is there twice. Every column needs a name"),
    ("no bag column", "cv {}/anonymous.csv", "No bag column was found; the columns are 'label', 'width', 'height'"),
    ("two bag columns", "cv {}/ambiguous.csv", "'bag_id' and 'bag_name' could each be it. Name it with --bag."),
    ("a wrong --bag", "cv {}/good.csv --bag video", "The bag column 'video' is not there; the columns are 'bag'"),
    ("a wrong --label", "cv {}/good.csv --label y", "The label column 'y' is not there"),
    ("a wrong --features", "cv {}/good.csv --features a,b", "The features column 'a' is not there"),
    ("a pattern of nothing", "cv {}/good.csv --features desc_*", "The features column 'desc_*' is not there"),
    ("a wrong --exclude", "cv {}/good.csv --exclude depth", "Name another with --exclude."),
    ("everything left out", "cv {}/good.csv --exclude *", "no number column is left beside the bag and the label"),
    ("texts alone", "cv {}/texts.csv", "No features column was found"),
    ("a wrong --group", "cv {}/good.csv --group site", "Name another with --group."),
    ("a bag without a group", "cv {}/group-gap.csv --group site", "The group 'site' of bag 1 (m1) is missing"),
    ("a bag of two groups", "cv {}/group-varies.csv --group site", "must be one for all instances of a bag, but bag 0"),
    ("one group", "cv {}/one-site.csv --group site --folds 2", "--folds 2"),
    (
        "a group that labels.csv lacks",
        "cv {}/rooms --group bed",
        "The group column 'bed' is not there; the columns are",
    ),
    ("groups in blocks", "cv {}/good.csv --group site --stream", "--stream and --dask read blocks. Leave out one."),
    ("a CSV file in blocks", "cv {}/good.csv --stream", "only Parquet files and folders can. Convert it, or leave out"),
    ("two labels in a bag", "cv {}/varies.csv", "The label of bag 'm0' varies: 0 and 1 (row 1)"),
    ("a bag without a label", "cv {}/unlabelled.csv", "The label of bag 'm1' is missing (row 2; 1 row has none)."),
    ("one class", "cv {}/one-class.csv", "one class only"),
    (
        "labels that are measurements",
        "cv {}/fractions.csv --method gmil",
        "got fractions such as 0.1. Turn them into classes first.",
    ),
    ("a class with one bag", "compare {}/rare.csv -o {}/out", "class 1 has a single bag. Add bags, or leave it out."),
    ("blank cells", "cv {}/blank.csv", "in bag 1 (m1), instance 0, column 0 (width)"),
    ("blank cells, compared", "compare {}/blank.csv -o {}/out", "Fill them with --missing median"),
    ("blank cells, predicted", "predict {}/model.gmil {}/blank.csv", "or fit the model with --missing median"),
    ("a bag of gaps", "cv {}/lost.csv --missing drop --folds 2", "no others: bag"),
    ("nothing but gaps", "fit {}/hollow.csv --missing median -o {}/x.gmil", "All 2 features are empty"),
    ("a wrong --missing", "cv {}/blank.csv --missing mean", "'mean' is not one of 'median', 'drop', 'error'"),
    (
        "decimal commas",
        "cv {}/comma.csv",
        "holds '0,0', a number with a decimal comma. Read the file with --decimal ,.",
    ),
    (
        "commas and points",
        "cv {}/mixed.csv --decimal ,",
        "the column 'height' holds '0.5', a number with a decimal point.",
    ),
    ("a mistyped cell", "cv {}/slip.csv", "slip.csv, line 5: the column 'width' holds '1..5' where a number should be"),
    ("infinity", "cv {}/infinite.csv", "X contains infinity: in bag 1 (m1), instance 1, column 0 (width)"),
    ("infinity, compared", "compare {}/infinite.csv --missing median -o {}/out", "X contains infinity: in bag 1 (m1)"),
    ("a number too large", "cv {}/huge.csv", "X contains a value that is too large: 1e+200 in bag 1 (m1)"),
    ("no such method", "cv {}/good.csv --method magic", "There is no method 'magic'; the methods are abmil, "),
    ("a name of two methods", "cv {}/good.csv --method mi-svm", "could be mi-svm-instance or mi-svm-witness"),
    ("no such parameter", "cv {}/good.csv --set clusters=3", "has no parameter 'clusters'; its parameters are"),
    ("a setting without a value", "cv {}/good.csv --set scale", "--set takes NAME=VALUE, got 'scale'."),
    ("a value out of range", "fit {}/good.csv --set n_points=0 -o {}/x.gmil", "'n_points' parameter of WeightedGMIL"),
    ("too many folds", "cv {}/good.csv --folds 7", "--folds 7 is too many folds: class 0 has 6 bags."),
    ("one fold", "cv {}/good.csv --folds 1", "--folds must be at least 2, got 1."),
    ("no repeats", "cv {}/good.csv --repeats 0", "--repeats must be a whole number and at least 1, got 0."),
    ("no processes", "cv {}/good.csv --jobs 0", "--jobs must be a number of processes, or -1"),
    ("a negative seed", "cv {}/good.csv --seed -1", "--seed must be a whole number from 0"),
    ("a wrong --positive", "cv {}/words.csv --positive maybe", "its labels are no, yes."),
    ("a positive of three", "cv {}/three.csv --positive a", "names the positive class of two, but the data has 3"),
    ("the paper's settings of others", "cv {}/good.csv --paper --method nsk", "--paper gives the settings of gmil"),
    ("no such model", "predict {}/nosuch.gmil {}/good.csv", "nosuch.gmil does not exist. Check the name"),
    ("data as a model", "predict {}/good.csv {}/good.csv", "good.csv is not a gmil model"),
    ("half a model", "predict {}/damaged.gmil {}/good.csv", "damaged.gmil is not a gmil model, or it is damaged"),
    ("a column too few", "predict {}/model.gmil {}/narrow.csv", "1 of them are not there: 'height'; the columns are"),
    ("a word where a number was", "predict {}/model.gmil {}/wordy.csv", "line 5: the column 'width' holds 'tall'"),
    ("a strange output", "predict {}/model.gmil {}/good.csv -o {}/p.xls", "must be a .csv or .parquet file, got"),
    ("no folder for it", "predict {}/model.gmil {}/good.csv -o {}/no/p.csv", "cannot be written"),
    ("output over input", "predict {}/model.gmil {}/good.csv -o {}/good.csv", "good.csv"),
    ("no labels to score with", "score {}/model.gmil {}/bagged.csv", "bagged.csv has no labels. Name the label column"),
    ("other labels", "score {}/model.gmil {}/strange.csv", "which the model does not know; its classes are 0, 1."),
    ("no such bag", "explain {}/model.gmil {}/good.csv --bag m99", "There is no bag 'm99'; the bags are m0, m1, "),
    (
        "a page as a picture",
        "report {}/model.gmil {}/good.csv -o {}/page.png",
        "is written as .html, .md or .json, got",
    ),
    ("no such run", "report {}/nosuch", "nosuch"),
    ("no such command", "predicts {}/model.gmil {}/good.csv", "No such command 'predicts'"),
    ("nothing to work on", "cv", "Missing argument 'DATA...'"),
]


@pytest.mark.parametrize(("words", "said"), [case[1:] for case in CLUMSY], ids=[case[0] for case in CLUMSY])
def test_clumsy_input_is_one_sentence_with_place_and_remedy(place, words, said):
    before = sorted(place.rglob("*"))
    result = CliRunner().invoke(main, [word.replace("{}", str(place)) for word in words.split()])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    *usage, last = result.stderr.splitlines()
    assert said in last
    assert last.startswith("Error: " if usage and usage[0].startswith("Usage: ") else "gmil: ")
    assert not usage or usage[0].startswith("Usage: ")
    assert last.endswith((".", "?"))
    assert sorted(place.rglob("*")) == before


def test_there_are_sixty_of_them():
    assert len({case[0] for case in CLUMSY}) == len(CLUMSY) >= 60
