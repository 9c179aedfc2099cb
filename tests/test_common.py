"""What every estimator of gmil must do. A class that registers itself is tested here without another line."""

from __future__ import annotations

import copy
import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import average_precision_score, brier_score_loss, get_scorer, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, make_constraint
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metadata_routing import get_routing_for_object
from tests.conftest import target_for
from tests.estimators import fitted, seeded, small

import gmil
from gmil import Bags
from gmil.target_checks import outcomes_of

ESTIMATORS = [small(cls) for _, cls in gmil.all_estimators()]
CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]
NEAR_A_TIE = 1e-4
pytestmark = pytest.mark.filterwarnings("ignore:Grades that are texts:UserWarning")

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)


def decisions_of(classifier, bags, y, new=None):
    return seeded(classifier).fit(bags, y).decision_function(bags if new is None else new)


def far_from_ties(decisions):
    """Tell which bags are decided by more than rounding."""
    if decisions.ndim == 1:
        margin = np.abs(decisions)
    else:
        two_best = np.sort(decisions, axis=1)[:, -2:]
        margin = two_best[:, 1] - two_best[:, 0]
    return margin > NEAR_A_TIE * np.abs(decisions).max()


# ------------------------------------------------------------------ scikit-learn's own suite


def of_numbers(estimator):
    """Return an estimator that takes numbers where it wants events and times: scikit-learn's checks know no others."""
    cls = type(estimator)
    if getattr(cls, "_target", None) != "survival":
        return estimator

    def times(y):
        y = None if y is None else np.real(np.asarray(y)).astype(float).ravel()
        return None if y is None else outcomes_of(np.ones(len(y), dtype=bool), y - np.nanmin(y))

    def fit(self, X, y, *, groups=None):
        return cls.fit(self, X, times(y), groups=groups)

    def score(self, X, y):
        return cls.score(self, X, times(y))

    own = {"fit": fit, "score": score, "__doc__": cls.__doc__, "__module__": __name__}
    made = type(cls)(cls.__name__, (cls,), own)
    globals()[cls.__name__] = made  # where pickle looks for it
    return made()


@pytest.mark.filterwarnings("ignore:The labels are strings:UserWarning")
@parametrize_with_checks([of_numbers(estimator) for estimator in ESTIMATORS])
def test_scikit_learn_accepts(estimator, check):
    check(estimator)  # tests/conftest.py marks as slow what another check has seen


