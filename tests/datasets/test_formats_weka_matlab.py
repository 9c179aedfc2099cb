"""Weka and Matlab files as others write them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gmil.datasets import read

# ---------------------------------------------------------------- ARFF

WEKA = r"""% a comment
@RELATION 'musk, small'

@attribute molecule_name {MUSK-188,'NON MUSK'}
@attribute bag relational
  @attribute f1 numeric
  @attribute 'f 2' real
@end bag
@attribute class {0,1}

@DATA
MUSK-188,"42,-198\n1e3,?",1
% between
'NON MUSK','5,6',0
"""


def test_arff_as_weka_has_it(tmp_path):
    path = tmp_path / "musk.arff"
    path.write_text(WEKA)
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["MUSK-188", "NON MUSK"]
    assert bags.feature_names == ("f1", "f 2")
    np.testing.assert_array_equal(bags[0], [[42.0, -198.0], [1000.0, np.nan]])
    assert y.tolist() == [1, 0]


def test_arff_roles_by_place_whatever_the_names(tmp_path):
    path = tmp_path / "musk.arff"
    path.write_text(WEKA.replace("molecule_name", "who").replace("class", "smells"))
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["MUSK-188", "NON MUSK"]
    assert y.tolist() == [1, 0]


def test_arff_sparse_instances(tmp_path):
    path = tmp_path / "text.arff"
    path.write_text(
        "@relation r\n@attribute id string\n@attribute words relational\n@attribute a numeric\n"
        "@attribute b numeric\n@attribute c numeric\n@end words\n@attribute class {no,yes}\n@data\n"
        'd1,"{0 1.5, 2 3}\\n{}",yes\n{0 d2, 1 "0,7,0"}\n'
    )
    bags, y = read(path)
    assert sp.issparse(bags.instances)
    assert bags.instances.toarray().tolist() == [[1.5, 0, 3], [0, 0, 0], [0, 7, 0]]
    assert y.tolist() == ["yes", "no"]  # a sparse row leaves out the first value
    assert bags.bag_ids.tolist() == ["d1", "d2"]


def test_arff_text_attributes_of_instances_are_info(tmp_path):
    path = tmp_path / "east.arff"
    path.write_text(
        "@relation r\n@attribute train {1,2}\n@attribute cars relational\n"
        "@attribute shape {round,'very long'}\n@attribute wheels numeric\n@end cars\n"
        "@attribute class {east,west}\n@data\n1,\"round,2\\n'very long',3\",east\n2,'round,4',west\n"
    )
    bags, _ = read(path)
    assert bags.feature_names == ("wheels",)
    assert bags.bag_ids.tolist() == [1, 2]
    assert bags.instance_info.column("shape").to_pylist() == ["round", "very long", "round"]


def test_arff_without_bags_is_a_table(tmp_path):
    path = tmp_path / "flat.arff"
    path.write_text(
        "@relation r\n@attribute slide {s1,s2}\n@attribute f numeric\n@attribute grade {low,high}\n"
        "@data\ns1,1.5,low\ns2,2.5,high\n{1 3.5}\n"
    )
    bags, y = read(path, bag="slide", label="grade")
    assert bags.bag_ids.tolist() == ["s1", "s2"]
    assert bags[0].tolist() == [[1.5], [3.5]]
    assert y.tolist() == ["low", "high"]


def test_arff_chosen_features_and_info(tmp_path):
    path = tmp_path / "musk.arff"
    path.write_text(WEKA)
    bags, _ = read(path, features=["f 2"], info=["f1"])
    assert bags.feature_names == ("f 2",)
    assert bags.instance_info.column("f1").to_pylist() == [42.0, 1000.0, 5.0]
    assert read(path, info=["f1"])[0].feature_names == ("f 2",)


# ---------------------------------------------------------------- Matlab


@pytest.mark.parametrize("names", [("features", "bag_ids", "labels"), ("X", "bag", "y")])
@pytest.mark.parametrize("per_bag", [True, False])
def test_mat_names_and_labels(names, per_bag, tmp_path):
    path = tmp_path / "bags.mat"
    labels = [1, -1] if per_bag else [1, -1, 1]
    values = (np.eye(3), np.array([1.0, 2.0, 1.0]), np.array(labels))
    scipy.io.savemat(path, dict(zip(names, values, strict=True)))
    bags, y = read(path)
    assert bags.bag_ids.tolist() == [1, 2]
    assert bags.sizes.tolist() == [2, 1]
    assert y.tolist() == [1, -1]


def test_mat_given_names_texts_and_info(tmp_path):
    path = tmp_path / "bags.mat"
    truth = np.array(["good", "bad "])
    when = np.array([1.5, 2.5, 3.5])
    scipy.io.savemat(path, {"M": np.eye(3), "who": [3, 3, 4], "truth": truth, "when": when})
    bags, y = read(path, features="M", bag="who", label="truth")
    assert y.tolist() == ["good", "bad"]
    assert bags.instance_info.column("when").to_pylist() == [1.5, 2.5, 3.5]
    assert bags.bag_ids.tolist() == [3, 4]


def test_mat_cells_with_a_matrix_a_bag(tmp_path):
    path = tmp_path / "bags.mat"
    cells = np.empty((2, 2), dtype=object)
    cells[0] = [np.array([[1.0, 2.0], [3.0, 4.0]]), 1.0]
    cells[1] = [np.array([[5.0, 6.0]]), 0.0]
    scipy.io.savemat(path, {"data": cells})
    bags, y = read(path)
    assert bags.sizes.tolist() == [2, 1]
    assert y.tolist() == [1, 0]
    scipy.io.savemat(path, {"bags": cells[:, :1], "labels": [7, 8]})
    assert read(path)[1].tolist() == [7, 8]
