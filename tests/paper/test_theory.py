"""Theorem 1 and what replaces the lemmas hold for all numbers; the counter-examples contradict what is printed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil.cli.main import main
from gmil.greedy.windows import window_distances, window_heights
from gmil.methods.density.noisy_or import Concept, concept_nll, labelled_instances
from gmil.paper.theory import agreement, conditions, profile, study
from gmil.paper.theory.claims import COUNTER_EXAMPLES, Evidence
from gmil.paper.theory.trials import run_trials

DOCS = Path(__file__).parents[2] / "docs" / "results" / "theory.md"
EXAMPLES = {example.name: example.points for example in COUNTER_EXAMPLES}
probability = st.floats(1e-6, 1 - 1e-6)
positive_number = st.floats(1e-6, 1e6)


def bags_of(numbers=probability, **sizes):
    bag = st.lists(numbers, min_size=1, max_size=5).map(tuple)
    return st.lists(bag, **{"min_size": 1, "max_size": 6, **sizes}).map(tuple)


evidence = st.builds(Evidence, bags_of(), bags_of())


@st.composite
def evidence_under_the_lemma(draw):
    """Pairs of bags, the one with the larger sum positive: the condition of the last lemma."""
    pairs = [sorted(pair, key=sum) for pair in zip(draw(bags_of()), draw(bags_of()), strict=False)]
    return Evidence(tuple(b for _, b in pairs), tuple(a for a, _ in pairs))


def sums_over_products(above, below):
    """Return log of the ratio of sums and log of the ratio of products."""
    products = math.fsum(map(math.log, above)) - math.fsum(map(math.log, below))
    return math.log(math.fsum(above)) - math.log(math.fsum(below)), products


def plain_diverse_density(found):
    present = math.prod(1 - math.prod(1 - p for p in bag) for bag in found.positive)
    return present * math.prod(1 - p for bag in found.negative for p in bag)


# ------------------------------------------------------------------ Theorem 1


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=1, max_size=12), st.floats(0.01, 1))
def test_theorem_1_as_printed(pairs, border):
    above = [border + (1 - border) * a for a, _ in pairs]
    below = [border * b for _, b in pairs]
    assert min(above) >= max(below)
    sums, products = sums_over_products(above, below)
    assert sums <= products + 1e-9


@given(st.lists(st.tuples(positive_number, positive_number), min_size=1, max_size=12))
def test_theorem_1_needs_pairs_only_and_no_upper_limit(pairs):
    above, below = [max(pair) for pair in pairs], [min(pair) for pair in pairs]
    sums, products = sums_over_products(above, below)
    assert sums <= products + 1e-9
    assert conditions.dominates(np.array(above), np.random.default_rng(0).permutation(below))


@given(st.lists(st.tuples(positive_number, positive_number), min_size=1, max_size=12))
def test_the_proof_in_two_steps(pairs):
    """The ratio of sums is a weighted mean of the ratios of pairs, so at most the largest, so at most their product."""
    ratios = [max(pair) / min(pair) for pair in pairs]
    sums = math.fsum(max(pair) for pair in pairs) / math.fsum(min(pair) for pair in pairs)
    assert sums <= max(ratios) * (1 + 1e-9)
    assert math.log(max(ratios)) <= math.fsum(map(math.log, ratios)) + 1e-9


@given(*[st.floats(0.01, 1)] * 4)
def test_the_printed_proof_for_two_is_an_identity(a, b, c, d):
    """Numerators of the second and third line of the proof, v1+ = a, v2+ = b, v1- = c, v2- = d."""
    assert a * b * (c + d) - c * d * (a + b) == pytest.approx(b * c * (a - d) + a * d * (b - c), abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=7), st.randoms())
def test_dominance_is_the_existence_of_a_pairing(pairs, random):
    from itertools import permutations

    above, below = [a for a, _ in pairs[:5]], [b for _, b in pairs[:5]]
    exists = any(all(a >= b for a, b in zip(above, order, strict=True)) for order in permutations(below))
    random.shuffle(below)
    assert conditions.dominates(np.array(above), np.array(below)) == exists


def test_without_a_pairing_theorem_1_fails():
    sums, products = sums_over_products([1.0, 0.1], [0.5, 0.5])
    assert sums > 0 > products


def test_random_trials_agree():
    failures = {(trial.claim, trial.condition): trial.n_failures / trial.n_trials for trial in run_trials(9000)}
    shares = list(failures.values())
    assert shares[:2] == [0, 0]  # Theorem 1, printed and weaker
    assert all(0.005 < share < 0.5 for share in shares[2:5])
    assert shares[5:] == [1, 0]  # the last lemma always fails, what replaces it never


# ------------------------------------------------------------------ the quantities


@given(evidence)
def test_quantities_are_their_plain_formulas(found):
    above, below = ([p for bag in bags for p in bag] for bags in found)
    assert found.density_ratio == pytest.approx(sum(above) / sum(below))
    assert found.product_ratio == pytest.approx(math.prod(above) / math.prod(below))
    absent = math.prod(1 - p for p in above) / math.prod(1 - p for p in below)
    assert found.absence_ratio == pytest.approx(absent)
    assert found.diverse_density == pytest.approx(plain_diverse_density(found), rel=1e-6, abs=1e-300)


def meets_bag_condition(found):
    """Tell whether the last lemma applies: as many bags of both kinds, and the sum of no negative bag is larger."""
    sums = [[sum(bag) for bag in bags] for bags in found]
    return len(sums[0]) == len(sums[1]) and all(a >= b for a, b in zip(*sums, strict=True))


def meets_theorem_condition(found):
    """Tell whether Theorem 1 applies to the instances: as many of both kinds, and no negative one is larger."""
    above, below = ([p for bag in bags for p in bag] for bags in found)
    return len(above) == len(below) and min(above) >= max(below)


# ------------------------------------------------------------------ the lemmas


def test_the_first_lemma_needs_more_than_separability():
    """The target and the positive bag are separable from negative instances, the windows are not as it says."""
    target, above, below = np.zeros(2), np.array([[0.0, 0.0], [1.0, 10.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    # Lines that separate the target from all negative instances, and the positive bag from the negative one.
    assert target[0] < 0.5 < min(above[1, 0], below[:, 0].min())
    assert (above[:, 1] > 10 * above[:, 0] - 5).all()
    assert (below[:, 1] < 10 * below[:, 0] - 5).all()
    inside = [
        window_heights(window_distances(target[None], bag, slice(None), "box")[0], "box", 4.0) for bag in (above, below)
    ]
    assert_array_equal(inside, [[1, 0], [1, 1]])  # phi+ >= phi- fails for the second instance


@given(evidence_under_the_lemma())
def test_the_last_lemma_is_false_wherever_it_applies(found):
    assert meets_bag_condition(found)
    assert found.density_ratio >= 1 - 1e-12
    assert found.diverse_density < 1
    assert found.density_ratio > found.diverse_density


@given(evidence)
def test_what_holds_instead(found):
    """DD <= min(1, S+/n)^n exp(-S-), hence n DD^(1/n) / -log DD <= S+/S-, for all bags and without a condition."""
    n = len(found.positive)
    above, below = (math.fsum(p for bag in bags for p in bag) for bags in found)
    density = found.diverse_density
    assume(density > 1e-300)
    assert math.log(density) <= n * math.log(min(1, above / n)) - below + 1e-9
    assert found.least_density_ratio <= found.density_ratio * (1 + 1e-9)


# ------------------------------------------------------------------ the appendix


def prefers_x(name, quantity):
    x, y = (getattr(EXAMPLES[name][point], quantity) for point in "xy")
    return x > y


def test_step_1_loses_that_every_bag_must_have_an_instance():
    assert not prefers_x("step 1", "absence_ratio")  # smaller is better: x is chosen
    assert not prefers_x("step 1", "diverse_density")  # y is better


def test_step_2_asks_for_all_instances_where_one_would_do():
    assert not prefers_x("step 2", "absence_ratio")  # smaller is better: x is chosen
    assert not prefers_x("step 2", "product_ratio")  # y is chosen
    assert prefers_x("step 2", "diverse_density")


@pytest.mark.parametrize("name", ["step 3, condition", "step 3, number of instances"])
def test_step_3_is_not_theorem_1(name):
    found = EXAMPLES[name]["x"]
    assert meets_bag_condition(found)
    assert not meets_theorem_condition(found)
    assert found.density_ratio > found.product_ratio


def test_a_lower_bound_has_another_maximum():
    for found in EXAMPLES["step 3, maximisers"].values():
        assert meets_theorem_condition(found)
        assert meets_bag_condition(found)
        assert found.density_ratio <= found.product_ratio
    assert not prefers_x("step 3, maximisers", "density_ratio")
    assert prefers_x("step 3, maximisers", "product_ratio")


def test_the_conclusion_fails_even_where_all_conditions_hold():
    x, y = EXAMPLES["conclusion"].values()
    for found in (x, y):
        assert meets_bag_condition(found)
        assert meets_theorem_condition(found)
    assert x.density_ratio == pytest.approx(2 * y.density_ratio)
    assert y.diverse_density > 500 * x.diverse_density


def test_the_last_lemma_in_numbers():
    found = EXAMPLES["last lemma"]["y"]
    assert meets_bag_condition(found)
    assert found.density_ratio > 30 > 1 > found.diverse_density
    assert found.least_density_ratio < found.density_ratio


def test_the_page_shows_the_numbers_of_the_counter_examples():
    text = DOCS.read_text()
    for row in study.counter_example_rows():
        for name, value in row.items():
            if isinstance(value, float):
                assert f"{value:.4g}" in text, (row["name"], name)
    for trial in run_trials():
        assert f"| {trial.n_failures} |" in text


# ------------------------------------------------------------------ the maximisers


def test_the_profile_is_the_likelihood_of_diverse_density():
    made = gmil.make_bags(20, n_features=3, random_state=0)
    positive = made.y == 1
    points = made.bags.instances[:7] + 0.1
    nll, width = profile.density_profile(points, made.bags, positive)
    data = labelled_instances(made.bags.instances, made.bags.offsets, positive)
    scales = np.full(3, 1 / (math.sqrt(2) * width))
    assert_allclose(nll, [concept_nll(Concept(point, scales), data) for point in points])
    wider = np.full(3, 1 / (math.sqrt(2) * 2 * width))
    assert nll.min() <= min(concept_nll(Concept(point, wider), data) for point in points)


def test_ties_are_averaged_over_and_regret_is_relative_to_chance():
    nll = np.array([10.0, 20.0, 30.0, 40.0])
    reach = np.array([1.5, 0.9, 0.1, 0.0])
    tied = agreement.assess(np.array([np.inf, 1.0, np.inf, 0.0]), nll, reach, n_bags=5)
    assert (tied["agreement"], tied["regret"], tied["relative_regret"], tied["ties"]) == (0.5, 2, 10 / 15, 2)
    assert (tied["finds_concept"], tied["reach"]) == (0.5, 0.8)
    worst = agreement.assess(np.array([0.0, 0.0, 0.0, 1.0]), nll, None, n_bags=5)
    assert (worst["agreement"], worst["relative_regret"], worst["finds_concept"]) == (0, 2, None)


def test_ratios_as_printed():
    assert_array_equal(agreement.ratio(np.array([2.0, 3.0, 0.0]), np.array([4.0, 0.0, 0.0])), [0.5, np.inf, 0])


def test_the_window_scores_are_those_of_density_ratio():
    bags, y = gmil.make_bags(30, n_features=3, random_state=2, return_X_y=True)
    in_positive = (y == 1)[bags.segment_ids]
    points = bags.instances[in_positive]
    scores = agreement.window_scores(points, bags.instances, in_positive, {"gaussian": 0.8, "box": 2.0})
    for name, kernel, width in (("eq1-epsilon", "gaussian", 0.8), ("eq2-epsilon", "box", 2.0)):
        model = gmil.DensityRatio(kernel=kernel, width=width, n_candidates=None).fit(bags, y)
        assert model.ratio_ == pytest.approx(scores[name].max())
        assert_array_equal(model.target_, points[scores[name].argmax()])


def test_clear_concepts_are_found_by_all_rules():
    made = gmil.make_bags(60, n_features=3, bag_size=10, witness_rate=0.3, separation=12, random_state=0)
    rows = agreement.measure_agreement(made.bags, made.y == 1, 0, concept=made.centers[0])
    judged = [row for row in rows if row["rule"] != "conditions"]
    assert {row["rule"] for row in judged} == set(agreement.RULES)
    by_rule = {(row["candidates"], row["rule"]): row for row in judged}
    for (candidates, rule), row in by_rule.items():
        if candidates == "centres":
            assert row["finds_concept"] == 1, rule
    assert by_rule["centres", "dd"]["relative_regret"] == 0
    assert all(row["relative_regret"] < 0.2 for row in judged if row["candidates"] == "centres")
    [looked] = [row for row in rows if row["rule"] == "conditions"]
    assert looked["lemma_gaussian"] == looked["lemma_box"] == 1
    assert looked["printed_gaussian"] == 0  # the background of positive bags is no nearer than that of negative ones


def test_rows_that_are_alike_are_averaged():
    rows = [{"value": 0.1, "rule": rule, "regret": regret} for rule, regret in (("a", 1.0), ("b", 5.0), ("a", 3.0))]
    first, second = agreement.summarize(rows, ("value", "rule"))
    assert first == {"value": 0.1, "rule": "a", "n": 2, "regret": 2.0, "regret_error": 1.0}
    assert second == {"value": 0.1, "rule": "b", "n": 1, "regret": 5.0, "regret_error": None}


def test_settings_differ_in_one_respect():
    for name in agreement.VARIED:
        settings = agreement.settings_of(name)
        assert agreement.BASE in settings
        for other in set(agreement.VARIED) - {name}:
            assert {getattr(setting, other) for setting in settings} == {getattr(agreement.BASE, other)}


def test_the_command_writes_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(agreement, "N_CANDIDATES", 20)
    for name in agreement.VARIED:
        monkeypatch.setitem(agreement.VARIED, name, agreement.VARIED[name][1:3])
    monkeypatch.setattr(study, "DATASETS", ("musk1",))
    result = CliRunner().invoke(main, ["paper", "theory", "--seeds", "2", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {f"theory.{end}" for end in ("json", "csv", "svg")}
    summary = json.loads((tmp_path / "theory.json").read_text())
    assert summary["generated"]["seeds"] == 2
    assert {row["varied"] for row in summary["agreement"]} == set(agreement.VARIED)
    assert "real data, centres: agreement" in result.stdout
    assert CliRunner().invoke(main, ["paper", "theory", "--seeds", "0"]).exit_code == 2
