"""The hash of a job changes when something changes that its result depends on, and only then."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest
from sklearn.base import clone

import gmil
from gmil import Bags
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import SpecificationError
from gmil.paper import parse_spec
from gmil.paper.runs import fingerprints
from gmil.paper.runs.data import load_datasets
from gmil.paper.runs.fingerprints import canonical_json, code_fingerprint
from gmil.paper.runs.jobs import cases_of, expand, make_estimator
from gmil.paper.tables import grids


def hashes(spec):
    datasets, _ = load_datasets(spec)
    jobs = expand(spec, datasets)
    return {(j.dataset, j.method, j.column, j.repeat): j.hash for j in jobs}


def test_jobs_are_whole_folds_of_every_method_column_set_and_repeat(toy):
    found = hashes(toy)
    assert len(set(found.values())) == len(found) == 2 * (3 * 3 + 3 + 1)  # controls, paper setting, tuned
    assert not any(method == "not-there" for _, method, _, _ in found)  # it is not in this gmil


def test_names_and_texts_are_not_content(toy, toy_document):
    toy_document["title"] = "Other words"
    toy_document["method"][0]["label"] = "G"
    toy_document["method"].reverse()
    assert hashes(parse_spec(toy_document, "other name")) == hashes(toy)


def test_more_repeats_keep_the_first_ones(toy):
    few, many = hashes(toy), hashes(toy.repeated(5))
    assert few.items() <= many.items()


@pytest.mark.parametrize(
    ("changed", "protocol"),
    [("all", {"folds": 4}), ("all", {"seed": 1}), ("tuned", {"inner_folds": 3}), ("tuned", {"max_settings": 4})],
)
def test_the_protocol_is_content(toy, changed, protocol):
    before = hashes(toy)
    after = hashes(dataclasses.replace(toy, protocol=dataclasses.replace(toy.protocol, **protocol)))
    different = {key for key in before if before[key] != after[key]}
    assert different == {key for key in before if changed == "all" or key[2] == "tuned"}


def test_parameters_are_content_on_the_data_set_that_they_are_for(toy, toy_document):
    toy_document["method"][0]["per_dataset"]["hard"]["n_clusters"] = 8
    before, after = hashes(toy), hashes(parse_spec(toy_document, "toy"))
    different = {key for key in before if before[key] != after[key]}
    assert different == {("hard", "gmil", "paper", repeat) for repeat in range(3)}


def test_a_default_that_is_written_out_changes_nothing(toy, toy_document):
    toy_document["method"][0]["params"]["max_iter"] = gmil.GMIL().max_iter
    assert hashes(parse_spec(toy_document, "toy")) == hashes(toy)


def test_threads_are_fixed_and_no_content(toy, toy_document):
    toy_document["method"][0]["params"]["n_jobs"] = 2
    assert hashes(parse_spec(toy_document, "toy")) == hashes(toy)
    assert make_estimator("gmil", {"n_jobs": 2}).n_jobs == 1


def test_the_grid_is_content_of_tuned_jobs(toy, monkeypatch):
    before = hashes(toy)
    monkeypatch.setattr(grids, "_grids", lambda: {"gmil": [{"n_clusters": [3, 4]}]})
    after = hashes(toy)
    assert {key for key in before if before[key] != after[key]} == {k for k in before if k[2] == "tuned"}


def test_data_is_content():
    bags, y = gmil.make_bags(10, random_state=0, return_X_y=True)
    same = Bags(bags.instances.copy(), bags.offsets, bag_ids=[f"b{i}" for i in range(10)])
    assert data_fingerprint(same, y.astype(np.int32)) == data_fingerprint(bags, y)  # ids and integer types are not
    moved = bags.instances.copy()
    moved[3, 2] += 1e-9
    offsets = bags.offsets.copy()
    offsets[1] += 1
    others = [(bags.with_instances(moved), y), (Bags(bags.instances, offsets), y), (bags, 1 - y), (bags, y.astype(str))]
    others += [(bags.with_instances(bags.instances.astype(np.float32)), y)]
    others += [(bags, y, np.arange(10) // 2), (bags, y, np.arange(10) % 2)]
    assert len({data_fingerprint(*other) for other in [*others, (bags, y)]}) == 8
    assert data_fingerprint(bags, y, ["a", "b"] * 5) == data_fingerprint(bags, y, np.arange(10) % 2)


def test_generated_data_is_the_same_on_every_machine():
    """Matrix products differ in their last bits from machine to machine, and figures of records must be found again."""
    bags, y = gmil.make_bags(10, random_state=0, return_X_y=True)
    recipe = {"maker": "bags", "n_bags": 10, "random_state": 0}
    rounded = bags.with_instances(bags.instances * (1 + 1e-7))
    assert data_fingerprint(rounded, y) != data_fingerprint(bags, y)
    whole = data_fingerprint(bags, y, recipe=recipe)
    assert data_fingerprint(rounded, y, recipe=recipe) == whole
    other_maker = bags.with_instances(bags.instances * 1.01)
    others = [(other_maker, y, None, recipe), (bags, 1 - y, None, recipe), (bags, y, np.arange(10) % 2, recipe)]
    others += [(bags, y, None, {**recipe, "random_state": 1}), (bags, y, None, None)]
    assert whole not in {data_fingerprint(b, labels, groups, recipe=how) for b, labels, groups, how in others}


def test_sparse_data_has_a_fingerprint():
    import scipy.sparse as sp

    bags, y = gmil.make_bags(6, random_state=0, return_X_y=True)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    other = Bags(sp.csr_array(2 * bags.instances), bags.offsets)
    assert len({data_fingerprint(b, y) for b in (bags, sparse, other)}) == 3


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the source in which files can be changed."""
    copied = tmp_path / "gmil"
    ignore = shutil.ignore_patterns("*.so", "__pycache__", "bundled")
    shutil.copytree(fingerprints._PACKAGE, copied, ignore=ignore)
    monkeypatch.setattr(fingerprints, "_PACKAGE", copied)
    return copied