@every_estimator
def test_no_tag_switches_a_check_off(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.two_d_array
    assert tags.input_tags.three_d_array
    assert not tags.no_validation
    assert not tags._skip_test
    assert not tags.non_deterministic
    assert tags.classifier_tags is None or not tags.classifier_tags.poor_score


@every_estimator
def test_every_estimator_is_a_public_name(estimator):
    assert getattr(gmil, type(estimator).__name__) is type(estimator)


@every_estimator
def test_cloning_keeps_parameters_and_forgets_the_fit(estimator):
    model, _, _ = fitted(estimator)
    copied = clone(model)
    assert repr(copied) == repr(model)
    assert not [name for name in vars(copied) if name.endswith("_")]


@every_estimator
def test_fitting_sets_only_attributes_that_end_with_an_underscore(estimator):
    model, _, _ = fitted(estimator)
    assert [name for name in vars(model) if not name.endswith("_")] == list(vars(seeded(estimator)))
    assert model.n_features_in_ == 3


# ------------------------------------------------------------------ after fit, parameters do not matter

READ_LIVE = {"n_jobs", "backend", "random_state"}  # results do not depend on them


def other_values(estimator, name):
    """Return valid values of a parameter that are not the one it has."""
    known = getattr(estimator, "_parameter_constraints", {"transformer": [HasMethods(["transform"]), None]})
    constraints = [make_constraint(one) for one in known[name]]
    named = [option for one in constraints for option in getattr(one, "options", ())]
    numbers = [None, True, False, 0, 1, 2, 3, 0.25, 0.5, 7.5, 50]
    others = [("mean",), ["range"], {"n_clusters": [2]}, gmil.APR(), SimpleImputer()]
    return [
        value
        for value in [*numbers, *named, *others]
        if any(one.is_satisfied_by(value) for one in constraints) and repr(value) != repr(getattr(estimator, name))
    ]


def answers_of(model, bags):
    """Return all that a fitted model says about bags, by the name of the method."""
    names = ("predict", "decision_function", "predict_proba", "predict_variance", "score_instances", "unfamiliar")
    answers = {name: getattr(model, name)(bags) for name in names if hasattr(model, name)}
    if hasattr(model, "witnesses"):
        answers["witnesses"] = np.concatenate(model.witnesses(bags))
    if hasattr(model, "explain"):
        answers["explain"] = np.array([str(model.explain(bags[i])) for i in range(3)])
    if hasattr(model, "transform"):
        found = model.transform(bags)
        answers["transform"] = getattr(found, "instances", found)  # bags, or one vector per bag
    return answers


@every_estimator
def test_parameters_set_after_fit_change_nothing(estimator):
    model, bags, _ = fitted(estimator)
    expected = answers_of(model, bags)
    assert expected
    names = [name for name in model.get_params(deep=False) if name not in READ_LIVE]
    others = {name: other_values(model, name) for name in names}
    assert all(others.values()), others
    for turn in range(max(map(len, others.values()), default=0)):  # every value of every parameter has its turn
        now = {name: values[turn % len(values)] for name, values in others.items()}
        model.set_params(**now)
        found = answers_of(model, bags)
        assert found.keys() == expected.keys(), now
        for method, answer in found.items():
            assert_array_equal(answer, expected[method], err_msg=f"{method} after set_params(**{now!r})")


@every_estimator
def test_parameters_that_may_be_set_after_fit_change_rounding_alone(estimator):
    model, bags, _ = fitted(estimator)
    expected = answers_of(model, bags)
    others = {"n_jobs": 1, "backend": "numpy", "random_state": 7}
    model.set_params(**{name: value for name, value in others.items() if name in model.get_params(deep=False)})
    for method, answer in answers_of(model, bags).items():
        if method in ("decision_function", "predict_proba", "score_instances", "transform"):
            # Log-odds of witnesses take what a decision loses without an instance several times.
            atol = 1e-3 if method == "score_instances" else 1e-4
            assert_allclose(answer, expected[method], rtol=1e-4, atol=atol, err_msg=method)


# ------------------------------------------------------------------ groups


@every_estimator
def test_nothing_but_labels_is_taken_by_position(estimator, gaussian_bags):
    bags, y = gaussian_bags()
    with pytest.raises(TypeError, match="positional argument"):
        seeded(estimator).fit(bags, target_for(estimator, y), np.ones(len(y)))


@every_estimator
def test_groups_are_asked_for_where_metadata_is_routed(estimator):
    with config_context(enable_metadata_routing=True):
        asks = get_routing_for_object(estimator).consumes("fit", ["groups"])
    assert bool(asks) == ("groups" in inspect.signature(estimator.fit).parameters)


# ------------------------------------------------------------------ scorers read decisions of classes_[1]

SYMMETRIC = {
    "BagStatistics",
    "CitationKNN",
    "FisherVectorClassifier",
    "GraphKernelSVM",
    "MILES",
    "PPMM",
    "SetKernelSVM",
    "VLADClassifier",
    "WeightedGMIL",
}
"""Methods to which it makes no difference which class is called positive, but for rounding and solvers."""
SCORERS = ["roc_auc", "accuracy", "balanced_accuracy"]


def scores_of(model, bags, y):
    """Return what every scorer says that applies, those that want a class with either of them."""
    names = [*SCORERS, "neg_log_loss"] if hasattr(model, "predict_proba") else SCORERS
    scores = {name: get_scorer(name)(model, bags, y) for name in names}
    for number, label in enumerate(model.classes_):
        scorer = make_scorer(average_precision_score, response_method="decision_function", pos_label=label)
        scores[f"average precision of class {number}"] = scorer(model, bags, y)
        if hasattr(model, "predict_proba"):
            scorer = make_scorer(brier_score_loss, response_method="predict_proba", pos_label=label)
            scores[f"Brier score of class {number}"] = scorer(model, bags, y)
    return scores


@every_classifier
@pytest.mark.parametrize(
    ("positive", "names"),
    [
        (0, ["active", "inactive"]),
        (1, ["active", "inactive"]),
        (0, [False, True]),
        pytest.param(1, [False, True], marks=pytest.mark.slow),
        pytest.param(0, [-1, 1], marks=pytest.mark.slow),
        pytest.param(1, [-1, 1], marks=pytest.mark.slow),
    ],
)
def test_no_scorer_minds_the_names_of_the_labels(classifier, positive, names, gaussian_bags):
    model, bags, y = fitted(clone(classifier).set_params(pos_label=positive))
    new, new_y = gaussian_bags(n_bags=30, seed=5)
    renamed = seeded(classifier).set_params(pos_label=names[positive]).fit(bags, np.array(names)[y])
    assert renamed.pos_label_ == names[positive]
    assert scores_of(renamed, new, np.array(names)[new_y]) == scores_of(model, new, new_y)


@every_classifier
def test_decisions_are_about_the_second_class_whichever_is_positive(classifier):
    for positive in (0, 1):
        model, bags, y = fitted(clone(classifier).set_params(pos_label=positive), n_bags=40, all_witnesses=True)
        scores = scores_of(model, bags, y)
        assert min(scores[name] for name in SCORERS) >= 0.9, scores
        assert min(value for name, value in scores.items() if name.startswith("average")) >= 0.9
        of_positive = np.repeat(y == positive, bags.sizes)
        instance_scores = model.score_instances(bags)
        assert instance_scores[of_positive].mean() > instance_scores[~of_positive].mean()


@every_classifier
def test_the_positive_class_does_not_matter_to_symmetric_methods(classifier, gaussian_bags):
    if type(classifier).__name__ not in SYMMETRIC:
        pytest.skip("learns what makes a bag positive")
    if type(classifier).__name__ == "WeightedGMIL":  # witnesses are of the positive class; views are not
        classifier = clone(classifier).set_params(witness_model=False)
    bags, y = gaussian_bags(n_bags=40)
    one, other = (seeded(classifier).set_params(pos_label=positive).fit(bags, y) for positive in (0, 1))
    size = np.abs(one.decision_function(bags)).max()
    assert_allclose(one.decision_function(bags), other.decision_function(bags), atol=0.02 * size)


@every_classifier
def test_the_threshold_can_be_tuned_by_scikit_learn(classifier, gaussian_bags):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    words = np.array(["active", "inactive"])[y]
    model = seeded(classifier).set_params(pos_label="active")
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=2).fit(bags, words)
    assert tuned.score(bags, words) >= 0.85


