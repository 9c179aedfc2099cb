"""Where in a bag: scores of instances by their effect, witnesses that carry a decision, and explanations of bags.

``gmil.base.BagClassifier`` takes its methods ``score_instances``, ``witnesses`` and ``explain`` from here, so every
classifier has them. A class with a rule of its own for instances defines ``score_instances`` itself.
"""

from __future__ import annotations

from gmil.witnesses.explanation import Explanation, Witness
from gmil.witnesses.smoothing import smooth_scores

__all__ = ["Explanation", "Witness", "smooth_scores"]
