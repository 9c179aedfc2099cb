"""TransMIL: instances and a class token attend to each other, and the class token decides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

from gmil.methods.deep.layers import bag_losses, layer_norm, linear, perceptron, take_rows
from gmil.methods.deep.networks import Found
from gmil.methods.deep.trans_mil import KERNELS

if TYPE_CHECKING:
    from gmil.methods.deep.batches import Batch
    from gmil.methods.deep.layers import Tensors


class Tokens(NamedTuple):
    """Every bag as a sequence, padded to the longest."""

    rows: torch.Tensor  # (n_models, n_bags, n_tokens): the instance of every token
    inside: torch.Tensor  # (n_models, n_bags, n_tokens): whether it is one
    side: torch.Tensor | None  # (n_models, n_bags, 1): the side of the square, where positions count


def trans_mil(p: Tensors, batch: Batch, n_heads: int) -> Found:
    """Two layers of attention, with convolutions between them where there is a position encoding."""
    values = perceptron(p, batch)[-1]
    tokens = _tokens(batch, squared="conv3.weight" in p)
    sequence = take_rows(values, tokens.rows) * tokens.inside[..., None]
    first = p["token"][:, None, None].expand(-1, batch.n_bags, 1, -1)
    known = functional.pad(tokens.inside, (1, 0), value=True)
    everything = _attend(p, torch.cat([first, sequence], dim=2), known, n_heads)
    if tokens.side is not None:
        everything = torch.cat([everything[:, :, :1], _with_positions(p, everything[:, :, 1:], tokens)], dim=2)
    added = _added_to_token(p, everything, known, n_heads)
    token = everything[:, :, 0] + added.sum(dim=2) + p["layer2.out.bias"][:, None]
    logits = linear(p, "out", layer_norm(p, "norm", token))
    losses = None if batch.labels is None else bag_losses(logits, batch.labels)
    return Found(logits, losses, lambda: _scores(p, token, added[:, :, 1:], logits, tokens, batch))


def _tokens(batch: Batch, *, squared: bool) -> Tokens:
    """Return the instances of every bag in a row; squared, the first ones follow again until they fill a square."""
    sizes = batch.sizes[..., None]
    side = sizes.to(torch.float64).sqrt().ceil().long() if squared else None
    lengths = sizes if side is None else side**2
    places = torch.arange(max(int(lengths.max()), 1), device=sizes.device)
    inside = places < lengths
    numbers = torch.where(places < sizes, places, places - sizes)
    rows = torch.where(inside, batch.starts[..., None] + numbers, 0)
    return Tokens(rows, inside, side)


def _heads(values: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Split units into heads: (..., n_tokens, n_units) to (..., n_heads, n_tokens, n_units of a head)."""
    return values.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def _mapped(p: Tensors, name: str, values: torch.Tensor) -> torch.Tensor:
    return linear(p, name, values.flatten(1, 2)).unflatten(1, values.shape[1:3])


def _attend(p: Tensors, x: torch.Tensor, known: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Add to every token, (n_models, n_bags, n_tokens, n_units), what it attends to: exact softmax attention."""
    normal = layer_norm(p, "layer1.norm", x)
    queries, keys, contents = (
        _heads(_mapped(p, f"layer1.{part}", normal), n_heads).flatten(0, 1) for part in ("query", "key", "value")
    )
    mask = known.flatten(0, 1)[:, None, None]
    found = functional.scaled_dot_product_attention(queries, keys, contents, attn_mask=mask)
    joined = found.transpose(1, 2).flatten(2).unflatten(0, x.shape[:2])
    return x + _mapped(p, "layer1.out", joined)


def _added_to_token(p: Tensors, x: torch.Tensor, known: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Return what every token adds to the class token in the second layer, (n_models, n_bags, n_tokens, n_units)."""
    normal = layer_norm(p, "layer2.norm", x)
    query = _heads(_mapped(p, "layer2.query", normal[:, :, :1]), n_heads)
    keys, contents = (_heads(_mapped(p, f"layer2.{part}", normal), n_heads) for part in ("key", "value"))
    products = (query * keys).sum(dim=-1) / math.sqrt(keys.shape[-1])  # (n_models, n_bags, n_heads, n_tokens)
    weights = products.masked_fill(~known[:, :, None], -torch.inf).softmax(dim=-1)
    attended = (weights[..., None] * contents).transpose(2, 3).flatten(3)
    return torch.bmm(attended.flatten(1, 2), p["layer2.out.weight"]).unflatten(1, x.shape[1:3])


def _with_positions(p: Tensors, x: torch.Tensor, tokens: Tokens) -> torch.Tensor:
    """Add convolutions over the square that the tokens of a bag fill, row by row, to every token."""
    assert tokens.side is not None
    n_models, n_bags, n_tokens, width = x.shape
    side = int(tokens.side.max())
    numbers = torch.arange(n_tokens, device=x.device)
    own = tokens.side.clamp(min=1)
    places = torch.where(tokens.inside, numbers // own * side + numbers % own, side * side)[..., None].expand_as(x)
    square = x.new_zeros(n_models, n_bags, side * side + 1, width).scatter(2, places, x)[:, :, :-1]
    picture = square.permute(1, 0, 3, 2).reshape(n_bags, n_models * width, side, side)
    added = torch.zeros_like(picture)
    for size in KERNELS:
        kernel, bias = p[f"conv{size}.weight"].reshape(-1, 1, size, size), p[f"conv{size}.bias"].flatten()
        added = added + functional.conv2d(picture, kernel, bias, padding=size // 2, groups=n_models * width)
    back = added.reshape(n_bags, n_models, width, -1).permute(1, 0, 3, 2)
    return (x + functional.pad(back, (0, 0, 0, 1)).gather(2, places)) * tokens.inside[..., None]


def _scores(
    p: Tensors, token: torch.Tensor, added: torch.Tensor, logits: torch.Tensor, tokens: Tokens, batch: Batch
) -> torch.Tensor:
    """Return what instances add to the decision in the second layer, times the size of the bag; the rest for all.

    The last normalisation divides by one number of the bag. With that number as it is the decision is linear in what
    the tokens add, so that the mean of the scores of a bag is its decision.
    """
    direction = p["norm.scale"][..., None] * p["out.weight"]
    direction = direction - direction.mean(dim=1, keepdim=True)
    spread = (token.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()[:, :, None]
    effects = torch.bmm(added.flatten(1, 2), direction).unflatten(1, added.shape[1:3]) / spread
    effects = effects * tokens.inside[..., None]
    rest = logits - effects.sum(dim=2)
    of_rows = added.new_zeros(*batch.bag_of.shape, logits.shape[-1])
    of_rows = of_rows.scatter_add(
        1, tokens.rows.flatten(1)[..., None].expand(-1, -1, logits.shape[-1]), effects.flatten(1, 2)
    )
    places = batch.bag_of.clamp(max=batch.n_bags - 1)
    return of_rows * batch.size_of + take_rows(rest, places)
