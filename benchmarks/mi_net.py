"""MI-Net with deep supervision, written again from what the code of its authors does: is it gmil, or the protocol?

    python benchmarks/mi_net.py --out mi_net.jsonl --sets fox --protocols theirs --repeats 1
    python benchmarks/mi_net.py --out mi_net.jsonl --backend cuda

Nothing here is of gmil but the data. It does as their code does (github.com/yanyongluan/MINNs): the sum of three
losses, one bag a step, Nesterov momentum, a learning rate that falls by 1e-4 a step, squares of weights in the loss,
features standardised on *all* bags, where a constant one becomes -1, folds that are not stratified, and the last of 50
epochs.
``--protocols`` changes one of the two that look at test bags. All folds and repeats of a set are trained at once.

``best`` is what reporting the best epoch of every test fold would give. Nobody should: it shows how much it flatters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.model_selection import KFold, StratifiedKFold
from torch.nn import functional

from deep import CHOSEN, PUBLISHED
from many_sets import FIVE, Rows, load_set

HIDDEN = (256, 128, 64)
EPOCHS, MOMENTUM, FALL, DROPOUT, TINY = 50, 0.9, 1e-4, 0.5, 1e-6


class Protocol(NamedTuple):
    """What differs between their protocol and one that does not look at test bags."""

    all_scaled: bool
    stratified: bool


PROTOCOLS = {
    "theirs": Protocol(all_scaled=True, stratified=False),
    "theirs-stratified": Protocol(all_scaled=True, stratified=True),
    "theirs-train-scaled": Protocol(all_scaled=False, stratified=False),
    "ours": Protocol(all_scaled=False, stratified=True),
}


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(FIVE))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--backend", default="cpu", help="cpu or cuda")
    asked = parser.parse_args()
    rows = Rows(asked.out, "set", "protocol", "repeat")
    for name in asked.sets.split(","):
        for protocol in asked.protocols.split(","):
            if (name, protocol, asked.repeats - 1) not in rows:
                measure(rows, name, protocol, asked.repeats, asked.backend)
    print_table(rows)


def measure(rows: Rows, name: str, protocol: str, n_repeats: int, backend: str) -> None:
    """Add the accuracy after the last epoch, and at the best epoch of every fold, of all repeats of a set."""
    bags, y, _ = load_set(name)
    y, start = np.unique(y, return_inverse=True)[1], time.perf_counter()
    folds = [fold for seed in range(n_repeats) for fold in folds_of(y, PROTOCOLS[protocol].stratified, seed)]
    tables = standardised(bags, folds, PROTOCOLS[protocol].all_scaled)
    accuracies = Networks(tables, bags.offsets, y, folds, CHOSEN[name], torch.device(backend)).train()
    seconds = time.perf_counter() - start
    by_epoch = accuracies.reshape(EPOCHS, n_repeats, -1)
    last, best = by_epoch[-1].mean(axis=1), by_epoch.max(axis=0).mean(axis=1)
    for repeat in range(n_repeats):
        row = {"set": name, "protocol": protocol, "repeat": repeat, "last": last[repeat], "best": best[repeat]}
        rows.add(row | {"backend": backend, "seconds": round(seconds / n_repeats, 3)})
    print(f"{name} {protocol}: {seconds:.0f} s for {n_repeats} x 10-fold", flush=True)


def folds_of(y: Any, stratified: bool, seed: int) -> list[tuple[Any, Any]]:
    """Return numbers of training and test bags of ten folds."""
    folds = (StratifiedKFold if stratified else KFold)(10, shuffle=True, random_state=seed)
    return list(folds.split(y, y))


def standardised(bags: Any, folds: list[tuple[Any, Any]], all_scaled: bool) -> Any:
    """Return instances as their code scales them, (n_folds, n_rows, n_features), or one table for all folds."""
    instances, bag_of = np.asarray(bags.instances, dtype=float), np.repeat(np.arange(len(bags)), bags.sizes)
    known = [slice(None)] if all_scaled else [np.isin(bag_of, train) for train, _ in folds]
    constant = np.isclose(np.ptp(instances, axis=0), 0)
    tables = []
    for rows in known:
        mean, deviation = instances[rows].mean(axis=0) + TINY, instances[rows].std(axis=0) + TINY
        table = (instances - mean) / deviation
        table[:, np.isclose(np.ptp(instances[rows], axis=0), 0)] = 0  # of test bags alone: they would be huge
        table[:, constant] = -1
        tables.append(table.astype(np.float32))
    return np.stack(tables)


class Networks:
    """A network for every fold, all trained at once; the first axis of everything is that of the networks."""

    def __init__(
        self, tables: Any, offsets: Any, y: Any, folds: list[tuple[Any, Any]], chosen: tuple[float, float], device: Any
    ) -> None:
        self.folds, self.y, self.device = folds, y, device
        self.rate, self.decay = chosen
        self.sizes = np.diff(offsets)
        self.tables = torch.tensor(tables, device=device)
        self.labels = torch.tensor(y, dtype=torch.float32, device=device)
        places = np.arange(self.sizes.max())
        self.inside = torch.tensor(places < self.sizes[:, None], device=device)
        self.rows = torch.tensor(np.minimum(offsets[:-1, None] + places, offsets[-1] - 1), device=device)
        self.table_of = torch.arange(len(folds), device=device)[:, None] if len(tables) > 1 else 0
        self.order = np.random.default_rng(0)
        torch.manual_seed(0)
        widths = [tables.shape[2], *HIDDEN]
        self.weights = [self._glorot(a, b) for a, b in zip(widths, HIDDEN, strict=False)]
        self.weights += [self._glorot(width, 1) for width in HIDDEN]
        self.biases = [torch.zeros(len(folds), 1, weight.shape[2], device=device) for weight in self.weights]
        self.parameters = [each.requires_grad_() for each in (*self.weights, *self.biases)]
        self.velocities = [torch.zeros_like(each) for each in self.parameters]
        self.steps = np.zeros(len(folds))

    def _glorot(self, n_in: int, n_out: int) -> torch.Tensor:
        uniform = torch.rand(len(self.folds), n_in, n_out, device=self.device)
        return (2 * uniform - 1) * (6 / (n_in + n_out)) ** 0.5

    def train(self) -> Any:
        """Return the accuracy on test bags after every epoch, (n_epochs, n_folds)."""
        found = []
        for _ in range(EPOCHS):
            orders = [self.order.permutation(train) for train, _ in self.folds]
            for place in range(max(map(len, orders))):
                self._step(orders, place)
            found.append(self._accuracies())
        return np.array(found)

    def _step(self, orders: list[Any], place: int) -> None:
        """Learn from one bag; a fold that has no more bags in this epoch stands still."""
        moves = np.array([place < len(order) for order in orders])
        bags = np.array([order[min(place, len(order) - 1)] for order in orders])
        labels = self.labels[torch.tensor(bags, device=self.device)]
        logits = self._logits(bags, training=True)
        loss = functional.binary_cross_entropy_with_logits(
            logits, labels[:, None].expand(-1, len(HIDDEN)), reduction="sum"
        )
        gradients = torch.autograd.grad(loss, self.parameters)
        rates = self._per_fold(np.where(moves, self.rate / (1 + FALL * self.steps), 0))
        keeps, moving = self._per_fold(np.where(moves, MOMENTUM, 1)), self._per_fold(moves)
        self.steps += moves
        with torch.no_grad():
            for number, (each, gradient, velocity) in enumerate(
                zip(self.parameters, gradients, self.velocities, strict=True)
            ):
                decayed = gradient + 2 * self.decay * each if number < len(self.weights) else gradient
                velocity.mul_(keeps).sub_(rates * decayed)
                each.add_(moving * MOMENTUM * velocity - rates * decayed)

    def _per_fold(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)[:, None, None]

    def _logits(self, bags: Any, *, training: bool = False) -> torch.Tensor:
        """Return what every layer decides about one bag of every fold, (n_folds, n_layers)."""
        numbers = torch.tensor(bags, device=self.device)[:, None]
        places = torch.arange(int(self.sizes[bags].max()), device=self.device)
        inside, values = self.inside[numbers, places], self.tables[self.table_of, self.rows[numbers, places]]
        found = []
        for layer in range(len(HIDDEN)):
            values = torch.baddbmm(self.biases[layer], values, self.weights[layer]).relu()
            seen = functional.dropout(values, DROPOUT) if training else values
            pooled = seen.masked_fill(~inside[..., None], -torch.inf).amax(dim=1, keepdim=True)
            out = len(HIDDEN) + layer
            found.append(torch.baddbmm(self.biases[out], pooled, self.weights[out])[:, 0, 0])
        return torch.stack(found, dim=1)

    def _accuracies(self) -> Any:
        """Return the share of test bags that the mean probability of the layers is right about."""
        right = np.zeros(len(self.folds))
        for place in range(max(len(test) for _, test in self.folds)):
            bags = np.array([test[min(place, len(test) - 1)] for _, test in self.folds])
            counts = np.array([place < len(test) for _, test in self.folds])
            with torch.no_grad():
                probabilities = self._logits(bags).sigmoid().mean(dim=1).cpu().numpy()
            right += counts * ((probabilities > 0.5) == self.y[bags])
        return right / [len(test) for _, test in self.folds]


def print_table(rows: Rows) -> None:
    """Print accuracies: mean, deviation over repeats, the best mean of five repeats in a row, and best epochs."""
    print("set protocol repeats last sd best-of-fives best published")
    for name, protocol in dict.fromkeys((row["set"], row["protocol"]) for row in rows.rows):
        own = list(rows.of(set=name, protocol=protocol))
        last, best = (100 * np.array([row[key] for row in own]) for key in ("last", "best"))
        fives = [last[at : at + 5].mean() for at in range(0, max(1, len(last) - 4), 5)]
        published = PUBLISHED["mi-net"][FIVE.index(name)]
        figures = (last.mean(), last.std(), max(fives), best.mean(), published)
        print(name, protocol, len(own), *(f"{figure:.1f}" for figure in figures))


if __name__ == "__main__":
    main()
