"""Networks: each against its paper in NumPy, training together against training alone, stopping, devices, files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tests.methods import deep_reference as reference
from tests.torch_devices import TORCH_BACKENDS

import gmil
from gmil import ABMIL, CLAM, DSMIL, Bags, MeanMLP, MINet, TransMIL

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")

from gmil.methods.deep.batches import KEYS_APART, Dropout, Plan, Table  # noqa: E402
from gmil.methods.deep.layers import branching_perceptron  # noqa: E402
from gmil.methods.deep.training import Job, Schedule, train  # noqa: E402
from gmil.methods.deep.weights import linear, perceptron  # noqa: E402
from gmil.transform.space import Space  # noqa: E402

SHORT = {"epochs": 2, "learning_rate": 0.02, "random_state": 0}
MODELS = {
    "mean": (MeanMLP(hidden=(5,), **SHORT), reference.mean_mlp),
    "mean of features": (MeanMLP(hidden=(), **SHORT), reference.mean_mlp),
    "MI-Net": (MINet(hidden=(6, 5), **SHORT), reference.mi_net),
    "MI-Net, mean": (MINet(hidden=(6, 5), pooling="mean", **SHORT), reference.mi_net),
    "MI-Net, last": (MINet(hidden=(6, 5), deep_supervision=False, **SHORT), reference.mi_net),
    "ABMIL": (ABMIL(hidden=(6, 4), attention_width=3, **SHORT), reference.abmil),
    "gated ABMIL": (ABMIL(hidden=(), attention_width=3, gated=True, **SHORT), reference.abmil),
    "CLAM": (CLAM(hidden=(6,), attention_width=3, n_clustered=2, **SHORT), reference.abmil),
    "DSMIL": (DSMIL(hidden=(6,), attention_width=4, **SHORT), reference.dsmil),
    "DSMIL of features": (DSMIL(hidden=(), attention_width=4, **SHORT), reference.dsmil),
    "TransMIL": (TransMIL(hidden=(8,), n_heads=2, **SHORT), reference.trans_mil),
    "TransMIL, places": (TransMIL(hidden=(8,), n_heads=2, position_encoding=True, **SHORT), reference.trans_mil),
}
every_model = pytest.mark.parametrize(("model", "expected"), MODELS.values(), ids=MODELS)
MEAN_IS_DECISION = ("mean", "ABMIL", "gated ABMIL", "CLAM", "TransMIL", "TransMIL, places")


@pytest.fixture(scope="module")
def problem():
    """Return bags of one to nine instances, the last feature the same in all of them, and labels of three classes."""
    rng = np.random.default_rng(0)
    sizes = rng.permutation(np.tile(np.arange(1, 10), 2))
    X = np.column_stack([rng.normal(size=(sizes.sum(), 3)), np.full(sizes.sum(), 0.3)])
    return Bags(X, np.concatenate([[0], np.cumsum(sizes)])), np.arange(18) % 3


# ------------------------------------------------------------------ networks


@every_model
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_are_those_of_the_paper(model, expected, n_classes, problem):
    bags, y = problem
    model.fit(bags, y % n_classes)
    found = model.decision_function(bags).reshape(len(bags), -1)
    assert_allclose(found, [expected(model, x) for x in reference.scaled_bags(model, bags)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MEAN_IS_DECISION)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mean_of_the_scores_of_a_bag_is_its_decision(name, n_classes, problem):
    bags, y = problem
    model = MODELS[name][0].fit(bags, y % n_classes)
    scores = model.score_instances(bags)
    means = np.array([part.mean(axis=0) for part in np.split(scores, bags.offsets[1:-1])])
    assert_allclose(means, model.decision_function(bags), atol=1e-10)
    assert np.ptp(scores, axis=0).min() > 0


@pytest.mark.parametrize("name", ["mean", "MI-Net", "MI-Net, mean", "DSMIL"])
def test_the_score_of_the_only_instance_is_the_decision(name, problem):
    bags, y = problem
    model = MODELS[name][0].fit(bags, y)
    alone = Bags(bags.instances, np.arange(bags.n_instances + 1))
    assert_allclose(model.score_instances(alone), model.decision_function(alone), atol=1e-10)
    if name != "DSMIL":  # where instances of other bags do not matter
        assert_allclose(model.score_instances(bags), model.decision_function(alone), atol=1e-10)


def test_scores_of_abmil_are_attention_times_logits(problem):
    bags, y = problem
    model = MODELS["ABMIL"][0].fit(bags, y % 2)
    w, found = model.weights_, []
    for x in reference.scaled_bags(model, bags):
        h = reference.layers(w, x)[-1]
        found.append(len(x) * reference.attention(w, h) * (h @ w["out.weight"][:, 0]) + w["out.bias"])
    assert_allclose(model.score_instances(bags), np.concatenate(found), atol=1e-6)


@pytest.mark.parametrize("subtyping", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_loss_of_clam_is_that_of_the_paper(subtyping, n_classes, problem):
    bags, y = problem
    y = y % n_classes
    model = CLAM(hidden=(6,), attention_width=3, n_clustered=2, subtyping=subtyping, **SHORT).fit(bags, y)
    table = Table(bags.instances, bags.offsets, [model.columns_], [model.space_], torch.device("cpu"))
    plan = Plan(table, [np.arange(len(bags))], y, 18, torch.float64)
    weights = {name: torch.from_numpy(each.astype(float))[None] for name, each in model.weights_.items()}
    losses = model._network()(weights, plan.batch(0)).losses[0].numpy()
    scaled = reference.scaled_bags(model, bags)
    assert_allclose(losses, [reference.clam_loss(model, *pair) for pair in zip(scaled, y, strict=True)], rtol=1e-6)


def test_the_order_of_instances_matters_to_position_encoding_alone(problem):
    bags, y = problem
    turned = Bags.from_list([bag[::-1] for bag in bags])
    for name, differs in (("TransMIL", False), ("TransMIL, places", True)):
        model = MODELS[name][0].fit(bags, y % 2)
        gap = np.abs(model.decision_function(turned) - model.decision_function(bags)).max()
        assert (gap > 1e-6) == differs


# ------------------------------------------------------------------ training


@every_model
def test_all_folds_at_once_are_fold_by_fold(model, expected, problem):
    bags, y = problem
    model = type(model)(**{**model.get_params(), "epochs": 4, "batch_size": 4})

    class Alone(type(model)):
        """The same network, without the training of all folds at once."""

    of_instances = np.repeat(y % 2, bags.sizes) * (np.arange(bags.n_instances) % 2)
    how = {"cv": 3, "repeats": 2, "random_state": 5, "instance_y": of_instances}
    together = gmil.cross_validate(model, bags, y % 2, **how)
    apart = gmil.cross_validate(Alone(**model.get_params()), bags, y % 2, **how)
    assert_allclose(together.decisions, apart.decisions, rtol=1e-3, atol=1e-4)
    assert_allclose(together.instance_scores, apart.instance_scores, rtol=1e-3, atol=1e-3)
    assert np.isfinite(together.instance_scores).all()
    assert np.ptp(together.decisions) > 1e-3


def test_folds_with_other_features_settings_groups_and_stopping_are_fold_by_fold(problem):
    bags, y = problem
    X = bags.instances.copy()
    X[bags.offsets[4] :, 1] = 0.5  # the same in all bags of some training folds
    bags = Bags(X, bags.offsets)
    model = ABMIL(hidden=(6,), early_stopping=True, patience=2, epochs=8, learning_rate=0.05)

    class Alone(ABMIL):
        """Without the training of all folds at once."""

    how = {"cv": 4, "groups": np.arange(18) // 2, "param_grid": {"gated": [False, True], "scale": [None, "minmax"]}}
    together = gmil.cross_validate(model, bags, y, **how)
    apart = gmil.cross_validate(Alone(**model.get_params()), bags, y, **how)
    assert_allclose(together.decisions, apart.decisions, rtol=1e-3, atol=1e-4)


def test_steps_are_those_of_adam_with_decoupled_decay():
    rng = np.random.default_rng(0)
    bags, y = Bags(rng.normal(size=(12, 3)), np.arange(0, 13, 2)), np.array([0, 1, 0, 1, 1, 0])
    layout = perceptron(3, (4,)) | linear("out", 4, 1)
    schedule = Schedule(3, 6, 0.05, 0.1, 0.0, None)
    job = Job(np.arange(6), np.arange(6), np.arange(3), Space(), layout, np.random.default_rng(1))
    (found,) = train(MeanMLP()._network(), [job], bags.instances, bags.offsets, y, schedule, torch.device("cpu"))
    generator = np.random.default_rng(1)
    p = {name: torch.from_numpy(weight.draw(generator)).requires_grad_() for name, weight in layout.items()}
    first, second = ({name: torch.zeros_like(each) for name, each in p.items()} for _ in range(2))
    X = torch.from_numpy(bags.instances.astype(np.float32)).reshape(6, 2, 3)
    for epoch in range(3):
        means = (X @ p["hidden0.weight"] + p["hidden0.bias"]).relu().mean(dim=1)
        logits = (means @ p["out.weight"] + p["out.bias"])[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(y).float())
        slopes = torch.autograd.grad(loss, list(p.values()))
        rate = 0.05 * (1 - epoch / 3)
        for (name, each), slope in zip(list(p.items()), slopes, strict=True):
            first[name] = 0.9 * first[name] + 0.1 * slope
            second[name] = 0.999 * second[name] + 0.001 * slope**2
            m, v = first[name] / (1 - 0.9 ** (epoch + 1)), second[name] / (1 - 0.999 ** (epoch + 1))
            decay = 0.1 if "weight" in name else 0.0
            p[name] = (each - rate * (decay * each + m / (v.sqrt() + 1e-8))).detach().requires_grad_()
    for name, each in p.items():
        assert_allclose(found.weights[name], each.detach().numpy(), atol=1e-5, err_msg=name)


def test_steps_are_those_of_gradient_descent_with_nesterov_momentum():
    rng = np.random.default_rng(0)
    bags, y = Bags(rng.normal(size=(12, 3)), np.arange(0, 13, 2)), np.array([0, 1, 0, 1, 1, 0])
    layout = perceptron(3, (4,)) | linear("out", 4, 1)
    schedule = Schedule(4, 6, 0.05, 0.1, 0.0, None, "sgd")
    job = Job(np.arange(6), np.arange(6), np.arange(3), Space(), layout, np.random.default_rng(1))
    (found,) = train(MeanMLP()._network(), [job], bags.instances, bags.offsets, y, schedule, torch.device("cpu"))
    generator = np.random.default_rng(1)
    p = {name: torch.from_numpy(weight.draw(generator)).requires_grad_() for name, weight in layout.items()}
    groups = [
        {"params": [each for name, each in p.items() if "weight" in name], "weight_decay": 0.1},
        {"params": [each for name, each in p.items() if "bias" in name]},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)
    X = torch.from_numpy(bags.instances.astype(np.float32)).reshape(6, 2, 3)
    for _ in range(4):
        optimizer.zero_grad()
        means = (X @ p["hidden0.weight"] + p["hidden0.bias"]).relu().mean(dim=1)
        logits = (means @ p["out.weight"] + p["out.bias"])[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(y).float()).backward()
        optimizer.step()
    for name, each in p.items():
        assert_allclose(found.weights[name], each.detach().numpy(), atol=1e-5, err_msg=name)


def test_dropout_of_mi_net_is_for_its_classifiers_alone():
    """A layer sees all units of the one before; only what is pooled has some left out."""
    layout = perceptron(3, (50, 40))
    generator = np.random.default_rng(0)
    p = {name: torch.from_numpy(weight.draw(generator))[None] for name, weight in layout.items()}
    table = Table(generator.normal(size=(20, 3)), np.arange(0, 21, 4), [np.arange(3)], [Space()], torch.device("cpu"))
    plan = Plan(table, [np.arange(5)], np.zeros(5, dtype=int), 5)
    whole = branching_perceptron(p, plan.batch(0))
    some = branching_perceptron(p, plan.batch(0, Dropout(0.5, torch.tensor([3]))))
    for all_units, kept in zip(whole[1:], some[1:], strict=True):
        assert set(torch.unique(kept == 0).tolist()) == {True, False}
        assert_allclose(kept[kept != 0], 2 * all_units[kept != 0], rtol=1e-6)


def test_dropout_leaves_out_its_share_and_is_the_same_for_every_model_alone():
    keys = torch.tensor([5, 1 << 40, 77])
    values = torch.ones(3, 200, 150)
    found = Dropout(0.3, keys).apply(values, 1)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.7])
    shares = (found == 0).float()
    assert_allclose(shares.mean(dim=(1, 2)), 0.3, atol=0.02)
    assert_allclose(shares.mean(dim=1), 0.3, atol=0.2)
    assert_allclose(shares.mean(dim=2), 0.3, atol=0.25)
    alone = Dropout(0.3, keys[1:2]).apply(values[1:2, :50], 1)
    assert_array_equal(alone[0], found[1, :50])
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[0], Dropout(0.3, keys).apply(values, 2)[0])
    kept = shares - 0.3
    assert abs((kept[:, :, 1:] * kept[:, :, :-1]).mean()) < 0.005  # neighbours know nothing of each other
    assert abs((kept[:, 1:] * kept[:, :-1]).mean()) < 0.005


def test_validation_bags_decide_when_to_stop(gaussian_bags):
    bags, _ = gaussian_bags(n_bags=40)
    noise = np.random.default_rng(0).integers(0, 2, 40)
    how = {"hidden": (16,), "epochs": 60, "learning_rate": 0.05, "dropout": 0, "random_state": 0}
    stopped = MeanMLP(early_stopping=True, patience=5, **how).fit(bags, noise)
    assert stopped.n_epochs_ + 5 == len(stopped.losses_) < 60
    assert MeanMLP(**how).fit(bags, noise).n_epochs_ == 60
    shorter = MeanMLP(**{**how, "epochs": stopped.n_epochs_ + 1}, early_stopping=True, patience=50).fit(bags, noise)
    assert_array_equal(shorter.decision_function(bags), stopped.decision_function(bags))


def test_labels_of_held_out_groups_are_never_trained_on():
    y = np.arange(20) // 2 % 2
    model = MeanMLP(early_stopping=True, random_state=0)
    groups = np.arange(20) // 2
    held_out = model._held_out(y, groups, np.random.default_rng(0))
    assert 2 <= held_out.sum() <= 8
    assert set(groups[held_out]).isdisjoint(groups[~held_out])


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.96])
def test_as_many_bags_are_held_out_as_were_asked_for(share):
    y = np.arange(200) % 2
    held_out = MeanMLP(early_stopping=True, validation_fraction=share)._held_out(y, None, np.random.default_rng(0))
    assert held_out.mean() == pytest.approx(min(share, 0.9), abs=0.01)
    assert y[held_out].mean() == pytest.approx(0.5, abs=0.05)


def test_groups_that_make_one_fold_alone_are_held_out():
    y, groups = np.array([0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0]), np.array([0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1])
    held_out = MeanMLP(early_stopping=True)._held_out(y, groups, np.random.default_rng(0))
    assert held_out.sum() == 4
    assert set(groups[held_out]).isdisjoint(groups[~held_out])


def test_rows_of_large_bags_are_not_dropped_as_in_the_next_step():
    first, second = (Dropout(0.5, torch.tensor([77 * (1 << 20) + step * KEYS_APART])) for step in (1, 2))
    ones = torch.ones(1, 2 * KEYS_APART, 8)
    assert (first.apply(ones, 1)[0, KEYS_APART:] == second.apply(ones, 1)[0, :KEYS_APART]).float().mean() < 0.6


def test_a_class_with_one_bag_can_be_stopped_early_too(gaussian_bags):
    bags, _ = gaussian_bags(n_bags=8)
    y = np.array([1, 0, 0, 0, 0, 0, 0, 0])
    assert MeanMLP(early_stopping=True, epochs=3, random_state=0).fit(bags, y).predict(bags).shape == (8,)


# ------------------------------------------------------------------ devices, files, mistakes


@pytest.mark.parametrize("backend", TORCH_BACKENDS)
@every_model
def test_every_device_decides_alike(model, expected, backend, problem):
    bags, y = problem
    here = model.fit(bags, y % 2).decision_function(bags)
    there = type(model)(**{**model.get_params(), "backend": backend}).fit(bags, y % 2)
    assert_allclose(there.decision_function(bags), here, rtol=1e-3, atol=1e-4)
    assert_allclose(there.set_params(backend="auto").decision_function(bags), here, rtol=1e-3, atol=1e-4)


def test_weights_of_another_network_are_refused(problem, tmp_path):
    bags, y = problem
    model = MODELS["ABMIL"][0].fit(bags, y % 2)
    model.weights_ = {**model.weights_, "out.weight": np.zeros((7, 1), dtype=np.float32)}
    model.save(tmp_path / "model.gmil")
    with pytest.raises(gmil.ModelFileError, match="weights_ must be those of the network"):
        gmil.load(tmp_path / "model.gmil")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MeanMLP(hidden=(8, 0)), "hidden must be the widths"),
        (MINet(hidden=()), "hidden must be the widths of 1 layers or more"),
        (TransMIL(hidden=(12,)), "hidden must end with a multiple of n_heads=8"),
        (MeanMLP(hidden=("wide",)), "hidden must be the widths"),
        (ABMIL(learning_rate=1e30, weight_decay=1), "grew without bound"),
    ],
)
def test_what_no_network_can_be_is_refused(model, message, problem):
    bags, y = problem
    with pytest.raises(gmil.BagValidationError, match=message):
        model.fit(bags, y % 2)


def test_without_pytorch_everything_but_networks_works():
    script = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("No module named 'torch'")
sys.meta_path.insert(0, Missing())
import gmil
bags, y = gmil.make_bags(20, random_state=0, return_X_y=True)
for model in (gmil.ABMIL(), gmil.ABMIL(backend="torch:cuda")):
    try:
        gmil.cross_validate(model, bags, y, cv=2)
    except gmil.BackendUnavailableError as error:
        print(error)
    try:
        model.fit(bags, y)
    except gmil.BackendUnavailableError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert all("PyTorch cannot be loaded" in line and "gmil[torch]" in line for line in lines)


def test_large_sparse_bags_are_never_dense_as_a_whole(problem, monkeypatch):
    bags, y = problem
    monkeypatch.setattr("gmil.methods.deep.batches._DENSE", 0)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    seen = []
    original = sp.csr_array.toarray
    monkeypatch.setattr(
        sp.csr_array, "toarray", lambda self, *a, **k: seen.append(self.shape) or original(self, *a, **k)
    )
    MeanMLP(hidden=(4,), batch_size=3, epochs=1, random_state=0).fit(sparse, y)
    assert max(rows for rows, columns in seen if columns >= 3) < bags.n_instances
