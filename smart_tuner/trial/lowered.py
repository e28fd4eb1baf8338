"""Building a route that lowers regions: the backend gets a rewritten model, and none of the knobs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_tuner.engine.build import MODEL_FILE
from smart_tuner.errors import UserInputError
from smart_tuner.precision.store import precision_values, without_precision
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.backend import Backend
    from smart_tuner.engine.build import BuildRequest, Engine


def build_lowered(backend: Backend, request: BuildRequest, workdir: Path) -> Engine:
    """Build an engine of a model whose regions have the precision that base and route say.

    With every region kept the backend gets the user's own file, so that nothing differs from a
    build without regions. Reference outputs are always those of the user's file.

    Args:
        backend: Who builds.
        request: With the knobs of regions among its settings.
        workdir: Gets the rewritten model beside the engine.

    Raises:
        UserInputError: Regions are named, and there is nothing to rewrite the model from.
        TrialError: The engine does not build.
    """
    values = precision_values({**request.base, **request.route.values})
    if not values:
        return backend.build(request, workdir)
    if request.precision is None:
        msg = f"The model has no regions here ({', '.join(values)}): name them with --regions."
        raise UserInputError(msg)
    started = time.perf_counter()
    files: tuple[Path, ...] = ()
    if not request.reference:
        from smart_tuner.precision.rewrite import rewrite  # noqa: PLC0415, most children need none

        files = rewrite(request.precision, values, workdir / MODEL_FILE)
    seconds = time.perf_counter() - started
    model = files[0] if files else request.model
    plain = replace(
        request,
        model=model,
        base=without_precision(request.base),
        route=BuildRoute(tuple(without_precision(request.route.values).items())),
    )
    engine = backend.build(plain, workdir)
    return replace(
        engine,
        request=replace(request, model=model),
        build_seconds=engine.build_seconds + seconds,
        companions=(*engine.companions, *files),
    )
