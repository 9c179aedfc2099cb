"""Files and tables that cannot be read: one clear sentence each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gmil.datasets import make_bags, read, write
from gmil.errors import BagValidationError, FileAccessError, FormatError, GmilError, MissingFileError
from gmil.io import reading

SUFFIXES = (".parquet", ".csv", ".tsv", ".npz", ".data", ".arff", ".mat")
TABLE = {"bag": ["a", "b"], "label": [1, 0], "f": [1.0, 2.0]}


# ---------------------------------------------------------------- any file


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_file(suffix, tmp_path):
    with pytest.raises(MissingFileError, match=r"nothing.* does not exist") as caught:
        read(tmp_path / f"nothing{suffix}")
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_file(suffix, tmp_path):
    (tmp_path / f"empty{suffix}").touch()
    with pytest.raises(FormatError, match=r"empty.* is empty"):
        read(tmp_path / f"empty{suffix}")


@pytest.mark.parametrize("name", ["folder", "folder.parquet"])
def test_folder(name, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(MissingFileError, match=r"holds no \.npy, \.npz, \.parquet files"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["bags.xlsx", "bags", "bags.pkl"])
def test_unknown_suffix(name, tmp_path):
    (tmp_path / name).write_text("x")
    with pytest.raises(FormatError, match=r"suffix '.*' is not known; known are \.parquet, \.csv"):
        read(tmp_path / name)


def test_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "bags.csv"
    path.write_text("bag,f\na,1\n")

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading.Path, "open", refuse)
    with pytest.raises(FileAccessError, match="cannot be opened: Permission denied"):
        read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("junk", [b"\x00" * 300, b"\xff\xfe\x00 junk" * 50, b"hello\n", b"\n\n"])
def test_junk(suffix, junk, tmp_path):
    path = tmp_path / f"junk{suffix}"
    path.write_bytes(junk)
    with pytest.raises((FormatError, BagValidationError), match=r"junk\."):
        read(path)


@pytest.fixture(scope="module")
def good_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    bags, y = make_bags(4, n_features=3, bag_size=(1, 4), random_state=0, return_X_y=True)
    for suffix in SUFFIXES:
        write(folder / f"good{suffix}", bags, y)
    sparse = bags.with_instances(sp.csr_array(np.where(bags.instances > 1, bags.instances, 0)))
    for suffix in (".npz", ".mat", ".arff"):
        write(folder / f"sparse{suffix}", sparse, y)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("name", ["good.parquet", "good.npz", "good.mat", "sparse.mat"])
def test_truncated_binary_file(name, share, good_files, tmp_path):
    path = tmp_path / name
    path.write_bytes(good_files[name][: int(share * len(good_files[name]))])
    with pytest.raises(FormatError, match=f"{name}.*(damaged|cannot be read)"):
        read(path)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_files_never_end_in_a_foreign_error(data, good_files, tmp_path):
    name = data.draw(st.sampled_from(sorted(good_files)))
    content = bytearray(good_files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / name
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    message = name  # some damage does not show: a feature is another number
    try:
        read(path)
    except GmilError as error:
        message = str(error)
    assert name in message


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("table", "options", "match"),
    [
        (
            TABLE,
            {"bag": "slide"},
            r"bag column 'slide' is not there; the columns are 'bag', 'label'",
        ),
        (TABLE, {"label": "grade"}, r"label column 'grade' is not there"),
        (TABLE, {"features": ["g"]}, r"features column 'g' is not there"),
        (TABLE, {"info": ["time"]}, r"info column 'time' is not there"),
        (TABLE, {"features": ["f", "label"], "label": "f"}, None),
        (
            {"who": [1], "f": [1.0]},
            {},
            r"No bag column was found; the columns are 'who', 'f'.*bag=",
        ),
        (
            {"bag_id": [1], "bag_name": ["a"], "f": [1.0]},
            {},
            r"bag column is ambiguous: 'bag_id' and",
        ),
        (
            {"bag": [1], "y": [1], "class": [1], "f": [1.0]},
            {},
            r"label column is ambiguous: 'y' and",
        ),
        ({"bag": ["a", "b"], "f": ["x", "y"]}, {}, r"No features column was found"),
        ({"bag": ["a", None], "f": [1.0, 2.0]}, {}, r"Row 1 has no bag id"),
        ({"bag": ["a", ""], "f": [1.0, 2.0]}, {}, r"Row 1 has no bag id"),
    ],
)
def test_tables(table, options, match):
    if match is None:
        assert read(pa.table(table), **options)[1].tolist() == [1, 2]
        return
    with pytest.raises(BagValidationError, match=match):
        read(pa.table(table), **options)


def test_columns_of_one_name():
    table = pa.table([[1], [1.0], [2.0]], names=["bag", "f", "f"])
    with pytest.raises(BagValidationError, match=r"column 'f' is there twice"):
        read(table)


def test_no_rows():
    with pytest.raises(BagValidationError, match="no instances"):
        read(pd.DataFrame({"bag": np.array([], dtype=int), "f": np.array([], dtype=float)}))


def test_mixed_columns_of_a_frame():
    frame = pd.DataFrame({"bag": ["a", "b"], "f": [1.0, 2.0], "odd": pd.Series([1, "x"], dtype=object)})
    with pytest.raises(BagValidationError, match=r"[Tt]able"):
        read(frame)


def test_not_a_table():
    with pytest.raises(BagValidationError, match=r"must be a pandas, polars or pyarrow table.* got int"):
        read(3)


def test_lists_of_other_lengths():
    with pytest.raises(BagValidationError, match=r"Row 1 .* has 1 number, but row 0 has 2"):
        read(pa.table({"bag": ["a", "b"], "features": [[1.0, 2.0], [3.0]]}))


# ---------------------------------------------------------------- text files


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("bag,f\na,1\nb\n", r"bags\.csv cannot be read as CSV: .*Expected 2 columns, got 1"),
        ("bag,f\n", r"names but no instances"),
        ("1,2\n3,4\n", r"begins with numbers, 1, .* bag,label,f0"),
        ("bag,f,f\na,1,2\n", r"column 'f' is there twice"),
        ("bag,f\na,1\na,oops\nb,3\n", r"line 3: the column 'f' holds 'oops' .*1 of 3 cells"),
        ("bag,f\na,1\n,2\n", r"Row 1 has no bag id"),
        (
            "bag,label,f\na,1,1\na,0,2\n",
            r"bags\.csv: The label of bag 'a' varies: 1 and 0 \(row 1\)",
        ),
        ("bag,label,f\na,1,1\na,,2\n", r"label of bag .* is missing \(row 1;"),
        ("who,f\na,1\n", r"No bag column was found"),
        ("bag;f;g\na;1;2\nb;1,5;3\n", r"line 3: the column 'f' holds '1,5', a number with a decimal comma"),
        ("bag;f;g\na;-0,5;2\nb;1,5e-3;3\n", r"line 2: the column 'f' holds '-0,5', a number with a decimal comma"),
    ],
)
def test_csv(text, match, tmp_path):
    (tmp_path / "bags.csv").write_text(text)
    with pytest.raises((FormatError, BagValidationError), match=match):
        read(tmp_path / "bags.csv")


@pytest.mark.parametrize("n_rows", [1, 20_000])
def test_a_text_of_another_encoding_is_told(tmp_path, n_rows):
    rows = "a,no,1\n" * n_rows
    (tmp_path / "bags.csv").write_text(f"bag,label,f\n{rows}b,ou\xe9,2\n", encoding="latin-1")
    with pytest.raises(FormatError, match="Save it as UTF-8"):
        read(tmp_path / "bags.csv")


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("empty", ["", "NA", "nan"])
def test_csv_mostly_empty_text_is_no_column_of_numbers(tmp_path, empty, decimal):
    rows = [f"b{i // 5};{i};{'blurred' if i % 10 == 0 else empty}" for i in range(100)]
    (tmp_path / "bags.csv").write_text("\n".join(["bag;f;note", *rows]))
    bags, _ = read(tmp_path / "bags.csv", decimal=decimal)
    assert bags.feature_names == ("f",)
    assert bags.instance_info.column("note").to_pylist().count("blurred") == 10


def test_csv_slips_are_counted_among_filled_cells(tmp_path):
    cells = ["1.5"] * 6 + ["1..5"] * 2 + ["NA"] * 4 + [""] * 20
    (tmp_path / "bags.csv").write_text("\n".join(["bag,f,g", *(f"b,1,{cell}" for cell in cells)]))
    with pytest.raises(FormatError, match=r"line 8: .* holds '1\.\.5' where a number should be \(2 of 8 cells do\)"):
        read(tmp_path / "bags.csv")


@pytest.mark.parametrize(
    ("cells", "decimal", "fix"),
    [
        (["0.25", "0,5", "0.75", "2"], ".", "Correct the cell"),
        (["0.25", "0,5", "1,5", "2"], ".", "Read the file with decimal=','"),
        (["0.25", "0,5", "1,5", "2"], ",", "Correct the cell"),
        (["0.25", "0,5", "0.75", "2"], ",", "Write all numbers with one decimal sign"),
    ],
)
def test_csv_a_decimal_sign_among_others(tmp_path, cells, decimal, fix):
    """What is recommended leads out: the sign of most cells, or a correction of the few others."""
    (tmp_path / "bags.csv").write_text("\n".join(["bag;f;g", *(f"b{i};1;{cell}" for i, cell in enumerate(cells))]))
    with pytest.raises(FormatError, match=f"a number with a decimal (comma|point). {fix}"):
        read(tmp_path / "bags.csv", decimal=decimal)


def test_csv_named_feature_that_is_text(tmp_path):
    (tmp_path / "bags.csv").write_text("bag,f\na,x\nb,y\n")
    with pytest.raises(FormatError, match=r"line 2: the column 'f' holds 'x' where a number"):
        read(tmp_path / "bags.csv", features=["f"])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b,1\n", r"first line has 3 columns"),
        ("m,c,1,1.\nm,c,x,1.\n", r"line 2: the column 'f1' holds 'x'"),
        ("m,c,1,1.\nm,c,2\n", r"Expected 4 columns, got 3"),
        ("m,c,1,1.\nm,c,2,0.\n", r"label of bag 'm' varies: 1 and 0"),
    ],
)
def test_c45(text, match, tmp_path):
    (tmp_path / "bags.data").write_text(text)
    with pytest.raises((FormatError, BagValidationError), match=match):
        read(tmp_path / "bags.data")


HEAD = "@relation r\n@attribute id {a,b}\n@attribute i relational\n@attribute f numeric\n"
HEAD += "@attribute k {u,v}\n@end i\n@attribute class {0,1}\n@data\n"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (HEAD.replace("@data\n", ""), r"it has no @data"),
        (HEAD, r"it has no bags below @data"),
        (HEAD.replace("@end i\n", ""), r"relational attribute 'i' has no @end"),
        (
            HEAD.replace("numeric", "complex"),
            r"line 4: the attribute 'f' has the unknown type 'complex'",
        ),
        (HEAD.replace("@attribute f", "@attrib f"), r"line 4: '@attrib f numeric' is neither"),
        (HEAD + "a,'1,u'\n", r"line 9 has 2 values, but there are 3 attributes"),
        (HEAD + "a,'1,u\\n2',1\n", r"line 9, instance 1 has 1 value, but there are 2 attributes"),
        (HEAD + "a,'x,u',1\n", r"line 9, instance 0: the attribute 'f' must be a number, got 'x'"),
        (HEAD + "a,'1,w',1\n", r"'w' is none of the values of 'k', u, v"),
        (HEAD + "a,'1,u,1\n", r"line 9: a quote does not end"),
        (HEAD + "a,'',1\n", r"line 9: bag 0 has 0 instances"),
        (HEAD + "a,'{0 1',1\n", r"sparse row does not end with a brace"),
        (HEAD + "a,'{7 1}',1\n", r"names position 7, but there are 2 attributes"),
        (HEAD + "a,'{x 1}',1\n", r"pairs of a position and a value, got 'x 1'"),
        (HEAD + "a,'1,u',?\n", r"label of bag 0 is missing"),
        (HEAD + "?,'1,u',1\n", r"Row 0 has no bag id"),
        (HEAD.replace(" f numeric", " f string") + "a,'1,u',1\n", r"that is a number"),
    ],
)
def test_arff(text, match, tmp_path):
    (tmp_path / "bags.arff").write_text(text)
    with pytest.raises((FormatError, BagValidationError), match=match) as caught:
        read(tmp_path / "bags.arff")
    assert "bags.arff" in str(caught.value)


@pytest.mark.parametrize("role", ["features", "info"])
def test_arff_unknown_attribute(role, tmp_path):
    (tmp_path / "bags.arff").write_text(HEAD + "a,'1,u',1\n")
    with pytest.raises(BagValidationError, match=f"{role} attribute 'g' is not there"):
        read(tmp_path / "bags.arff", **{role: ["g"]})
