"""Networks with attention: ABMIL, CLAM, DSMIL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gmil.base import grouped_fit, register
from gmil.methods.deep.estimator import DeepClassifier
from gmil.methods.deep.folds import train_together
from gmil.methods.deep.texts import described
from gmil.methods.deep.weights import gates, linear, perceptron
from gmil.parameters import AT_LEAST_ONE, INSIDE_UNIT, parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.methods.deep.training import Network
    from gmil.methods.deep.weights import Layout


@register(method="abmil", variants={"gated-abmil": {"gated": True}})
@parameters
@described
class ABMIL(DeepClassifier):
    """Attention-based pooling of Ilse et al. (2018), plain or gated.

    A bag is the mean of its instances behind the hidden layers, weighted by a softmax over the bag of what a small
    network gives to each: w tanh(V h), or with a gate w (tanh(V h) * sigmoid(U h)).

    Parameters
    ----------
    hidden : tuple of int, default=(256, 128, 64)
        The widths of the hidden layers, each with ReLU.
    attention_width : int, default=64
        The width of the attention.
    gated : bool, default=False
        Whether the attention has a gate.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are logits. The score of an instance is its attention weight times its own logit, times the size of the
    bag, plus the intercept: the mean of the scores of a bag is its decision. An instance without attention has the
    intercept. Attention alone has no sign: in a negative bag it is on what is most negative.

    The paper trains by stochastic gradient descent, one bag at a time.

    References
    ----------
    M. Ilse, J. Tomczak, M. Welling: Attention-based deep multiple instance learning. ICML 2018.

    Examples
    --------
    >>> from gmil import ABMIL, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = ABMIL(gated=True, random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    >>> abs(model.score_instances(bags[:1]).mean() - model.decision_function(bags[:1])[0]) < 1e-6
    np.True_
    """

    hidden: Sequence[int] = (256, 128, 64)
    attention_width: int = parameter(default=64, rules=[AT_LEAST_ONE])
    gated: bool = parameter(default=False, rules=["boolean"])

    _kept_parameters = ("hidden", "attention_width", "gated")
    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths = self._widths()
        last = widths[-1] if widths else n_columns
        attention = gates(last, self.attention_width_, gated=bool(self.gated_), of_input=not widths)
        return perceptron(n_columns, widths) | attention | linear("out", last, n_outputs, of_input=not widths)

    def _network(self) -> Network:
        from gmil.methods.deep.networks import abmil

        return abmil


@register(method="clam")
@parameters
@described
class CLAM(DeepClassifier):
    """CLAM-SB of Lu et al. (2021): gated attention pooling, with clusters of instances by their attention.

    The instances of a bag with the most attention are taken as evidence for its class, those with the least as evidence
    against, and a classifier of instances for every class has to tell them apart. That shapes the layer below.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        The widths of the hidden layers, each with ReLU. The paper has 512, for features of 1024.
    attention_width : int, default=64
        The width of the attention, which has a gate; 256 in the paper.
    n_clustered : int, default=8
        How many instances of the most, and of the least, attention are clustered; at most half of a bag each.
    bag_weight : float, default=0.7
        The weight of the loss of bags; the loss of clusters has the rest.
    subtyping : bool, default=False
        Whether classes exclude each other within a bag: then the instances of the most attention also are evidence
        against all other classes.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are logits. The score of an instance is its attention weight times its own logit, times the size of the
    bag, plus the intercept: the mean of the scores of a bag is its decision. The classifiers of clusters serve training
    alone.

    The loss of clusters is a smooth support vector loss with margin 1 and temperature 1. The classifier of a class has
    one output, not two: the loss sees their difference alone.

    References
    ----------
    M. Lu et al.: Data-efficient and weakly supervised computational pathology on whole-slide images. Nature Biomedical
    Engineering 5, 2021.

    Examples
    --------
    >>> from gmil import CLAM, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = CLAM(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    attention_width: int = parameter(default=64, rules=[AT_LEAST_ONE])
    n_clustered: int = parameter(default=8, rules=[AT_LEAST_ONE])
    bag_weight: float = parameter(default=0.7, rules=[INSIDE_UNIT])
    subtyping: bool = parameter(default=False, rules=["boolean"])

    _kept_parameters = ("hidden", "attention_width")
    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths = self._widths()
        last, direct = (widths[-1], False) if widths else (n_columns, True)
        attention = gates(last, self.attention_width_, gated=True, of_input=direct)
        clusters = linear("cluster", last, max(2, n_outputs), of_input=direct)
        return perceptron(n_columns, widths) | attention | linear("out", last, n_outputs, of_input=direct) | clusters

    def _network(self) -> Network:
        from gmil.methods.deep.networks import clam

        return partial(clam, n_clustered=self.n_clustered, bag_weight=self.bag_weight, subtyping=self.subtyping)


@register(method="dsmil")
@parameters
@described
class DSMIL(DeepClassifier):
    """Dual-stream network of Li et al. (2021): the largest score of an instance, and attention around that instance.

    One stream scores instances; the largest score stands for the bag, and its instance is critical. The other pools the
    bag with weights by the likeness of every instance to the critical one. Their mean decides, and both have a loss.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        The widths of the hidden layers, each with ReLU. None at all, ``()``, is what the paper does with features that
        are embeddings already.
    attention_width : int, default=128
        The length of the queries that are compared, and of the values that are pooled.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are the mean of the logits of both streams. The score of an instance is the mean of its own logit in the
    first stream, and of what it adds to the logit of the second one, times the size of the bag.

    Several classes are told apart by cross-entropy, each with a critical instance of its own.

    References
    ----------
    B. Li, Y. Li, K. Eliceiri: Dual-stream multiple instance learning network for whole slide image classification with
    self-supervised contrastive learning. CVPR 2021.

    Examples
    --------
    >>> from gmil import DSMIL, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = DSMIL(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    attention_width: int = parameter(default=128, rules=[AT_LEAST_ONE])

    _kept_parameters = ("hidden", "attention_width")
    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths, inner = self._widths(), int(self.attention_width_)
        last, direct = (widths[-1], False) if widths else (n_columns, True)
        layout = perceptron(n_columns, widths) | linear("instance", last, n_outputs, of_input=direct)
        layout |= linear("query", last, inner, of_input=direct) | linear("value", last, inner, of_input=direct)
        return layout | linear("out", n_outputs * inner, n_outputs)

    def _network(self) -> Network:
        from gmil.methods.deep.networks import dsmil

        return dsmil
