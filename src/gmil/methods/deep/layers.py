"""What networks are made of, for several models at once: the first axis of everything is that of the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gmil.methods.deep.batches import Batch

    Tensors = Mapping[str, torch.Tensor]

_OUTSIDE = -1e30


def linear(p: Tensors, name: str, values: torch.Tensor) -> torch.Tensor:
    """Apply a linear map to (n_models, n_rows, n_in)."""
    bias = p.get(f"{name}.bias")
    weight = p[f"{name}.weight"]
    return torch.bmm(values, weight) if bias is None else torch.baddbmm(bias[:, None], values, weight)


def perceptron(p: Tensors, batch: Batch) -> list[torch.Tensor]:
    """Return instances as they were given and after every hidden layer: linear, ReLU, dropout."""
    found = [batch.rows]
    while f"hidden{len(found) - 1}.weight" in p:
        found.append(dropped(_hidden(p, found), batch, len(found) - 1))
    return found


def branching_perceptron(p: Tensors, batch: Batch) -> list[torch.Tensor]:
    """Return the same where dropout is for what is made of a layer, and the next layer sees all units."""
    found = [batch.rows]
    while f"hidden{len(found) - 1}.weight" in p:
        found.append(_hidden(p, found))
    return [batch.rows, *(dropped(values, batch, number) for number, values in enumerate(found[1:]))]


def _hidden(p: Tensors, before: list[torch.Tensor]) -> torch.Tensor:
    return linear(p, f"hidden{len(before) - 1}", before[-1]).relu()


def dropped(values: torch.Tensor, batch: Batch, layer: int) -> torch.Tensor:
    """Return units of a layer with some left out, in training."""
    return values if batch.dropout is None else batch.dropout.apply(values, layer)


def attention_logits(p: Tensors, values: torch.Tensor) -> torch.Tensor:
    """Return w tanh(V h), times the sigmoid of U h inside where there is a gate, (n_models, n_rows)."""
    inner = linear(p, "attention", values).tanh()
    if "gate.weight" in p:
        inner = inner * linear(p, "gate", values).sigmoid()
    return linear(p, "query", inner)[..., 0]


def softmax_in_bags(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return weights of instances that sum to one in every bag, (n_models, n_bags, n_rows), zero outside of it."""
    inside = logits[:, None].masked_fill(~batch.members, _OUTSIDE)
    return inside.softmax(dim=-1) * batch.members


def mean_in_bags(batch: Batch) -> torch.Tensor:
    """Return the weights of a plain mean, (n_models, n_bags, n_rows)."""
    return batch.members / batch.sizes[..., None].clamp(min=1).to(batch.rows.dtype)


def max_in_bags(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the largest value of every unit in every bag, (n_models, n_bags, n_units); of equals all share a slope."""
    shape = (len(values), batch.n_bags + 1, values.shape[2])
    places = batch.bag_of[..., None].expand_as(values)
    least = values.new_zeros(shape)
    return least.scatter_reduce(1, places, values, "amax", include_self=False)[:, : batch.n_bags]


def argmax_in_bags(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the row of the largest value in every bag, (n_models, n_bags, n_columns)."""
    return torch.stack(
        [
            values[:, None, :, column].masked_fill(~batch.members, _OUTSIDE).argmax(dim=-1)
            for column in range(values.shape[2])
        ],
        dim=-1,
    )


def take_rows(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return rows of every model, (n_models, ..., n_units), given their numbers, (n_models, ...)."""
    flat = rows.reshape(len(rows), -1, 1).expand(-1, -1, values.shape[-1])
    return values.gather(1, flat).reshape(*rows.shape, values.shape[-1])


def layer_norm(p: Tensors, name: str, values: torch.Tensor) -> torch.Tensor:
    """Normalise units, the last axis of (n_models, ..., n_units)."""
    middle = (1,) * (values.dim() - 2)
    scale, shift = (p[f"{name}.{part}"].reshape(len(values), *middle, -1) for part in ("scale", "shift"))
    return functional.layer_norm(values, values.shape[-1:]) * scale + shift


def bag_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the logistic loss of every bag, (n_models, n_bags), or with several columns the cross-entropy."""
    if logits.shape[-1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[..., 0], labels.to(logits.dtype), reduction="none")
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").reshape(labels.shape)
