"""The paper's experiments: what was published and what is measured."""

from __future__ import annotations

from gmil.experiments.published import published, published_accuracy

__all__ = ["published", "published_accuracy"]
