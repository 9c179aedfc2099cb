"""What the docstrings of all networks say of training and of fitted attributes."""

from __future__ import annotations

from typing import TypeVar

AnyClass = TypeVar("AnyClass", bound=type)

_TRAINING = """\
dropout : float, default={dropout}
        The share of units of the hidden layers that is left out in every training step; 0 is none.
    epochs : int, default=50
        How often every training bag is seen. The weights after the last epoch are kept; the learning rate falls to
        zero until then, in equal steps. With ``early_stopping`` it is the most epochs.
    batch_size : int, default=8
        How many bags a step sees.
    learning_rate : float, default=0.001
        Of the optimizer.
    weight_decay : float, default=0.01
        Of the optimizer; intercepts do not decay.
    optimizer : {"adamw", "sgd"}, default="adamw"
        AdamW, or stochastic gradient descent with Nesterov momentum of 0.9 at the same rate in all epochs, as the
        papers of MI-Net and ABMIL have it.
    early_stopping : bool, default=False
        Whether some training bags are held out, and the weights with the least loss on them are kept. The learning
        rate is the same in all epochs then.
    validation_fraction : float, default=0.2
        With ``early_stopping``, about so many training bags of every class are held out; of ``groups``, whole ones.
    patience : int, default=20
        With ``early_stopping``, training ends after so many epochs without a smaller loss.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        Networks run in PyTorch in any case. "torch:cuda" is a GPU, "torch" one where there is one; all others are the
        processor.
    random_state : int, RandomState or None, default=None
        First weights, the order of bags, dropout and held-out bags. A number makes training on a processor exactly
        repeatable."""

_ATTRIBUTES = """\
columns_ : array of shape (n_columns,)
        The features that differ between training instances; the others are left out.
    space_ : Space
        The scaling of these.
    weights_ : dict of arrays
        The weights of the network by name.
    n_epochs_ : int
        The epoch after which the weights were taken.
    losses_ : array of shape (n_epochs,)
        The mean loss of training bags in every epoch, with dropout."""


def described(cls: AnyClass) -> AnyClass:
    """Put what all networks share into the docstring of one."""
    if cls.__doc__ is not None:  # Python may run without docstrings
        own = vars(cls).get("dropout")
        training = _TRAINING.replace("{dropout}", "0.25" if own is None else str(own))
        cls.__doc__ = cls.__doc__.replace("{training}", training).replace("{attributes}", _ATTRIBUTES)
    return cls
