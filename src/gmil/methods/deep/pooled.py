"""Networks without attention: the mean of instances, and MI-Net."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gmil.base import grouped_fit, register
from gmil.methods.deep.estimator import DeepClassifier
from gmil.methods.deep.folds import train_together
from gmil.methods.deep.texts import described
from gmil.methods.deep.weights import linear, perceptron
from gmil.parameters import parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.methods.deep.training import Network
    from gmil.methods.deep.weights import Layout


@register(method="mean-mlp")
@parameters
@described
class MeanMLP(DeepClassifier):
    """Mean-pooling network: hidden layers on instances, their mean over the bag, and a linear map.

    The plainest network on bags. It sees how many instances are of a kind, not which: what does not beat it has
    no use for attention.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        The widths of the hidden layers, each with ReLU. None at all, ``()``, is logistic regression on means.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are logits. The score of an instance is the logit of a bag of it alone; the mean of the scores of a bag is
    its decision.

    Examples
    --------
    >>> from gmil import MeanMLP, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = MeanMLP(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths = self._widths()
        last = widths[-1] if widths else n_columns
        return perceptron(n_columns, widths) | linear("out", last, n_outputs, of_input=not widths)

    def _network(self) -> Network:
        from gmil.methods.deep.networks import mean_mlp

        return mean_mlp


@register(method="mi-net")
@parameters
@described
class MINet(DeepClassifier):
    """MI-Net of Wang et al. (2018): pooling behind hidden layers, with deep supervision.

    A bag is pooled behind every hidden layer. Each has a classifier and a loss of its own, and the mean of their
    probabilities decides.

    Parameters
    ----------
    hidden : tuple of int, default=(256, 128, 64)
        The widths of the hidden layers, each with ReLU; one at least.
    pooling : {"max", "mean"}, default="max"
        How the instances of a bag become one vector.
    deep_supervision : bool, default=True
        Whether every hidden layer has a classifier; False is the last alone.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are logits of the mean probability. The score of an instance is the decision about a bag of it alone.

    The paper trains by stochastic gradient descent, one bag at a time.

    References
    ----------
    X. Wang et al.: Revisiting multiple instance neural networks. Pattern Recognition 74, 2018.

    Examples
    --------
    >>> from gmil import MINet, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = MINet(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    hidden: Sequence[int] = (256, 128, 64)
    pooling: str = parameter(default="max", rules=[{"max", "mean"}])
    deep_supervision: bool = parameter(default=True, rules=["boolean"])
    dropout: float = 0.5

    _kept_parameters = ("hidden", "pooling", "deep_supervision")
    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths = self._widths(least=1)
        layout = perceptron(n_columns, widths)
        for number, width in enumerate(widths, start=1):
            if self.deep_supervision_ or number == len(widths):
                layout |= linear(f"out{number}", width, n_outputs)
        return layout

    def _network(self) -> Network:
        from gmil.methods.deep.networks import mi_net

        return partial(mi_net, pooling=self.pooling_)