# ------------------------------------------------------------------ input


@every_classifier
@pytest.mark.parametrize(
    "fitted_to", [("list", "3-D", "frame"), pytest.param(("tuple", "nested lists", "ids"), marks=pytest.mark.slow)]
)
def test_all_ways_to_write_bags_give_the_same_decisions(classifier, fitted_to):
    model, bags, y = fitted(classifier, sizes=(4, 4))
    expected = model.decision_function(bags)
    cube = bags.instances.reshape(len(bags), 4, 3)
    frame = pd.DataFrame(bags.instances, columns=["a", "b", "c"]).assign(bag=bags.segment_ids)
    ways = {
        "list": list(cube),
        "tuple": tuple(cube),
        "nested lists": cube.tolist(),
        "3-D": cube,
        "frame": Bags.from_frame(frame, bag="bag"),
        "ids": Bags.from_ids(bags.instances, bags.segment_ids),
    }
    for name, X in ways.items():
        assert_array_equal(model.decision_function(X), expected, err_msg=name)
    for name in fitted_to:
        assert_array_equal(decisions_of(classifier, ways[name], y), expected, err_msg=name)


@every_classifier
def test_a_table_is_bags_of_one_instance(classifier, gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 1))
    assert_array_equal(decisions_of(classifier, bags.instances, y), decisions_of(classifier, bags, y))


@every_classifier
def test_sparse_bags_give_the_same_labels(classifier):
    if not get_tags(classifier).input_tags.sparse:
        pytest.skip("takes dense bags only")
    dense_model, bags, y = fitted(classifier)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    model = seeded(classifier).fit(sparse, y)
    assert_allclose(dense_model.decision_function(sparse), dense_model.decision_function(bags), atol=1e-9)
    assert np.mean(model.predict(sparse) == dense_model.predict(bags)) > 0.8


