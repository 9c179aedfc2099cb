"""Wrong labels: the noise model by hand, planted flips, and tables that are corrected and read back."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

import gmil
from gmil.checks.labels import noise
from gmil.checks.labels.noise import flag, suspect, suspect_by_softmax, wrong_among_normals


@pytest.fixture(scope="module")
def planted():
    """Return bags that are told apart well, their labels with four of them flipped, and which."""
    bags, y = gmil.make_bags(60, bag_size=(4, 8), separation=7, witness_rate=0.4, random_state=0, return_X_y=True)
    wrong = np.zeros(60, dtype=bool)
    wrong[[3, 20, 41, 55]] = True
    names = np.array([f"b{i}" for i in range(60)])
    named = gmil.Bags(bags.instances, bags.offsets, bag_ids=names)
    return named, np.where(wrong, 1 - y, y), wrong


@pytest.fixture(scope="module")
def found(planted):
    bags, y, _ = planted
    return gmil.find_label_issues(bags, y, fdr=0.3, n_rounds=2, n_jobs=1)


# ------------------------------------------------------------------ the noise model


def test_a_far_bag_on_the_wrong_side_is_suspected_where_others_are_told_apart():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    clear = 3 * (2 * y - 1) + 0.3 * rng.normal(size=100)
    labels = y.copy()
    labels[:3] = 1 - y[:3]
    wrong = suspect(clear, labels, 0.1).wrong
    assert wrong[:3].min() > 0.8
    assert wrong[3:].max() < 0.05
    vague = 0.3 * (2 * y - 1) + rng.normal(size=100)
    assert suspect(vague, labels, 0.1).wrong.max() < 0.5


def test_several_classes_suggest_the_class_that_evidence_is_for():
    y = np.arange(90) % 3
    evidence = np.random.default_rng(0).normal(scale=0.3, size=(90, 3)) + 4 * np.eye(3)[y]
    labels = y.copy()
    labels[0] = 1
    found = suspect(evidence, labels, 0.1)
    assert found.wrong[0] == found.wrong.max() > 0.8
    assert found.suggested[0] == y[0]
    assert_allclose(found.classes.sum(axis=1), 1)


def test_the_gradient_of_the_likelihood_is_right(monkeypatch):
    """What the solver is given is the slope of what it minimises."""
    seen = {}

    def keep(loss, start, **_):
        seen["loss"] = loss
        return type("Found", (), {"x": start, "fun": 0.0})

    monkeypatch.setattr(noise, "minimize", keep)
    rng = np.random.default_rng(0)
    suspect(rng.normal(size=(20, 3)), np.arange(20) % 3, 0.1)
    point = np.array([0.3, -0.2, 0.5])
    assert_allclose(seen["loss"](point)[1], approx_fprime(point, lambda p: seen["loss"](p)[0], 1e-6), rtol=1e-3)


def test_flags_hold_the_rate_by_their_own_probabilities():
    wrong = np.array([0.99, 0.9, 0.7, 0.6, 0.4, 0.0])
    flagged = flag(wrong, 0.2)
    assert flagged.tolist() == [True, True, True, False, False, False]
    assert (1 - wrong[flagged]).mean() <= 0.2
    assert flag(wrong, 0.05).tolist() == [True, False, False, False, False, False]
    assert not flag(np.full(5, 0.4), 0.9).any()


def test_the_share_of_false_alarms_on_generated_evidence():
    """Normal evidence, one label in ten flipped: the rate holds, and labels as they are have few alarms."""
    rng = np.random.default_rng(0)
    false = flagged = clean = 0
    for _ in range(30):
        y = np.arange(200) % 2
        evidence = 2 * (2 * y - 1) + rng.normal(size=200)
        wrong = rng.permutation(200) < 20
        found = flag(suspect(evidence, np.where(wrong, 1 - y, y), 0.1).wrong, 0.2)
        false, flagged = false + (found & ~wrong).sum(), flagged + found.sum()
        clean += flag(suspect(evidence, y, 0.1).wrong, 0.2).sum()
    assert false / flagged <= 0.2
    assert flagged - false >= 0.5 * 20 * 30
    assert clean <= 0.002 * 200 * 30


def test_a_mixture_of_normals_learns_how_many_labels_are_wrong():
    """A tenth is expected; where three in a hundred are wrong, bags that merely lie far out are not suspected."""
    rng = np.random.default_rng(1)
    y = np.arange(600) % 2
    evidence = np.column_stack([np.zeros(600), 4 * (2 * y - 1) + np.sqrt(8) * rng.normal(size=600)])
    assert wrong_among_normals(evidence, y, 0.1).mean() < 0.03
    wrong = np.arange(600) < 120
    found = wrong_among_normals(evidence, np.where(wrong, 1 - y, y), 0.1)
    assert 0.15 < found.mean() < 0.25
    assert found[wrong].mean() > 0.7
    assert found[~wrong].mean() < 0.1


@pytest.mark.parametrize("model", [wrong_among_normals, lambda *given: suspect_by_softmax(*given).wrong])
def test_the_share_that_is_expected_counts_less_the_more_bags_there_are(model):
    rng = np.random.default_rng(3)
    shares = []
    for n_bags in (40, 400, 2000):
        y = np.arange(n_bags) % 2
        evidence = np.column_stack([np.zeros(n_bags), 3 * (2 * y - 1) + np.sqrt(3) * rng.normal(size=n_bags)])
        shares.append([model(evidence, y, rate).mean() for rate in (0.02, 0.2)])
    apart = np.diff(shares, axis=1)[:, 0]
    assert (np.diff(apart) < 0).all()
    assert apart[-1] < 0.01
    assert np.max(shares[-1]) < 0.02


def test_the_more_careful_of_two_models_counts():
    rng = np.random.default_rng(2)
    y = np.arange(90) % 3
    evidence = rng.normal(size=(90, 3)) + 2 * np.eye(3)[y]
    assert (suspect(evidence, y, 0.1).wrong <= wrong_among_normals(evidence, y, 0.1) + 1e-6).all()


# ------------------------------------------------------------------ bags


def test_planted_flips_come_first_and_are_flagged(found, planted):
    _, y, wrong = planted
    assert set(found.order[:4].tolist()) == {3, 20, 41, 55}
    assert found.flagged[wrong].sum() >= 2
    assert not found.flagged[~wrong].any()
    assert_array_equal(found.suggested[found.flagged], 1 - y[found.flagged])
    assert (found.evidence[wrong] < 0).all()
    assert 0 < found.rate < 0.2


def test_the_strongest_instances_are_numbers_in_the_bag(found, planted):
    bags, *_ = planted
    assert set(found.order[:4].tolist()) <= set(found.strongest)
    assert all(max(numbers) < bags.sizes[i] for i, numbers in found.strongest.items())


def test_the_table_is_corrected_and_read_back(found, planted, tmp_path):
    bags, y, wrong = planted
    file = tmp_path / "issues.csv"
    found.to_csv(file)
    table = pyarrow.csv.read_csv(file)
    assert table.num_rows == 60
    assert table.column("bag")[0].as_py() in {"b3", "b20", "b41", "b55"}
    rows = table.to_pylist()
    for row in rows:
        row["corrected"] = str(1 - row["label"]) if row["bag"] in {"b3", "b20", "b41", "b55"} else None
    pyarrow.csv.write_csv(type(table).from_pylist(rows), file)
    corrected = gmil.apply_corrections(bags, y, file)
    assert_array_equal(corrected, np.where(wrong, 1 - y, y))
    assert corrected.dtype == y.dtype


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bag,corrected\nb99,1\n", "names bags that are not here: b99"),
        ("bag,corrected\nb3,maybe\n", r"corrects bag 3 \(b3\) to 'maybe', which is no class"),
        ("bag,label\nb3,1\n", "must have the columns bag and corrected"),
        ("bag,corrected\nb3,0\nb3,1\n", r"corrects bag 3 \(b3\) twice, to 0 and to 1"),
        ("bag,label,corrected\nb3,7,{other}\n", r"bag 3 \(b3\), whose label was '7', but is . here"),
    ],
)
def test_wrong_corrections_are_refused(planted, tmp_path, text, message):
    bags, y, _ = planted
    (tmp_path / "issues.csv").write_text(text.format(other=1 - y[3]))
    with pytest.raises(gmil.GmilError, match=message):
        gmil.apply_corrections(bags, y, tmp_path / "issues.csv")


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (np.array([0.0, 0.0, 1.0]), "bag,label,corrected\n1,0,1\n"),  # as `to_csv` and spreadsheets write 1.0
        (np.array([0, 0, 1]), "bag,label,corrected\n1,0.0,1.0\n"),
        (np.array([False, False, True]), "bag,label,corrected\n1,FALSE,TRUE\n"),
        (np.array(["no", "no", "yes, rare"]), "\ufeffbag;label;corrected\r\n1;no;yes, rare\r\n2;yes, rare;\r\n"),
    ],
)
def test_tables_of_spreadsheets_are_read_back(tmp_path, labels, text):
    bags = gmil.Bags.from_list([[[0.0]], [[1.0]], [[2.0]]])
    (tmp_path / "issues.csv").write_text(text, encoding="utf-8")
    corrected = gmil.apply_corrections(bags, labels, tmp_path / "issues.csv")
    assert_array_equal(corrected, labels[[0, 2, 2]])
    assert corrected.dtype == labels.dtype
    assert_array_equal(gmil.apply_corrections(bags, corrected, tmp_path / "issues.csv"), corrected)  # once more


def test_labels_of_several_kinds_are_refused(planted):
    bags, y, _ = planted
    with pytest.raises(gmil.BagValidationError, match="one column at a time"):
        gmil.find_label_issues(bags, np.column_stack([y, 1 - y]))


def test_copies_with_different_labels_are_named():
    bags, y = gmil.make_bags(40, bag_size=(3, 5), random_state=0, return_X_y=True)
    both = gmil.Bags.concat([bags, bags[[5]].with_instances(bags[[5]].instances + 1e-5)])
    found = gmil.find_label_issues(both, np.append(y, 1 - y[5]), n_rounds=1, n_jobs=1)
    assert found.duplicates == [(5, 40)]


@pytest.mark.parametrize("asked", [{"fdr": 0}, {"fdr": 1.5}, {"rate": 0}, {"n_rounds": 0}, {"groups": [1] * 60}])
def test_bad_questions_are_refused(planted, asked):
    bags, y, _ = planted
    with pytest.raises(gmil.BagValidationError, match=next(iter(asked))):
        gmil.find_label_issues(bags, y, **asked)


def test_the_command_writes_a_table_and_a_page(planted, tmp_path, run):
    bags, y, _ = planted
    gmil.write(tmp_path / "bags.parquet", bags[:30], y[:30])
    result = run(
        "check", tmp_path / "bags.parquet", "--issues", tmp_path / "issues.csv", "-o", tmp_path / "page.html", "--json"
    )
    assert result.exit_code == 0, result.stderr
    assert '"label_issues"' in result.stdout
    assert "corrected" in (tmp_path / "issues.csv").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "Labels that may be wrong" in page
    assert "strongest instances" in page


@pytest.mark.parametrize(("kind", "text"), [(float, "1"), (bool, "true"), (bool, "TRUE"), (int, "1.0")])
def test_corrections_may_be_written_as_the_table_or_a_spreadsheet_writes_labels(planted, tmp_path, kind, text):
    bags, y, _ = planted
    labels, row = y.astype(kind), int(np.flatnonzero(y == 0)[0])
    (tmp_path / "issues.csv").write_text(f"bag,corrected\n{bags.bag_ids[row]},{text}\n")
    corrected = gmil.apply_corrections(bags, labels, tmp_path / "issues.csv")
    assert_array_equal(np.flatnonzero(corrected != labels), [row])
    assert corrected.dtype == labels.dtype
