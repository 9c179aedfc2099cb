"""Masked values are missing values, and two bags of one id are refused."""

import pickle

import numpy as np
import pytest
from sklearn.utils import resample

import gmil
from gmil import Bags, LazyBags
from gmil.errors import BagValidationError

MASKED = np.ma.masked_array([[1.0, 999.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
WANTED = [[1.0, np.nan], [3.0, 4.0]]


@pytest.mark.parametrize(
    "bags_of",
    [
        lambda X: Bags.from_list([X]),
        lambda X: Bags.from_list([list(X)]),
        lambda X: Bags(X, [0, 2]),
        lambda X: Bags.from_ids(X, ["a", "a"]),
        lambda X: LazyBags.from_array(X, [0, 2]).load(),
        lambda X: Bags.from_frame({"bag": ["a", "a"], "f": X[:, 0], "g": X[:, 1]}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_masked_value_is_nan(bags_of, dtype):
    np.testing.assert_array_equal(bags_of(MASKED.astype(dtype)).instances, WANTED)


def test_a_mask_that_hides_nothing_changes_nothing():
    bags = Bags.from_list([np.ma.masked_array(np.ones((2, 2), dtype=np.float32))])
    assert bags.dtype == np.float32
    assert type(bags.instances) is np.ndarray


@pytest.mark.parametrize("X", [[MASKED, MASKED], [MASKED, MASKED[:1]], MASKED, np.ma.stack([MASKED, MASKED])])
def test_estimators_refuse_masked_values_as_they_refuse_nan(X):
    with pytest.raises(ValueError, match="NaN"):
        gmil.GMIL(1).fit(X, [0, 1])


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [0.0, 1.0]])
def test_a_masked_label_is_missing(labels):
    bags = Bags.from_list([np.eye(2), np.ones((2, 2))])
    y = np.ma.masked_array(labels, mask=[False, True])
    with pytest.raises(BagValidationError, match="the label of bag 1 is missing"):
        gmil.GMIL(1).fit(bags, y)


def test_masked_ids_are_missing(tmp_path):
    with pytest.raises(BagValidationError, match="Row 1 has no bag id"):
        Bags.from_ids(np.eye(2), np.ma.masked_array([1, 2], mask=[False, True]))
    with pytest.raises(BagValidationError, match="Bag 1 has no id"):
        Bags.from_list([np.eye(2)] * 2, bag_ids=np.ma.masked_array(["a", "b"], mask=[False, True]))
    with pytest.raises(BagValidationError, match="label of bag 1 is missing"):
        gmil.write(tmp_path / "b.npz", [np.eye(2)] * 2, np.ma.masked_array([1, 2], mask=[False, True]))


@pytest.mark.parametrize(
    "build",
    [
        lambda ids: Bags.from_list([np.eye(2)] * 3, bag_ids=ids),
        lambda ids: Bags(np.eye(3), [0, 1, 2, 3], bag_ids=ids),
        lambda ids: LazyBags.from_array(np.eye(3), [0, 1, 2, 3], bag_ids=ids),
    ],
)
@pytest.mark.parametrize(
    ("ids", "name"), [(["a", "a", "b"], "'a'"), ([1, 2, 2], "2"), (np.array(["b", 1, "b"], object), "'b'")]
)
def test_two_bags_of_one_id_are_refused(build, ids, name):
    with pytest.raises(BagValidationError, match=f"bag_ids must all differ, but 2 bags are called {name}"):
        build(ids)


@pytest.mark.parametrize("suffix", [".npz", ".arff"])
def test_two_bags_of_one_id_in_a_file_are_refused(tmp_path, suffix):
    path = tmp_path / f"bags{suffix}"
    gmil.write(path, Bags.from_list([np.eye(2)] * 2, bag_ids=["p", "q"]), [0, 1])
    if suffix == ".npz":
        arrays = dict(np.load(path))
        np.savez(path, **arrays | {"bag_names": np.array(["p", "p"])})
    else:
        path.write_text(path.read_text().replace("q,", "p,"))
    with pytest.raises(BagValidationError, match="2 bags are called 'p'"):
        gmil.read(path)


def test_an_attribute_that_is_an_id_by_its_place_alone_may_repeat(tmp_path):
    path = tmp_path / "bags.arff"
    path.write_text(
        "@relation r\n@attribute patient {p,q}\n@attribute cells relational\n@attribute a numeric\n@end cells\n"
        '@attribute class {0,1}\n@data\np,"1\\n2",0\np,"3",1\n'
    )
    bags, y = gmil.read(path)
    assert bags.bag_ids.tolist() == [0, 1]
    assert y.tolist() == [0, 1]


def test_a_bag_that_is_drawn_twice_keeps_its_id():
    bags = Bags.from_list([np.eye(2), np.ones((1, 2))], bag_ids=["a", "b"])
    twice = bags[[0, 0, 1]]
    assert twice.bag_ids.tolist() == ["a", "a", "b"]
    assert pickle.loads(pickle.dumps(twice)).bag_ids.tolist() == ["a", "a", "b"]
    assert twice.with_instances(np.zeros((5, 1))).bag_ids.tolist() == ["a", "a", "b"]
    lazy = LazyBags.from_array(bags.instances, bags.offsets, bag_ids=bags.bag_ids)[[0, 0, 1]]
    assert lazy.load().bag_ids.tolist() == ["a", "a", "b"]
    assert len(resample(bags, random_state=0)) == 2
