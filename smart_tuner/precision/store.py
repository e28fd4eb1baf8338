"""What a study keeps of its regions: a folder that any process can rewrite the model from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.precision.support import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
RECIPE, PREPARED, RANGES = "recipe.json", "prepared.onnx", "ranges.json"

PREFIX = "precision."
"""What the names of the knobs of regions begin with."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is rewritten.

    Attributes:
        source: The user's model, whose external data is read.
        regions: First outputs of the nodes of each region.
        scheme: How integers are written.
        calibration: How ranges were found; empty if there are none.
        digest: What all of it came from; another one means that it has to be made anew.
    """

    source: Path
    regions: Mapping[str, tuple[str, ...]]
    scheme: Scheme
    calibration: str
    digest: str


def write_recipe(folder: Path, recipe: Recipe) -> None:
    """Write the recipe into its folder, whose other files are complete by now."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "source": str(recipe.source),
        "regions": {name: sorted(members) for name, members in recipe.regions.items()},
        "scheme": recipe.scheme.to_json(),
        "calibration": recipe.calibration,
        "digest": recipe.digest,
    }
    write_json(folder / RECIPE, document)


def read_recipe(folder: Path) -> Recipe:
    """Read the recipe of a folder.

    Raises:
        UserInputError: There is none, it is damaged, or a newer version wrote it.
    """
    path = folder / RECIPE
    try:
        data = json.loads(path.read_bytes())
        if data["schema_version"] > SCHEMA_VERSION:
            msg = f"{path}: written by a newer smart_tuner; upgrade this one."
            raise UserInputError(msg)
        return Recipe(
            source=Path(data["source"]),
            regions={str(name): tuple(members) for name, members in data["regions"].items()},
            scheme=Scheme.from_json(data["scheme"]),
            calibration=str(data["calibration"]),
            digest=str(data["digest"]),
        )
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        msg = f"{path} is missing or damaged ({error}): remove {folder}, and it is made anew."
        raise UserInputError(msg) from None


def precision_values(settings: Mapping[str, str]) -> dict[str, str]:
    """The values of regions among the settings of a base or a route, by region."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in settings.items()
        if name.startswith(PREFIX)
    }


def without_precision(settings: Mapping[str, str]) -> dict[str, str]:
    """The other settings."""
    return {name: value for name, value in settings.items() if not name.startswith(PREFIX)}
