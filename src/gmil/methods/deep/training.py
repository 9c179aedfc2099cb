"""Training of several networks of one kind at once, each on bags of its own; they do not know of each other.

Everything random is drawn for every model alone, so that a model is the same whether others are trained beside it or
not, but for rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from gmil.engine.torch.tensors import to_device, to_host
from gmil.methods.deep.batches import KEYS_APART, Dropout, Plan, Table
from gmil.methods.deep.weights import draw_weights, narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.methods.deep.batches import Batch
    from gmil.methods.deep.networks import Found
    from gmil.methods.deep.weights import Layout
    from gmil.transform.space import Space

    Network = Callable[[Mapping[str, torch.Tensor], Batch], Found]

_MOMENTS = 0.9, 0.999
_EPSILON = 1e-8
_MOMENTUM = 0.9
_BAGS_AT_ONCE = 64
_ROWS_AT_ONCE = {"cpu": 1 << 13, "cuda": 1 << 18}


class Schedule(NamedTuple):
    """How long and how fast networks learn."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    dropout: float
    patience: int | None  # epochs without a better validation loss; None: all epochs
    optimizer: str = "adamw"

    @property
    def rate_falls(self) -> bool:
        """Whether the learning rate falls to zero until the last epoch."""
        return self.patience is None and self.optimizer == "adamw"


class Job(NamedTuple):
    """What one model learns from."""

    training: Integers  # numbers of bags
    validation: Integers  # numbers of bags; none without early stopping
    columns: Integers  # features that it knows
    space: Space  # how it scales these
    layout: Layout
    generator: np.random.Generator


class Trained(NamedTuple):
    """What became of a job."""

    weights: dict[str, Floats]
    n_epochs: int  # after which the weights were taken
    losses: Floats  # (n_epochs in all,): mean training loss of every epoch


def train(
    network: Network,
    jobs: Sequence[Job],
    instances: Any,
    offsets: Integers,
    labels: Integers,
    schedule: Schedule,
    device: Any,
) -> list[Trained]:
    """Train a network for every job, all at once."""
    table = Table(instances, offsets, [job.columns for job in jobs], [job.space for job in jobs], device)
    wide = []
    for job, places in zip(jobs, table.places, strict=True):
        wide.append(widened(draw_weights(job.layout, job.generator), job.layout, places, len(table.columns)))
    weights = _Weights(wide, jobs[0].layout, device)
    run = _Run(network, jobs, table, labels, schedule, weights)
    for epoch in range(schedule.epochs):
        run.epoch(epoch)
        if not run.active.any():
            break
    chosen = weights.arrays() if run.best is None else weights.arrays(run.best)
    losses = np.array(run.losses).T
    return [
        Trained(narrowed(own, job.layout, places), int(n), losses[i])
        for i, (own, job, places, n) in enumerate(zip(chosen, jobs, table.places, run.n_epochs, strict=True))
    ]