@every_classifier
def test_input_is_never_changed_and_may_be_read_only(classifier):
    model, bags, y = fitted(classifier)
    own = [bag.copy() for bag in bags]
    labels = y.copy()
    from_writable = decisions_of(classifier, own, labels)
    assert_array_equal(model.decision_function(bags), from_writable)
    for bag, before in zip(own, bags, strict=True):
        assert_array_equal(bag, before)
        bag.flags.writeable = False
    assert_array_equal(labels, y)
    labels.flags.writeable = False
    assert_array_equal(decisions_of(classifier, own, labels), from_writable)


@every_classifier
def test_memory_maps_are_taken(classifier, tmp_path):
    model, bags, y = fitted(classifier)
    np.save(tmp_path / "instances.npy", bags.instances)
    mapped = Bags(np.load(tmp_path / "instances.npy", mmap_mode="r"), bags.offsets)
    assert_array_equal(decisions_of(classifier, mapped, y), model.decision_function(bags))


@every_classifier
def test_single_and_double_precision_agree_but_for_near_ties(classifier):
    model, bags, y = fitted(classifier, n_bags=40)
    single = bags.with_instances(bags.instances.astype(np.float32))
    single_model = seeded(classifier).fit(single, y)
    clear = far_from_ties(model.decision_function(bags))
    assert clear.mean() > 0.25, "too few bags to compare"
    assert_array_equal(single_model.predict(single)[clear], model.predict(bags)[clear])


VALID = [np.ones((2, 3)), np.zeros((1, 3)), np.ones((3, 3)), np.zeros((2, 3))]
LABELS = [1, 0, 1, 0]
BAD_TRAINING = {
    "no bags": ([], [], "."),
    "empty bag": ([*VALID[:3], np.empty((0, 3))], LABELS, "Bag 3 .*0 instances"),
    "ragged features": ([*VALID[:3], np.ones((2, 4))], LABELS, "Bag 3 has 4 features, but bag 0 has 3"),
    "1-D bag": ([*VALID[:3], np.ones(3)], LABELS, r"Bag 3 must be 2-D .*got shape \(3,\)"),
    "text": ([np.array([["a", "b", "c"]])] * 4, LABELS, "must hold numbers"),
    "complex": ([np.ones((2, 3)) * 1j] * 4, LABELS, "Complex data not supported"),
    "NaN": ([*VALID[:3], np.full((1, 3), np.nan)], LABELS, "NaN: in bag 3, instance 0, column 0"),
    "infinity": ([*VALID[:3], np.full((1, 3), np.inf)], LABELS, "infinity: in bag 3"),
    "4-D": (np.ones((2, 2, 2, 2)), [0, 1], "dim 4"),
    "no features": ([np.ones((2, 0))] * 4, LABELS, "0 features"),
    "too few labels": (VALID, LABELS[:3], "y has 3 labels, but X has 4 bags"),
    "labels of instances": (VALID, [0, 1] * 4, "8 labels, one per instance, but X has 4 bags"),
    "instances as a table": (np.ones((8, 3)), LABELS, r"8 one-instance bags, but y has 4 .*Bags\.from_ids"),
    "one class": (VALID, [1] * 4, "one class"),
    "no labels": (VALID, None, "requires y to be passed"),
    "missing label": (VALID, [0, 1, np.nan, 1], "label of bag 2 is missing"),
    "regression": (VALID, [0.1, 0.4, 0.7, 0.9], "Unknown label type"),
    "two columns of labels": (VALID, np.arange(8).reshape(4, 2), "1d array"),
}


@every_classifier
@pytest.mark.parametrize(("X", "y", "message"), BAD_TRAINING.values(), ids=BAD_TRAINING)
def test_bad_training_bags_are_refused(classifier, X, y, message):
    with pytest.raises(ValueError, match=message):
        seeded(classifier).fit(X, y)


