"""From the values of regions to a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from smart_tuner.errors import UserInputError
from smart_tuner.precision.lower import lowered_model
from smart_tuner.precision.ranges import read_ranges
from smart_tuner.precision.save import save_whole
from smart_tuner.precision.store import PREPARED, RANGES, read_recipe
from smart_tuner.precision.support import CALIBRATED, KEEP, VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def rewrite(folder: Path, values: Mapping[str, str], out: Path) -> tuple[Path, ...]:
    """Write the model with some regions in another precision.

    Args:
        folder: What ``prepare`` made for the model.
        values: Value by region; regions left out are kept.
        out: File to write; its folder exists, and gets the data files of a large model, too.

    Returns:
        The files that were written, the model first; none if every region is kept, since the
        user's own file is the model then.

    Raises:
        UserInputError: A region or a value is unknown, or the folder is damaged.
    """
    lowered = {region: value for region, value in values.items() if value != KEEP}
    if not lowered:
        return ()
    recipe = read_recipe(folder)
    for region, value in lowered.items():
        if region not in recipe.regions or value not in VALUES:
            msg = f"No region {region!r} with a value {value!r}; there are {', '.join(recipe.regions)}."
            raise UserInputError(msg)
    by_node = {
        member: value for region, value in lowered.items() for member in recipe.regions[region]
    }
    needs_ranges = not set(lowered.values()).isdisjoint(CALIBRATED)
    ranges = read_ranges(folder / RANGES) if needs_ranges else {}
    model = onnx.load(str(folder / PREPARED), load_external_data=False)
    made = lowered_model(model, recipe.source.parent, by_node, recipe.scheme, ranges)
    return save_whole(made, recipe.source.parent, out)
