"""The networks as their papers write them: one bag after the other, in NumPy, from the weights of a fitted model."""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate2d
from scipy.special import expit, softmax


def scaled_bags(model, bags):
    """Return every bag as the network sees it."""
    return [model.space_.apply(bag[:, model.columns_]) for bag in bags]


def apply(w, name, x):
    return x @ w[f"{name}.weight"].astype(float) + w.get(f"{name}.bias", 0.0)


def layers(w, x):
    found = [x]
    while f"hidden{len(found) - 1}.weight" in w:
        found.append(np.maximum(apply(w, f"hidden{len(found) - 1}", found[-1]), 0))
    return found


def mean_mlp(model, x):
    h = layers(model.weights_, x)[-1]
    return apply(model.weights_, "out", h.mean(axis=0))


def mi_net(model, x):
    """Return the logit of the mean of probabilities, or the logarithm of the mean."""
    w, found = model.weights_, []
    for number, h in enumerate(layers(w, x)):
        if f"out{number}.weight" in w:
            pooled = h.max(axis=0) if model.pooling == "max" else h.mean(axis=0)
            found.append(apply(w, f"out{number}", pooled))
    if len(found[0]) == 1:
        p = np.mean([expit(z) for z in found], axis=0)
        return np.log(p / (1 - p))
    return np.log(np.mean([softmax(z) for z in found], axis=0))


def attention(w, h):
    """Return the softmax of w tanh(V h), with a gate where there is one."""
    inner = np.tanh(apply(w, "attention", h))
    if "gate.weight" in w:
        inner = inner * expit(apply(w, "gate", h))
    return softmax(inner @ w["query.weight"][:, 0])


def abmil(model, x):
    w = model.weights_
    h = layers(w, x)[-1]
    return apply(w, "out", attention(w, h) @ h)


def clam_loss(model, x, label):
    """Return the loss of a bag: 0.7 of its own, 0.3 of the instances with the most and the least attention."""
    w = model.weights_
    h = layers(w, x)[-1]
    weights = attention(w, h)
    logits = apply(w, "out", weights @ h)
    own = -np.log(expit(logits[0] if label else -logits[0])) if len(logits) == 1 else -np.log(softmax(logits)[label])
    order = np.argsort(-weights)
    most, least = (len(x) + 1) // 2, len(x) // 2
    top, bottom = order[: min(model.n_clustered, most)], order[::-1][: min(model.n_clustered, least)]
    evidence = apply(w, "cluster", h)
    # The smooth support vector loss of two outputs s, -s and margin 1: log(1 + exp(1 - s)).
    losses = [np.log1p(np.exp(1 - evidence[i, label])) for i in top]
    losses += [np.log1p(np.exp(1 + evidence[i, label])) for i in bottom]
    if model.subtyping:
        others = [c for c in range(evidence.shape[1]) if c != label]
        losses += [np.log1p(np.exp(1 + evidence[i, c])) for i in top for c in others]
    return model.bag_weight * own + (1 - model.bag_weight) * np.mean(losses)


def dsmil(model, x):
    w = model.weights_
    h = layers(w, x)[-1]
    scores = apply(w, "instance", h)
    queries, values = apply(w, "query", h), apply(w, "value", h)
    pooled = []
    for column in range(scores.shape[1]):
        critical = scores[:, column].argmax()
        weights = softmax(queries @ queries[critical] / np.sqrt(queries.shape[1]))
        pooled.append(weights @ values)
    return (scores.max(axis=0) + apply(w, "out", np.concatenate(pooled))) / 2


def normal(w, name, x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * w[f"{name}.scale"] + w[f"{name}.shift"]


def attend(w, layer, x, n_heads):
    """Return multi-head attention of all tokens, with the tokens added."""
    y = normal(w, f"{layer}.norm", x)
    parts = []
    q, k, v = (np.split(apply(w, f"{layer}.{part}", y), n_heads, axis=1) for part in ("query", "key", "value"))
    for head in range(n_heads):
        weights = softmax(q[head] @ k[head].T / np.sqrt(q[head].shape[1]), axis=1)
        parts.append(weights @ v[head])
    return x + apply(w, f"{layer}.out", np.concatenate(parts, axis=1))


def with_positions(w, x):
    """Return tokens of a square with convolutions of every unit added."""
    side = int(np.sqrt(len(x)))
    found = x.copy()
    for size in (7, 5, 3):
        for unit in range(x.shape[1]):
            picture = np.pad(x[:, unit].reshape(side, side), size // 2)
            kernel = w[f"conv{size}.weight"][unit].astype(float)
            found[:, unit] += correlate2d(picture, kernel, mode="valid").ravel() + w[f"conv{size}.bias"][unit]
    return found


def trans_mil(model, x):
    w = model.weights_
    h = layers(w, x)[-1]
    if model.position_encoding:
        side = int(np.ceil(np.sqrt(len(h))))
        h = np.vstack([h, h[: side**2 - len(h)]])
    tokens = attend(w, "layer1", np.vstack([w["token"], h]), model.n_heads)
    if model.position_encoding:
        tokens = np.vstack([tokens[:1], with_positions(w, tokens[1:])])
    tokens = attend(w, "layer2", tokens, model.n_heads)
    return apply(w, "out", normal(w, "norm", tokens[0]))