@every_classifier
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.ones((2, 4))], "X has 4 features, but .* is expecting 3"),
        (np.ones((2, 4)), "X has 4 features, but .* is expecting 3"),
        ([np.ones((2, 3)), np.empty((0, 3))], "Bag 1 .*0 instances"),
        ([np.full((2, 3), np.nan)], "NaN: in bag 0"),
        ([np.ones((2, 3)), np.ones(3)], "Bag 1 must be 2-D"),
    ],
)
def test_bad_new_bags_are_refused(classifier, X, message):
    model, _, _ = fitted(classifier)
    for method in ("predict", "decision_function", "predict_proba", "score_instances"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(X)


# ------------------------------------------------------------------ results


@every_classifier
def test_the_seed_decides_everything(classifier):
    model, bags, y = fitted(classifier)
    first = model.decision_function(bags)
    assert_array_equal(decisions_of(classifier, bags, y), first)
    assert_array_equal(model.fit(bags, y).decision_function(bags), first)


@every_classifier
def test_bags_may_come_in_any_order(classifier):
    model, bags, _ = fitted(classifier)
    order = np.random.default_rng(1).permutation(len(bags))
    decisions = model.decision_function(bags)
    assert_allclose(model.decision_function(bags[order]), decisions[order], atol=1e-9)
    clear = far_from_ties(decisions[order])
    assert_array_equal(model.predict(bags[order])[clear], model.predict(bags)[order][clear])
    assert_allclose(model.decision_function(bags[:1]), decisions[:1], atol=1e-9)


@every_classifier
def test_instances_may_come_in_any_order(classifier):
    model, bags, _ = fitted(classifier)
    reversed_bags = Bags.from_list([bag[::-1] for bag in bags])
    decisions = model.decision_function(bags)
    assert_allclose(model.decision_function(reversed_bags), decisions, atol=1e-9)
    clear = far_from_ties(decisions)
    assert_array_equal(model.predict(reversed_bags)[clear], model.predict(bags)[clear])


@every_classifier
def test_labels_follow_from_decisions(classifier):
    model, bags, _ = fitted(classifier)
    decisions = model.decision_function(bags)
    assert decisions.shape == (len(bags),)
    assert np.isfinite(decisions).all()
    assert_array_equal(model.predict(bags), np.where(decisions > 0, 1, 0))


@every_classifier
@pytest.mark.parametrize(("positive", "expected"), [(None, [0, 0, 1]), (1, [0, 0, 1]), (0, [0, 1, 1])])
def test_a_tie_is_negative(classifier, positive, expected, monkeypatch):
    model, bags, _ = fitted(clone(classifier).set_params(pos_label=positive))
    monkeypatch.setattr(type(model), "decision_function", lambda *_: np.array([-1.0, 0.0, 1.0]))
    assert_array_equal(model.predict(bags[:3]), expected)


@every_classifier
def test_bags_that_differ_in_every_instance_are_told_apart(classifier, gaussian_bags):
    model, _, _ = fitted(classifier, n_bags=40, all_witnesses=True)
    assert model.score(*gaussian_bags(n_bags=40, seed=1, all_witnesses=True)) >= 0.9


@every_classifier
def test_labels_may_be_any_two_values(classifier):
    model, bags, y = fitted(classifier)
    expected = model.decision_function(bags)
    for pair in ([-1, 1], [2.0, 7.0], [False, True]):
        model = seeded(classifier).fit(bags, np.array(pair)[y])
        assert_array_equal(model.decision_function(bags), expected)
        assert set(model.predict(bags)) <= set(pair)


@every_classifier
def test_several_classes(classifier, gaussian_bags):
    if not get_tags(classifier).classifier_tags.multi_class:
        pytest.skip("two classes only")
    bags, y = gaussian_bags(n_bags=36, n_classes=3, all_witnesses=True)
    labels = np.array(["a", "b", "c"])[y]
    model = seeded(classifier).fit(bags, labels)
    decisions = model.decision_function(bags)
    assert decisions.shape == (36, 3)
    assert_array_equal(model.predict(bags), model.classes_[decisions.argmax(axis=1)])
    assert model.score(bags, labels) >= 0.9


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_agree_with_labels(classifier, n_classes):
    if not hasattr(classifier, "predict_proba") or not get_tags(classifier).classifier_tags.multi_class:
        pytest.skip("has no such probabilities")
    model, bags, _ = fitted(classifier, n_bags=36, n_classes=n_classes)
    probabilities = model.predict_proba(bags)
    assert probabilities.shape == (36, n_classes)
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1)
    clear = far_from_ties(model.decision_function(bags))
    likely = probabilities.argmax(axis=1)
    if getattr(classifier, "_target", None) == "ordinal":  # of grades the median
        likely = (np.cumsum(probabilities, axis=1) < 0.5).sum(axis=1)
    assert_array_equal(model.classes_[likely][clear], model.predict(bags)[clear])


