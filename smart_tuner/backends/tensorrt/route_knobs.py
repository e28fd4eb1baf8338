"""Route knobs: the compiler's own list, and how a build configuration is asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.knobs.integer_values import with_integer_values
from smart_tuner.knobs.read import read_database

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase

NO_ROUTES = (
    "this installation lists no build routes (TensorRT-RTX and the Windows builds have none): "
    "only the builder's own settings are knobs"
)


def route_knobs(config: api.BuilderConfig) -> KnobDatabase | None:
    """The knobs that ``all_build_routes`` lists, the open ones with values from the table.

    Returns:
        None where the version has no build routes, or this build of it leaves them empty
        (``NO_ROUTES`` says so to a user).

    Raises:
        EnvironmentNotFit: The list cannot be read.
    """
    if not isinstance(config, api.HasBuildRoutes):
        return None
    listed = config.all_build_routes
    if not listed.strip():
        return None
    try:
        return with_integer_values(read_database(listed))
    except UserInputError as error:
        msg = f"all_build_routes of this installation is not what smart-tuner reads: {error}"
        raise EnvironmentNotFit(msg) from error