class _Weights:
    """The weights of all models as one matrix, (n_models, n_weights), of which the named ones are views."""

    def __init__(self, models: Sequence[Mapping[str, Floats]], layout: Layout, device: Any) -> None:
        self.shapes = {name: array.shape for name, array in models[0].items()}
        rows = [np.concatenate([each[name].ravel() for name in self.shapes]) for each in models]
        self.flat = to_device(np.stack(rows), device).clone()
        decays = [np.full(int(np.prod(shape)), layout[name].decays) for name, shape in self.shapes.items()]
        self.decays = to_device(np.concatenate(decays).astype(np.float32), device)
        self.named = {name: part.detach().requires_grad_() for name, part in self.views(self.flat).items()}

    def views(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the named parts of a matrix of weights."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = flat.split(sizes, dim=1)
        return {name: part.unflatten(1, shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def gradient(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the gradient of a loss by all weights, (n_models, n_weights)."""
        parts = torch.autograd.grad(loss, list(self.named.values()))
        return torch.cat([part.flatten(1) for part in parts], dim=1)

    def arrays(self, flat: torch.Tensor | None = None) -> list[dict[str, Floats]]:
        """Return the weights of every model by name."""
        parts = {name: to_host(part) for name, part in self.views(self.flat if flat is None else flat).items()}
        return [{name: np.ascontiguousarray(part[i]) for name, part in parts.items()} for i in range(len(self.flat))]


class _AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter); every model counts its own steps."""

    def __init__(self, weights: _Weights, weight_decay: float) -> None:
        self.weights, self.decay = weights, weight_decay * weights.decays
        self.first, self.second = torch.zeros_like(weights.flat), torch.zeros_like(weights.flat)

    def step(self, gradient: torch.Tensor, rates: Floats, counts: Floats) -> None:
        """Move the models whose rate is above zero; ``counts`` has the number of this step, (n_models,)."""
        device = gradient.device
        moves = rates > 0
        (b1, b2), steps = _MOMENTS, np.maximum(counts, 1)
        keep1, keep2 = np.where(moves, b1, 1.0), np.where(moves, b2, 1.0)
        scale = np.sqrt(1 - b2**steps) / (1 - b1**steps)
        table = np.stack([keep1, keep2, rates, rates * scale, _EPSILON * np.sqrt(1 - b2**steps)])
        keep1, keep2, rate, scaled, epsilon = to_device(table.astype(np.float32), device)[..., None]
        self.first.mul_(keep1).add_((1 - keep1) * gradient)
        self.second.mul_(keep2).add_((1 - keep2) * gradient.square())
        flat = self.weights.flat
        flat.mul_(1 - rate * self.decay).sub_(scaled * self.first / (self.second.sqrt() + epsilon))


class _SGD:
    """Stochastic gradient descent with Nesterov momentum; weight decay is part of the gradient."""

    def __init__(self, weights: _Weights, weight_decay: float) -> None:
        self.weights, self.decay = weights, weight_decay * weights.decays
        self.velocity = torch.zeros_like(weights.flat)

    def step(self, gradient: torch.Tensor, rates: Floats, counts: Floats) -> None:  # noqa: ARG002
        """Move the models whose rate is above zero."""
        rate, keep = to_device(
            np.stack([rates, np.where(rates > 0, _MOMENTUM, 1.0)]).astype(np.float32), gradient.device
        )[..., None]
        flat, moves = self.weights.flat, (rate > 0).to(gradient.dtype)
        gradient = rate * (gradient + self.decay * flat)
        self.velocity.mul_(keep).sub_(gradient)
        flat.add_(moves * (_MOMENTUM * self.velocity - gradient))


_OPTIMIZERS: dict[str, type[_AdamW | _SGD]] = {"adamw": _AdamW, "sgd": _SGD}


class _Run:
    """The state of a training."""

    def __init__(
        self,
        network: Network,
        jobs: Sequence[Job],
        table: Table,
        labels: Integers,
        schedule: Schedule,
        weights: _Weights,
    ) -> None:
        self.network, self.jobs, self.table, self.labels = network, jobs, table, labels
        self.schedule, self.weights = schedule, weights
        self.optimizer = _OPTIMIZERS[schedule.optimizer](weights, schedule.weight_decay)
        self.active: Booleans = np.ones(len(jobs), dtype=bool)
        self.counts = np.zeros(len(jobs))
        self.keys = np.array([job.generator.integers(1 << 32) for job in jobs])
        self.n_epochs = np.zeros(len(jobs), dtype=np.int64)
        self.losses: list[Floats] = []
        self.best: torch.Tensor | None = None
        self.least = np.full(len(jobs), np.inf)

    def epoch(self, number: int) -> None:
        """See every training bag once, then the validation bags."""
        orders = [job.generator.permutation(job.training) for job in self.jobs]
        plan = Plan(self.table, orders, self.labels, self.schedule.batch_size)
        total = torch.zeros(len(self.jobs), device=self.table.device)
        n_steps = plan.n_batches
        for place in range(int(n_steps.max())):
            self.counts += (place < n_steps) & self.active
            batch = plan.batch(place, self._dropout())
            losses = self._losses(batch)
            total += losses.detach().sum(dim=1)
            means = losses.sum(dim=1) / (batch.sizes > 0).sum(dim=1).clamp(min=1)
            self.optimizer.step(self.weights.gradient(means.sum()), self._rates(number, place, n_steps), self.counts)
        self.losses.append(to_host(total) / plan.n_bags)
        if self.schedule.patience is None:
            self.n_epochs[:] = number + 1
        else:
            self._validate(number, self.schedule.patience)

    def _losses(self, batch: Batch) -> torch.Tensor:
        losses = self.network(self.weights.named, batch).losses
        assert losses is not None
        return losses * (batch.sizes > 0)

    def _dropout(self) -> Dropout | None:
        if not self.schedule.dropout:
            return None
        keys = self.keys * (1 << 20) + self.counts.astype(np.int64) * KEYS_APART
        return Dropout(self.schedule.dropout, to_device(keys, self.table.device))

    def _rates(self, epoch: int, place: int, n_steps: Integers) -> Floats:
        """Return the learning rate of every model in this step; zero where it has no batch, or has stopped."""
        left = 1 - (epoch + place / n_steps) / self.schedule.epochs if self.schedule.rate_falls else 1.0
        return np.where((place < n_steps) & self.active, self.schedule.learning_rate * left, 0.0)

    def _validate(self, number: int, patience: int) -> None:
        """Keep weights with the least loss of validation bags; stop models that have had no better for long."""
        plan = Plan(self.table, [job.validation for job in self.jobs], self.labels)
        with torch.no_grad():
            found = sum(self._losses(batch).sum(dim=1) for batch in plan)
        losses = to_host(found) / np.maximum(plan.n_bags, 1)
        better = self.active & (losses < self.least)
        self.least[better], self.n_epochs[better] = losses[better], number + 1
        self.best = self.weights.flat.clone() if self.best is None else self.best
        rows = to_device(np.flatnonzero(better), self.table.device)
        self.best[rows] = self.weights.flat[rows]
        self.active &= number + 1 - self.n_epochs < patience


# -------------------------------------------------------------------------------- prediction


def decide(
    network: Network,
    trained: Sequence[Mapping[str, Floats]],
    table: Table,
    orders: Sequence[Integers],
    *,
    of_instances: bool = False,
) -> list[Floats]:
    """Return decisions about bags of every model, (n_bags, n_outputs), or scores of their instances.

    Weights are those of the columns of the table. Numbers are of double precision, so that neither the order nor the
    company of bags matters.
    """
    p = {
        name: to_device(np.stack([each[name] for each in trained]), table.device, torch.float64) for name in trained[0]
    }
    found: list[list[Floats]] = [[] for _ in trained]
    rows = _ROWS_AT_ONCE[table.device.type] // len(trained)
    with torch.no_grad():
        for some in _blocks(orders, np.diff(table.offsets), rows):
            plan = Plan(table, some, None, max(1, *map(len, some)), torch.float64)
            batch = plan.batch(0)
            result = network(p, batch)
            values = to_host(result.scores() if of_instances else result.decisions)
            for own, part, order, offsets in zip(found, values, some, plan.offsets, strict=True):
                own.append(part[: int(offsets[-1]) if of_instances else len(order)])
    return [np.concatenate(own) for own in found]


def _blocks(orders: Sequence[Integers], sizes: Integers, n_rows: int) -> list[list[Integers]]:
    """Cut the bags of all models into runs of at most 64 bags, and of about so many rows where bags are smaller."""
    blocks, at = [], np.zeros(len(orders), dtype=np.int64)
    ends = np.array([len(order) for order in orders])
    while (at < ends).any():
        stops = []
        for order, start in zip(orders, at.tolist(), strict=True):
            reached = np.cumsum(sizes[order[start : start + _BAGS_AT_ONCE]])
            stops.append(start + max(int((reached <= n_rows).sum()), min(1, len(reached))))
        blocks.append([order[a:b] for order, a, b in zip(orders, at.tolist(), stops, strict=True)])
        at = np.array(stops)
    return blocks