@every_classifier
def test_instance_scores_are_finite_and_aligned(classifier):
    model, bags, _ = fitted(classifier, sizes=(1, 6))
    scores = model.score_instances(bags)
    assert scores.shape == (bags.n_instances,)
    assert np.isfinite(scores).all()
    one_by_one = np.concatenate([model.score_instances(bags[[i]]) for i in range(len(bags))])
    assert_allclose(scores, one_by_one, atol=1e-9)
    backwards = Bags.from_list([bag[::-1] for bag in bags])
    turned = [part[::-1] for part in np.split(model.score_instances(backwards), bags.offsets[1:-1])]
    assert_allclose(np.concatenate(turned), scores, atol=1e-9)


@every_classifier
def test_instances_have_a_score_for_every_class(classifier, gaussian_bags):
    if not get_tags(classifier).classifier_tags.multi_class:
        pytest.skip("two classes only")
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    model = seeded(classifier).fit(bags, np.array(["a", "b", "c"])[y])
    scores = model.score_instances(bags)
    assert scores.shape == (bags.n_instances, 3)
    assert np.isfinite(scores).all()
    of_label = {label: model.witnesses(bags, label=label) for label in model.classes_.tolist()}
    for i, (found, label) in enumerate(zip(model.witnesses(bags), model.predict(bags).tolist(), strict=True)):
        assert len(found)
        assert_array_equal(found, of_label[label][i])


@every_classifier
def test_witnesses_of_a_smaller_share_are_the_first_of_a_larger_one(classifier):
    model, bags, _ = fitted(classifier, sizes=(1, 6))
    by_share = [model.witnesses(bags, share) for share in (0.2, 0.5, 0.9, 1.0)]
    predicted, scores = model.predict(bags), bags.split(model.score_instances(bags))
    for few, more in itertools.pairwise(by_share):
        for one, other in zip(few, more, strict=True):
            assert_array_equal(one, other[: len(one)])
    for found, label, of_bag in zip(by_share[2], predicted, scores, strict=True):
        assert (len(found) > 0) == (label == 1)
        assert len(set(found.tolist())) == len(found)
        assert_array_equal(of_bag[found], np.sort(of_bag[found])[::-1])
        assert len(found) == 0 or of_bag[found[0]] == of_bag.max()


@every_classifier
def test_explanations_name_the_witnesses(classifier):
    model, bags, _ = fitted(classifier, sizes=(1, 6))
    for i, found in enumerate(model.witnesses(bags)[:4]):
        explained = model.explain(bags[i])
        assert isinstance(explained, gmil.Explanation)
        assert explained.label == model.predict(bags[[i]])[0]
        assert explained.margin == pytest.approx(model.decision_function(bags[[i]])[0], abs=1e-9)
        assert [witness.instance for witness in explained.witnesses] == found.tolist()
        shares = [witness.share for witness in explained.witnesses]
        assert shares == sorted(shares, reverse=True)
        assert not shares or 0.9 - 1e-9 <= sum(shares) <= 1 + 1e-9


@every_classifier
def test_models_are_saved_and_loaded(classifier, tmp_path):
    model, bags, _ = fitted(classifier)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    for method in ("decision_function", "score_instances"):
        assert_array_equal(getattr(loaded, method)(bags), getattr(model, method)(bags))


@every_classifier
def test_files_with_what_no_fit_sets_are_refused(classifier, tmp_path, monkeypatch):
    model, _, _ = fitted(classifier)
    for name in ("pos_label", *model._kept_parameters):
        lying = copy.copy(model)
        setattr(lying, f"{name}_", "nonsense")
        with monkeypatch.context() as forged:  # what gmil itself would not write
            forged.setattr("gmil.io.model_files.values.check_model", lambda _: None)
            forged.setattr("gmil.io.model_files.probe", lambda _: "")
            lying.save(tmp_path / "model.gmil")
        with pytest.raises(gmil.ModelFileError):
            gmil.load(tmp_path / "model.gmil")
