"""Workload files: several weighted points in TOML.

::

    [[point]]
    name = "narrow"
    weight = 3
    shapes = { x = [1, 3, 48, 192] }
    inputs = ["narrow.npz"]
    outputs = ["narrow.reference.npz"]

    [[point]]
    name = "wide"
    shapes = { x = [1, 3, 48, 960] }
    held_out = ["wide_pairs/"]

Paths are relative to the workload file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.model.toml import read_toml

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 1 << 20
_MAX_POINTS = 100
_Ends = Annotated[list[int | float], Field(min_length=2, max_length=2)]
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class PointTable(BaseModel):
    """One ``[[point]]`` table.

    Attributes:
        name: Letters, digits, ``_``, ``-`` and ``.``: it becomes a folder's name.
        weight: Share of the objective.
        shapes: Sizes by input name; an empty list is a 0-d tensor.
        ranges: Lowest and highest value by input name, for synthetic inputs.
        inputs: Sources of inputs, as in ``--inputs``.
        outputs: Sources of trusted outputs, one for each of ``inputs``.
        held_out: Sources of inputs that the search never sees.
        held_out_outputs: Their trusted outputs.
    """

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,49}$")
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    shapes: dict[str, list[NonNegativeInt]] = Field(default_factory=dict)
    ranges: dict[str, _Ends] = Field(default_factory=dict)
    inputs: list[str] = Field(default_factory=list)
    outputs: list[str] = Field(default_factory=list)
    held_out: list[str] = Field(default_factory=list)
    held_out_outputs: list[str] = Field(default_factory=list)


class _File(BaseModel):
    model_config = _STRICT

    point: list[PointTable] = Field(min_length=1, max_length=_MAX_POINTS)


def read_workload_file(path: Path) -> tuple[PointTable, ...]:
    """Read and check a workload file.

    Raises:
        UserInputError: The file is missing, too large, no TOML, or has a wrong or unknown entry.
    """
    if path.is_file() and path.stat().st_size > _MAX_BYTES:
        raise UserInputError(f"{path}: too large for a workload file; keep to 1 MiB.")
    try:
        points = _File.model_validate(read_toml(path, "workload")).point
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise UserInputError(f"{path}: {where}: {first['msg']}.") from error
    except RecursionError as error:
        raise UserInputError(f"{path}: too deeply nested; keep to the documented form.") from error
    names = [point.name for point in points]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise UserInputError(f"{path}: point {doubled[0]!r} occurs twice; rename one.")
    return tuple(points)
