"""The core types read back from JSON; the other direction is ``fields.to_json``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import UserInputError
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.model.spec import Dimension, ModelSpec, TensorSpec
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.fields import Fields
from smart_tuner.validate.limits import LimitUse
from smart_tuner.validate.losses import OutputLoss

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_route(data: object) -> BuildRoute:
    """Read a route.

    Raises:
        UserInputError: The data is not a route.
    """
    return BuildRoute(Fields(data, "route").each("settings", _setting))


def read_request(data: object) -> BuildRequest:
    """Read a build request.

    Raises:
        UserInputError: The data is not a build request.
    """
    fields = Fields(data, "build request")
    return BuildRequest(
        model=Path(fields.text("model")),
        route=fields.nested("route", read_route),
        base=fields.text_map("base"),
        shapes=fields.each("shapes", _shapes),
        reference=fields.flag("reference"),
        timing_cache=fields.later("timing_cache", _path),
        precision=fields.later("precision", _path),
    )


def read_engine(data: object) -> Engine:
    """Read the record of an engine.

    Raises:
        UserInputError: The data is not an engine.
    """
    fields = Fields(data, "engine")
    return Engine(
        path=Path(fields.text("path")),
        sha256=fields.text("sha256"),
        fingerprint=fields.text("fingerprint"),
        request=fields.nested("request", read_request),
        build_seconds=fields.number("build_seconds"),
        notes=fields.texts("notes"),
        loader=fields.text("loader"),
        size_bytes=fields.later("size_bytes", _size),
        structure=fields.later("structure", str) or "",
        timing_cache=fields.later("timing_cache", _path),
        companions=fields.later("companions", _paths) or (),
    )


def read_loss(data: object) -> OutputLoss:
    """Read one accuracy loss.

    Raises:
        UserInputError: The data is not a loss.
    """
    fields = Fields(data, "loss")
    return OutputLoss(
        point=fields.text("point"),
        pair=fields.text("pair"),
        output=fields.text("output"),
        metric=fields.text("metric"),
        loss=fields.number("loss"),
        epsilon=fields.number("epsilon"),
        message=fields.text("message"),
        pairs=fields.later("pairs", _count) or 1,
    )


def read_limit_use(data: object) -> LimitUse:
    """Read a figure against its limit.

    Raises:
        UserInputError: The data is not one.
    """
    fields = Fields(data, "limit")
    return LimitUse(fields.text("name"), fields.number("figure"), fields.number("limit"))


def read_comparison(data: object) -> Comparison:
    """Read one comparison.

    Raises:
        UserInputError: The data is not a comparison.
    """
    fields = Fields(data, "comparison")
    return Comparison(
        point=fields.text("point"),
        log_ratios=fields.numbers("log_ratios"),
        log_ratio=fields.number("log_ratio"),
        half_width=fields.number("half_width"),
        baseline=fields.nested("baseline", _summary),
        candidate=fields.nested("candidate", _summary),
        seconds=fields.number("seconds"),
        notes=fields.texts("notes"),
        device=fields.later("device", _figures) or {},
    )


def read_platform(data: object) -> Platform:
    """Read a platform.

    Raises:
        UserInputError: The data is not a platform.
    """
    fields = Fields(data, "platform")
    return Platform(
        device=fields.text("device"),
        driver=fields.text("driver"),
        backend_version=fields.text("backend_version"),
        tuner_version=fields.text("tuner_version"),
        details=fields.text_map("details"),
    )


def read_model(data: object) -> ModelSpec:
    """Read what a model file declares.

    Raises:
        UserInputError: The data is not a model's.
    """
    fields = Fields(data, "model")
    return ModelSpec(
        path=Path(fields.text("path")),
        sha256=fields.text("sha256"),
        size_bytes=fields.whole("size_bytes"),
        inputs=fields.each("inputs", _tensor),
        outputs=fields.each("outputs", _tensor),
        ir_version=fields.whole("ir_version"),
        opsets=fields.whole_map("opsets"),
        operators=fields.whole_map("operators"),
        notes=fields.texts("notes"),
    )


def _tensor(data: object) -> TensorSpec:
    fields = Fields(data, "tensor")
    return TensorSpec(
        name=fields.text("name"),
        dtype=fields.text("dtype"),
        shape=fields.optional("shape", _dimensions),
    )


def _dimensions(data: object) -> tuple[Dimension, ...]:
    if isinstance(data, list) and all(size is None or type(size) in (int, str) for size in data):
        return tuple(data)
    msg = "tensor: 'shape' is not a list of sizes and symbols."
    raise UserInputError(msg)


def _setting(data: object) -> tuple[str, str]:
    if isinstance(data, list) and len(data) == 2 and all(isinstance(part, str) for part in data):
        return str(data[0]), str(data[1])
    msg = "route: a setting is not a pair of texts."
    raise UserInputError(msg)


def _shapes(data: object) -> Mapping[str, tuple[int, ...]]:
    if not isinstance(data, dict):
        msg = "build request: the shapes of a point are not an object."
        raise UserInputError(msg)
    return {str(name): _shape(shape) for name, shape in data.items()}


def _shape(data: object) -> tuple[int, ...]:
    if isinstance(data, list) and all(type(size) is int for size in data):
        return tuple(data)
    msg = "build request: a shape is not a list of whole numbers."
    raise UserInputError(msg)


def _figures(data: object) -> Mapping[str, float]:
    return Fields({"device": data}, "comparison").number_map("device")


def _path(data: object) -> Path:
    if isinstance(data, str):
        return Path(data)
    msg = "engine: a path is not text."
    raise UserInputError(msg)


def _paths(data: object) -> tuple[Path, ...]:
    return tuple(map(Path, Fields({"companions": data}, "engine").texts("companions")))


def _count(data: object) -> int:
    if type(data) is int and data > 0:
        return data
    msg = "loss: 'pairs' is not a number of pairs."
    raise UserInputError(msg)


def _size(data: object) -> int:
    if type(data) is int and data >= 0:
        return data
    msg = "engine: 'size_bytes' is not a size."
    raise UserInputError(msg)


def _summary(data: object) -> LatencySummary:
    fields = Fields(data, "latency summary")
    return LatencySummary(
        count=fields.whole("count"),
        mean_ms=fields.number("mean_ms"),
        p05_ms=fields.number("p05_ms"),
        p25_ms=fields.number("p25_ms"),
        median_ms=fields.number("median_ms"),
        p75_ms=fields.number("p75_ms"),
        p90_ms=fields.number("p90_ms"),
        p95_ms=fields.number("p95_ms"),
        p99_ms=fields.number("p99_ms"),
    )