@pytest.mark.parametrize(
    "name",
    [
        "transform/scaling.py",
        "engine/reference.py",
        pytest.param("model_selection/metrics.py", marks=pytest.mark.slow),
        pytest.param("greedy/clustering.py", marks=pytest.mark.slow),
        pytest.param("model_selection/folds.py", marks=pytest.mark.slow),
        pytest.param("scale/lazy.py", marks=pytest.mark.slow),
    ],
)
def test_numeric_code_is_content(package, name):
    before = code_fingerprint(gmil.GMIL)
    path = package / name
    path.write_text(path.read_text() + "\nCHANGED = 1\n")
    assert code_fingerprint(gmil.GMIL) != before


def test_cpp_sources_are_content(package):
    path = next((package / "engine").rglob("*.cpp"), None)
    if path is None:
        pytest.skip("a wheel holds no C++ sources")
    before = code_fingerprint(gmil.GMIL)
    path.write_text(path.read_text() + "\n// changed\n")
    assert code_fingerprint(gmil.GMIL) != before


@pytest.mark.parametrize(
    "name",
    [
        "bags/tables.py",
        "cli/cv.py",
        pytest.param("io/model_files/container.py", marks=pytest.mark.slow),
        pytest.param("errors.py", marks=pytest.mark.slow),
        pytest.param("paper/tables/table1.py", marks=pytest.mark.slow),
    ],
)
def test_other_code_is_not_content(package, name):
    before = code_fingerprint(gmil.GMIL, tuned=True)
    path = package / name
    path.write_text(path.read_text() + "\nCHANGED = 1\n")
    assert code_fingerprint(gmil.GMIL, tuned=True) == before


def test_comments_docstrings_and_layout_are_not_content(package):
    before = code_fingerprint(gmil.GMIL)
    path = package / "model_selection" / "metrics.py"
    text = path.read_text().replace('"""', '"""Other words. ', 1)
    path.write_text("# A comment.\n\n" + text.replace("\ndef ", "\n\n\n# Because.\ndef "))
    assert code_fingerprint(gmil.GMIL) == before


def test_tuning_is_content_of_tuned_jobs_only(package):
    before = code_fingerprint(gmil.GMIL), code_fingerprint(gmil.GMIL, tuned=True)
    path = package / "paper" / "tables" / "tuning.py"
    path.write_text(path.read_text() + "\nCHANGED = 1\n")
    after = code_fingerprint(gmil.GMIL), code_fingerprint(gmil.GMIL, tuned=True)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_an_unknown_parameter_is_refused_before_anything_runs():
    with pytest.raises(SpecificationError, match="gmil has no parameter 'clusters'; its parameters are backend, "):
        make_estimator("gmil", {"clusters": 3})


def test_parameters_have_one_json():
    from sklearn.svm import SVC

    first = canonical_json({"b": np.float64(0.5), "a": [np.int64(1), None], "m": SVC(), "f": np.mean})
    assert first == canonical_json({"f": np.mean, "m": SVC(C=2), "a": (1, None), "b": 0.5})
    assert "sklearn.svm._classes.SVC" in first


def test_the_same_source_is_spelled_alike_under_every_version_of_python():
    spelled = fingerprints._meaning('def f(a: int = 1) -> str:\n    """Doc."""\n    return f"{a!r:>3}" "x"  # why\n')
    assert spelled == (
        "(Module body=[(FunctionDef name='f' args=(arguments args=[(arg arg='a' annotation=(Name id='int' "
        "ctx=(Load)))] defaults=[(Constant value=1)]) body=[(Return value=(JoinedStr "
        "values=[(FormattedValue value=(Name id='a' ctx=(Load)) conversion=114 "
        "format_spec=(JoinedStr values=[(Constant value='>3')])) (Constant value='x')]))] "
        "returns=(Name id='str' ctx=(Load)))])"
    )


def test_settings_go_to_the_method_behind_what_fills_missing_values(toy_document):
    document = toy_document | {"missing": "median"}
    spec = parse_spec(document, "toy")
    tuned = next(case for case in cases_of(spec, spec.datasets[0]) if case.settings is not None)
    for setting in tuned.settings:
        clone(tuned.estimator).set_params(**setting)
