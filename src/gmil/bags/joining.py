"""Several `Bags` as one: the parts must have the same features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import parts as bag_parts
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    import pyarrow as pa


def joined_parts(parts: list[Any]) -> dict[str, Any]:
    """Return what makes one `Bags` of several; what not every part has is left out."""
    if not parts:
        msg = "There are no bags to join; pass at least one part."
        raise BagValidationError(msg)
    for i, part in enumerate(parts):
        _refuse_other_features(part, i, parts[0])
    sizes = np.concatenate([part.sizes for part in parts])
    return {
        "instances": bag_parts.stacked([part.instances for part in parts]),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "bag_ids": _joined_ids(parts),
        "feature_names": next((part.feature_names for part in parts if part.feature_names is not None), None),
        "instance_info": _joined_info(parts),
    }


def _refuse_other_features(part: Any, number: int, first: Any) -> None:
    if part.n_features != first.n_features:
        msg = (
            f"Part {number} has {part.n_features} features, but part 0 has {first.n_features}. "
            "All parts must have the same features."
        )
        raise BagValidationError(msg)
    if part.feature_names is None or first.feature_names is None:
        return
    for j, (own, expected) in enumerate(zip(part.feature_names, first.feature_names, strict=True)):
        if own != expected:
            msg = (
                f"Feature {j} of part {number} is {own!r}, but that of part 0 is {expected!r}. "
                "Bring the features into the same order."
            )
            raise BagValidationError(msg)


def _joined_ids(parts: list[Any]) -> Any:
    ids = [part.bag_ids for part in parts if part.bag_ids is not None]
    return np.concatenate(ids) if len(ids) == len(parts) else None


def _joined_info(parts: list[Any]) -> pa.Table | None:
    """Return the info of all parts, where their columns are the same."""
    infos = [part.instance_info for part in parts if part.instance_info is not None]
    if len(infos) < len(parts):
        return None
    import pyarrow as pa

    try:
        return pa.concat_tables(infos, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        msg = f"The columns of instance_info do not fit together: {error} Rename or convert them."
        raise BagValidationError(msg) from error
