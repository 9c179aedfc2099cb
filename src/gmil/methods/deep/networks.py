"""The networks: from a batch of bags to decisions, losses and scores of instances, for several models at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

from gmil.methods.deep.layers import (
    argmax_in_bags,
    attention_logits,
    bag_losses,
    branching_perceptron,
    linear,
    max_in_bags,
    mean_in_bags,
    perceptron,
    softmax_in_bags,
    take_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.methods.deep.batches import Batch
    from gmil.methods.deep.layers import Tensors


class Found(NamedTuple):
    """What a network finds in a batch."""

    decisions: torch.Tensor  # (n_models, n_bags, n_outputs)
    losses: torch.Tensor | None  # (n_models, n_bags); None without labels
    scores: Callable[[], torch.Tensor]  # of instances, (n_models, n_rows, n_outputs)


def mean_mlp(p: Tensors, batch: Batch) -> Found:
    """Mean of the instances behind the hidden layers, and a linear map."""
    values = perceptron(p, batch)[-1]
    logits = linear(p, "out", torch.bmm(mean_in_bags(batch), values))
    return Found(logits, _losses(logits, batch), lambda: linear(p, "out", values))


# -------------------------------------------------------------------------------- MI-Net


def mi_net(p: Tensors, batch: Batch, pooling: str) -> Found:
    """Pool behind every hidden layer (or the last alone), a linear map on each, and the mean of the probabilities."""
    layers = branching_perceptron(p, batch)
    numbers = [number for number in range(len(layers)) if f"out{number}.weight" in p]
    heads = [linear(p, f"out{number}", _pooled(layers[number], batch, pooling)) for number in numbers]
    losses = None if batch.labels is None else sum(bag_losses(head, batch.labels) for head in heads) / len(heads)

    def alone() -> torch.Tensor:
        return _of_mean_probability([linear(p, f"out{number}", layers[number]) for number in numbers])

    return Found(_of_mean_probability(heads), losses, alone)


def _pooled(values: torch.Tensor, batch: Batch, pooling: str) -> torch.Tensor:
    return max_in_bags(values, batch) if pooling == "max" else torch.bmm(mean_in_bags(batch), values)


def _of_mean_probability(heads: list[torch.Tensor]) -> torch.Tensor:
    """Return the logits of the mean of the probabilities of several heads."""
    logits = torch.stack(heads)
    if logits.shape[-1] > 1:
        return logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(heads))
    return functional.logsigmoid(logits).logsumexp(dim=0) - functional.logsigmoid(-logits).logsumexp(dim=0)


# -------------------------------------------------------------------------------- attention


def abmil(p: Tensors, batch: Batch) -> Found:
    """Attention pooling: a mean weighted by a softmax over the instances of the bag."""
    values = perceptron(p, batch)[-1]
    weights = softmax_in_bags(attention_logits(p, values), batch)
    logits = linear(p, "out", torch.bmm(weights, values))
    return Found(logits, _losses(logits, batch), lambda: _attended(p, values, weights, batch))


def _attended(p: Tensors, values: torch.Tensor, weights: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return what every instance adds to the decision, times the size of its bag: their mean is the decision."""
    own = weights.sum(dim=1)[..., None] * batch.size_of
    return own * torch.bmm(values, p["out.weight"]) + p["out.bias"][:, None]


def clam(p: Tensors, batch: Batch, n_clustered: int, bag_weight: float, subtyping: bool) -> Found:
    """Gated attention pooling, and a loss that wants instances of much and of little attention apart."""
    values = perceptron(p, batch)[-1]
    attention = attention_logits(p, values)
    weights = softmax_in_bags(attention, batch)
    logits = linear(p, "out", torch.bmm(weights, values))
    losses = _losses(logits, batch)
    if losses is not None:
        clustering = _clustering_losses(p, values, attention.detach(), batch, n_clustered, subtyping)
        losses = bag_weight * losses + (1 - bag_weight) * clustering
    return Found(logits, losses, lambda: _attended(p, values, weights, batch))


def _clustering_losses(
    p: Tensors, values: torch.Tensor, attention: torch.Tensor, batch: Batch, n_clustered: int, subtyping: bool
) -> torch.Tensor:
    """Return the smooth support vector loss (margin 1, temperature 1) of the most and the least attended instances.

    The most attended half of a bag, at most so many, are positive for the class of the bag and the least attended half
    negative. With ``subtyping``, the most attended are negative for all other classes, too.
    """
    assert batch.labels is not None
    n_classes = p["cluster.weight"].shape[2]
    k = min(n_clustered, values.shape[1])
    places = torch.arange(k, device=values.device)
    halves = (batch.sizes + 1) // 2, batch.sizes // 2
    losses, counts = [], []
    own = functional.one_hot(batch.labels, n_classes)[:, :, None].to(values.dtype)
    for sign, half in zip((1, -1), halves, strict=True):
        inside = (sign * attention)[:, None].masked_fill(~batch.members, -torch.inf)
        some = take_rows(values, inside.topk(k, dim=-1).indices)
        evidence = linear(p, "cluster", some.flatten(1, 2)).reshape(*some.shape[:3], n_classes)
        counted = (places < half[..., None])[..., None] * own
        losses.append((functional.softplus(1 - sign * evidence) * counted).sum(dim=(2, 3)))
        counts.append(counted.sum(dim=(2, 3)))
        if subtyping and sign == 1:
            others = (places < half[..., None])[..., None] * (1 - own)
            losses.append((functional.softplus(1 + evidence) * others).sum(dim=(2, 3)))
            counts.append(others.sum(dim=(2, 3)))
    return sum(losses) / sum(counts).clamp(min=1)


def dsmil(p: Tensors, batch: Batch) -> Found:
    """Two streams: the largest score of an instance, and attention by the likeness to the instance that has it."""
    values = perceptron(p, batch)[-1]
    own = linear(p, "instance", values)
    critical = argmax_in_bags(own, batch)  # (n_models, n_bags, n_outputs)
    largest = torch.stack([own[..., c].gather(1, critical[..., c]) for c in range(own.shape[2])], dim=-1)
    queries, contents = linear(p, "query", values), linear(p, "value", values)
    weights = _likeness(queries, take_rows(queries, critical), batch)
    pooled = torch.einsum("mbcr,mrv->mbcv", weights, contents).flatten(2)
    of_bag = linear(p, "out", pooled)
    losses = None
    if batch.labels is not None:
        losses = (bag_losses(largest, batch.labels) + bag_losses(of_bag, batch.labels)) / 2

    def scores() -> torch.Tensor:
        out = p["out.weight"].unflatten(1, (own.shape[2], -1))  # (n_models, of which instance, n_values, n_outputs)
        added = torch.einsum("mcr,mrv,mcvo->mro", weights.sum(dim=1), contents, out)
        return (own + added * batch.size_of + p["out.bias"][:, None]) / 2

    return Found((largest + of_bag) / 2, losses, scores)


def _likeness(queries: torch.Tensor, critical: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return weights of instances by their product with critical ones, (n_models, n_bags, n_outputs, n_rows)."""
    products = torch.einsum("mbcq,mrq->mbcr", critical, queries) / math.sqrt(queries.shape[-1])
    members = batch.members[:, :, None]
    return products.masked_fill(~members, -1e30).softmax(dim=-1) * members


def _losses(logits: torch.Tensor, batch: Batch) -> torch.Tensor | None:
    return None if batch.labels is None else bag_losses(logits, batch.labels)
