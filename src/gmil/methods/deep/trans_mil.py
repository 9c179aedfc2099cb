"""The estimator of TransMIL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gmil.base import grouped_fit, register
from gmil.errors import BagValidationError
from gmil.methods.deep.estimator import DeepClassifier
from gmil.methods.deep.folds import train_together
from gmil.methods.deep.texts import described
from gmil.methods.deep.weights import Weight, linear, normalisation, perceptron
from gmil.parameters import AT_LEAST_ONE, parameter, parameters

if TYPE_CHECKING:
    from gmil.methods.deep.training import Network
    from gmil.methods.deep.weights import Layout

KERNELS = (7, 5, 3)
"""The widths of the convolutions of the position encoding."""


@register(method="trans-mil")
@parameters
@described
class TransMIL(DeepClassifier):
    """Transformer of Shao et al. (2021): instances and a class token attend to each other in two layers.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        The widths of the hidden layers on instances, each with ReLU; the last one is that of the transformer, and a
        multiple of ``n_heads``. The paper has 512.
    n_heads : int, default=8
        The heads of the attention.
    position_encoding : bool, default=False
        Whether convolutions over the instances of a bag, row by row in a square, come between the layers, as in the
        paper. The order of the instances then matters: it must be that of places, as of patches of a slide. Bags are
        sets elsewhere in gmil, so it is off.
    {training}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Decisions are logits. The score of an instance is what it adds to the decision by the attention of the class token
    in the second layer, times the size of the bag, plus the rest of the decision: the mean of the scores of a bag is
    its decision. What instances have learnt of each other in the first layer is part of them.

    Attention is exact, of O(n^2) time for a bag of n instances; the paper approximates it by landmarks (Nystroem),
    which pays for bags of many thousands.

    References
    ----------
    Z. Shao et al.: TransMIL: transformer based correlated multiple instance learning for whole slide image
    classification. NeurIPS 2021.

    Examples
    --------
    >>> from gmil import TransMIL, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = TransMIL(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    n_heads: int = parameter(default=8, rules=[AT_LEAST_ONE])
    position_encoding: bool = parameter(default=False, rules=["boolean"])

    _kept_parameters = ("hidden", "n_heads", "position_encoding")
    fit = grouped_fit
    _folds_together = train_together

    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        widths = self._widths(least=1)
        width = widths[-1]
        if width % self.n_heads_:
            msg = f"must end with a multiple of n_heads={self.n_heads_}, got {self.hidden_!r}."
            raise BagValidationError(msg, parameter="hidden")
        layout = perceptron(n_columns, widths) | {"token": Weight((width,), bound=width**-0.5)}
        for layer in ("layer1", "layer2"):
            layout |= normalisation(f"{layer}.norm", width)
            for part in ("query", "key", "value"):
                layout |= linear(f"{layer}.{part}", width, width, bias=False)
            layout |= linear(f"{layer}.out", width, width)
        if self.position_encoding_:
            for size in KERNELS:
                layout |= _convolution(size, width)
        return layout | normalisation("norm", width) | linear("out", width, n_outputs)

    def _network(self) -> Network:
        from gmil.methods.deep.transformer import trans_mil

        return partial(trans_mil, n_heads=int(self.n_heads_))


def _convolution(size: int, width: int) -> dict[str, Any]:
    """Return the weights of a convolution of every unit alone."""
    return {
        f"conv{size}.weight": Weight((width, size, size), bound=1 / size, decays=True),
        f"conv{size}.bias": Weight((width,)),
    }
