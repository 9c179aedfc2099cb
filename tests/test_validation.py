"""`check_bags` and `check_bag_labels`: everything that users pass becomes bags and labels, or one clear error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from gmil import GMIL, Bags, BagValidationError
from gmil.bags.finite import largest_value
from gmil.validation import check_bag_labels, check_bags, check_groups

TABLE = np.arange(8.0).reshape(4, 2)
CUBE = np.arange(24.0).reshape(4, 3, 2)


class Fitted(BaseEstimator):
    """An estimator that only remembers the features of its training bags."""


# ------------------------------------------------------------------ accepted input


@pytest.mark.parametrize(
    "X",
    [
        CUBE,
        list(CUBE),
        tuple(CUBE),
        CUBE.tolist(),
        [tuple(map(tuple, bag)) for bag in CUBE],
        [pd.DataFrame(bag) for bag in CUBE],
        Bags.from_list(CUBE),
        [sp.csr_array(bag) for bag in CUBE],
        CUBE.astype(np.float32),
        CUBE.astype(int),
        np.asfortranarray(CUBE),
    ],
    ids=["3-D", "list", "tuple", "nested lists", "nested tuples", "frames", "Bags", "sparse", "f4", "int", "F order"],
)
def test_all_ways_to_write_bags_are_equal(X):
    bags = check_bags(X)
    assert_array_equal(bags.offsets, [0, 3, 6, 9, 12])
    instances = bags.instances.toarray() if sp.issparse(bags.instances) else bags.instances
    assert_array_equal(instances, CUBE.reshape(12, 2))


@pytest.mark.parametrize(
    "X",
    [
        TABLE,
        TABLE.tolist(),
        [np.array(row) for row in TABLE],
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE, columns=["a", "b"]),
        pl.DataFrame(TABLE, schema=["a", "b"]),
        sp.csr_array(TABLE),
        sp.coo_matrix(TABLE),
        sp.csc_array(TABLE),
        TABLE.astype(object),
        np.asfortranarray(TABLE),
    ],
    ids=["array", "lists", "rows", "pandas", "named", "polars", "csr", "coo", "csc", "object", "F order"],
)
def test_a_table_is_read_as_bags_of_one_instance(X):
    bags = check_bags(X)
    assert_array_equal(bags.sizes, [1, 1, 1, 1])
    instances = bags.instances.toarray() if sp.issparse(bags.instances) else bags.instances
    assert_array_equal(instances, TABLE)


@pytest.mark.parametrize("X", [TABLE, CUBE, sp.csr_array(TABLE)], ids=["table", "3-D", "sparse"])
def test_single_precision_is_kept(X):
    assert check_bags(X).dtype == np.float64
    assert check_bags(X.astype(np.float32)).dtype == np.float32
    assert check_bags(X.astype(np.int32)).dtype == np.float64


def test_bags_pass_as_they_are():
    bags = Bags.from_list(CUBE)
    assert check_bags(bags) is bags


@pytest.mark.parametrize("X", [[], Bags.from_list(CUBE)[:0], np.empty((0, 3, 2)), np.empty((0, 2))])
def test_no_bags_are_refused(X):
    with pytest.raises(ValueError, match=r"at least one bag is needed|0 sample"):
        check_bags(X)


@pytest.mark.parametrize(
    "X",
    [
        [[], [[1.0, 2.0]]],
        [np.array([]), TABLE],
        [TABLE[:0], TABLE],
        np.empty((2, 0, 2)),
        [sp.csr_array((0, 2)), sp.csr_array(TABLE)],
    ],
    ids=["list", "1-D array", "2-D array", "3-D array", "sparse"],
)
def test_an_empty_first_bag_is_refused_by_number(X):
    with pytest.raises(BagValidationError, match=r"Bag 0.* 0 instances"):
        check_bags(X)


@pytest.mark.parametrize("X", [3.0, "text", np.ones(3), np.ones((2, 2, 2, 2)), [[["a", "b"]]], None])
def test_what_is_neither_bags_nor_a_table_is_refused(X):
    with pytest.raises(ValueError, match=r"Expected 2D array|dim 4|could not convert|must hold numbers"):
        check_bags(X)


@pytest.mark.parametrize("form", ["dok", "lil", "coo"])
def test_a_sparse_table_of_any_form_has_one_bag_a_row(form):
    bags = check_bags(sp.csr_array(np.eye(3)).asformat(form))
    assert bags.instances.toarray().tolist() == np.eye(3).tolist()
    assert np.diff(bags.offsets).tolist() == [1, 1, 1]


@pytest.mark.parametrize("X", [{"a": np.eye(2)}, {1, 2}, (bag for bag in [np.eye(2)] * 2)], ids=["dict", "set", "once"])
def test_what_has_no_order_is_refused(X):
    with pytest.raises(BagValidationError, match=r"got a (dict|set|generator)\. Pass a list"):
        check_bags(X)


def test_bags_without_features_are_refused():
    with pytest.raises(BagValidationError, match="0 features, but Fitted needs at least 1"):
        check_bags([np.empty((2, 0))], estimator=Fitted(), reset=True)


# ------------------------------------------------------------------ missing and infinite values


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_named(value, name, as_given, dtype):
    instances = np.zeros((5, 3), dtype=dtype)
    instances[0, 0] = 1
    instances[3, 1] = instances[4, 2] = value
    bags = Bags(as_given(instances), [0, 2, 5], bag_ids=["first", "second"], feature_names=["x", "y", "z"])
    with pytest.raises(
        BagValidationError, match=rf"{name}: in bag 1 \(second\), instance 1, column 1 \(y\) \(2 such values"
    ):
        check_bags(bags)
    with pytest.raises(BagValidationError, match=rf"{name}: in bag 1, instance 1, column 1 \(2 such"):
        check_bags(bags.to_list())


def test_finite_values_whose_squares_overflow_pass_where_they_are_allowed():
    huge = np.full((2, 2), np.finfo(np.float64).max)
    assert_array_equal(check_bags([huge], allow_large=True).instances, huge)
    assert_array_equal(check_bags(huge, allow_large=True).instances, huge)
    with pytest.raises(BagValidationError, match=r"too large: 1\.79769e\+308 in bag 0, instance 0, column 0 \(4 such"):
        check_bags([huge])
    with pytest.raises(BagValidationError, match="too large"):
        check_bags(huge)
    with pytest.raises(BagValidationError, match="too large"):
        check_bags(sp.csr_array(huge))


def test_values_whose_squares_add_up_to_too_much_for_one_look_pass_where_each_is_small_enough():
    many = np.full((200, 2), 0.9 * largest_value(2, np.float32), dtype=np.float32)
    assert_array_equal(check_bags([many]).instances, many)


@pytest.mark.parametrize("X", [[[[np.nan, 1.0]]], [[np.nan, 1.0]]])
def test_missing_values_pass_where_they_are_allowed(X):
    assert np.isnan(check_bags(X, allow_nan=True).instances[0, 0])
    with pytest.raises(ValueError, match="NaN"):
        check_bags(X)


# ------------------------------------------------------------------ the features of fit


@pytest.mark.parametrize("X", [CUBE, TABLE, pd.DataFrame(TABLE, columns=["a", "b"]), sp.csr_array(TABLE)])
def test_another_number_of_features_is_refused(X):
    fitted = Fitted()
    check_bags(X, estimator=fitted, reset=True)
    assert fitted.n_features_in_ == 2
    with pytest.raises(ValueError, match="X has 3 features, but Fitted is expecting 2 features as input"):
        check_bags([np.ones((1, 3))], estimator=fitted)


def test_features_that_are_too_many_or_missing_are_named():
    estimator = Fitted()
    check_bags(Bags(np.eye(2), [0, 2], None, ("a", "b")), estimator=estimator, reset=True)
    wrong = Bags(np.eye(3), [0, 3], None, ("a", "c", "d"))
    with pytest.raises(BagValidationError, match=r"as input \(not known from fit: 'c', 'd'; missing: 'b'\)"):
        check_bags(wrong, estimator=estimator)


@pytest.mark.parametrize("X", ["bags.csv", pd.DataFrame({"bag": ["a", "b"], "f": [1.0, 2.0]})])
def test_files_and_tables_of_instances_are_no_bags(X):
    with pytest.raises(BagValidationError, match=r"Bags\.from_frame\(table, bag=\.\.\.\), and read a file"):
        check_bags(X, estimator=Fitted(), reset=True)


def test_other_feature_names_are_refused():
    bags = Bags.from_list(CUBE, feature_names=["width", "height"])
    fitted = Fitted()
    check_bags(bags, estimator=fitted, reset=True)
    assert_array_equal(fitted.feature_names_in_, ["width", "height"])
    check_bags(bags[:1], estimator=fitted)
    check_bags(CUBE, estimator=fitted)
    swapped = Bags.from_list(CUBE, feature_names=["height", "width"])
    with pytest.raises(BagValidationError, match="feature 0 is 'height' and was 'width'"):
        check_bags(swapped, estimator=fitted)
    with pytest.raises(ValueError, match="feature names"):
        check_bags(pd.DataFrame(TABLE, columns=["height", "width"]), estimator=fitted)


def test_names_of_an_earlier_fit_are_forgotten():
    fitted = Fitted()
    check_bags(Bags.from_list(CUBE, feature_names=["a", "b"]), estimator=fitted, reset=True)
    check_bags(CUBE, estimator=fitted, reset=True)
    assert not hasattr(fitted, "feature_names_in_")


def test_classifiers_compare_features_at_predict(gaussian_bags):
    bags, y = gaussian_bags(n_features=2)
    named = Bags(bags.instances, bags.offsets, feature_names=["a", "b"])
    model = GMIL(random_state=0).fit(named, y)
    for method in (model.predict, model.decision_function, model.predict_proba, model.score_instances):
        with pytest.raises(BagValidationError, match="X has 3 features, but GMIL is expecting 2"):
            method([np.ones((2, 3))])
        with pytest.raises(BagValidationError, match="feature 1 is 'c' and was 'b'"):
            method(Bags(bags.instances, bags.offsets, feature_names=["a", "c"]))


# ------------------------------------------------------------------ labels


@pytest.fixture
def bags():
    return Bags.from_list(CUBE, bag_ids=["p", "q", "r", "s"])


@pytest.mark.parametrize(
    ("y", "classes", "encoded"),
    [
        ([0, 1, 1, 0], [0, 1], [0, 1, 1, 0]),
        ([-1.0, 1.0, 1.0, -1.0], [-1, 1], [0, 1, 1, 0]),
        (["no", "yes", "no", "maybe"], ["maybe", "no", "yes"], [1, 2, 1, 0]),
        (np.array(["b", "a", "b", "b"], dtype=object), ["a", "b"], [1, 0, 1, 1]),
        ([True, False, True, False], [False, True], [1, 0, 1, 0]),
        (pd.Series([3, 1, 2, 1]), [1, 2, 3], [2, 0, 1, 0]),
        (pl.Series([3, 1, 3, 1]), [1, 3], [1, 0, 1, 0]),
    ],
    ids=["integers", "floats", "strings", "objects", "booleans", "pandas", "polars"],
)
def test_labels_become_classes_and_class_numbers(bags, y, classes, encoded):
    found, numbers = check_bag_labels(y, bags, Fitted())
    assert list(found) == classes
    assert_array_equal(numbers, encoded)
    assert numbers.dtype == np.int64


def test_another_number_of_labels_is_refused(bags):
    with pytest.raises(BagValidationError, match=r"y has 3 labels, but X has 4 bags\. Pass one label per bag"):
        check_bag_labels([0, 1, 0], bags, Fitted())


def test_labels_of_instances_are_refused(bags):
    with pytest.raises(BagValidationError, match="12 labels, one per instance, but X has 4 bags and labels belong to"):
        check_bag_labels([0, 1] * 6, bags, Fitted())


def test_labels_of_a_table_that_was_meant_as_instances_are_refused():
    table = check_bags(TABLE)
    with pytest.raises(BagValidationError, match=r"4 one-instance bags, but y has 2 labels.*Bags\.from_ids"):
        check_bag_labels([0, 1], table, Fitted())


@pytest.mark.parametrize(("y", "name"), [([1, 1, 1, 1], "1"), (["a"] * 4, "a")])
def test_a_single_class_is_refused(bags, y, name):
    with pytest.raises(BagValidationError, match=f"one class only, .*{name}.*, but Fitted needs bags of at least 2"):
        check_bag_labels(y, bags, Fitted())


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, np.nan, 1],
        np.array(["a", "b", None, "b"], dtype=object),
        np.array(["a", "b", np.nan, "b"], dtype=object),
        pd.Series(["a", "b", None, "b"]),
        pd.Series([0, 1, None, 1], dtype="Int64"),
    ],
    ids=["float", "None", "object NaN", "pandas strings", "pandas integers"],
)
def test_a_missing_label_is_refused_and_its_bag_named(bags, y):
    with pytest.raises(BagValidationError, match=r"Input y contains NaN: the label of bag 2 \(r\) is missing"):
        check_bag_labels(y, bags, Fitted())


def test_an_infinite_label_is_refused(bags):
    with pytest.raises(BagValidationError, match=r"Input y contains infinity: bag 1 \(q\)"):
        check_bag_labels([0, np.inf, 1, 1], bags, Fitted())


def test_no_labels_are_refused(bags):
    with pytest.raises(BagValidationError, match="Fitted estimator requires y to be passed, but the target y is None"):
        check_bag_labels(None, bags, Fitted())


def test_a_regression_target_is_refused(bags):
    with pytest.raises(ValueError, match=r"Unknown label type: y must name classes, .* got fractions such as 0.1"):
        check_bag_labels([0.1, 0.2, 0.3, 0.5], bags, Fitted())


def test_labels_of_two_kinds_are_refused(bags):
    with pytest.raises(BagValidationError, match="one kind"):
        check_bag_labels(np.array([1, "a", 1, "a"], dtype=object), bags, Fitted())


@pytest.mark.parametrize("y", [np.zeros((4, 2)), 3, "text", [["a"], ["a", "b"], ["b"], []]])
def test_labels_of_another_shape_are_refused(bags, y):
    with pytest.raises(BagValidationError, match=r"one label per bag: .*(1d array|sequence).* indicator matrix"):
        check_bag_labels(y, bags, Fitted())


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1.0, np.nan, 2.0, 2.0], "The group of bag 1 is missing"),
        (["a", "b", None, "c"], "The group of bag 2 is missing"),
        (np.array(["a", 1, "b", 2], dtype=object), "must all be of one kind"),
    ],
)
def test_groups_that_are_missing_or_of_two_kinds_are_refused(groups, message):
    with pytest.raises(BagValidationError, match=message):
        check_groups(groups, 4)


def test_a_column_of_labels_warns(bags):
    with pytest.warns(UserWarning, match="column-vector"):
        classes, _ = check_bag_labels([[0], [1], [1], [0]], bags, Fitted())
    assert_array_equal(classes, [0, 1])
