"""Optimization profiles: which shapes an engine must run, and which it is tuned for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.names import listed
from smart_tuner.model.shapes import format_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smart_tuner.backends.tensorrt import api
    from smart_tuner.backends.tensorrt.settings import BuildSettings

    Shape = tuple[int, ...]
    Point = Mapping[str, Shape]

_WORDS = ("min_shapes", "opt_shapes", "max_shapes")


@dataclass(frozen=True, slots=True)
class Range:
    """What one profile says of one input.

    Attributes:
        min: Smallest sizes.
        opt: Sizes that kernels are chosen for.
        max: Largest sizes.
        is_values: Whether these are the values of a shape tensor, not its shape.
    """

    min: Shape
    opt: Shape
    max: Shape
    is_values: bool = False


Profile = dict[str, Range]


def network_inputs(network: api.NetworkDefinition) -> list[api.Tensor]:
    """Return the inputs of a network."""
    return [network.get_input(index) for index in range(network.num_inputs)]


def plan_profiles(
    inputs: Sequence[api.Tensor], settings: BuildSettings, points: Sequence[Point]
) -> list[Profile]:
    """Settle the profiles; none for a network without free sizes.

    A shared profile spans all points; its ``opt`` is the first point, unless the base says
    otherwise. ``profiles = per_point`` gives each point one of its own, in their order.

    Args:
        inputs: Inputs of the parsed network; a free size is -1.
        settings: With the shapes of the base, if it gives any.
        points: Shapes of each workload point.

    Raises:
        UserInputError: An input is unknown, has no sizes, or sizes that contradict each other.
    """
    _check_names(inputs, settings)
    for tensor in inputs:
        for word, shape in _given(tensor.name, settings):
            _check_fit(tensor, word, shape)
    free = [tensor for tensor in inputs if tensor.is_shape_tensor or -1 in tuple(tensor.shape)]
    if not free:
        return []
    if settings.profiles == "shared":
        return [{tensor.name: _range(tensor, settings, points) for tensor in free}]
    if settings.min_shapes or settings.opt_shapes or settings.max_shapes:
        msg = (
            "profiles = per_point takes its shapes from the workload's points; leave min_shapes, "
            "opt_shapes and max_shapes out."
        )
        raise UserInputError(msg)
    planned: list[Profile] = []
    for point in points or ({},):
        profile = {tensor.name: _range(tensor, settings, (point,)) for tensor in free}
        planned += [] if profile in planned else [profile]
    return planned


def fixed_profile(network: api.NetworkDefinition) -> list[Profile]:
    """A profile of the fixed sizes of all inputs, where outputs have sizes that data decide.

    Without one TensorRT builds such a network, but makes no context for it: seen with 8.6.0, which
    asks the profile for the sizes even so.

    Args:
        network: A network whose inputs have no free sizes.
    """
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    if not any(-1 in tuple(tensor.shape) for tensor in outputs):
        return []
    shapes = {tensor.name: tuple(tensor.shape) for tensor in network_inputs(network)}
    return [{name: Range(shape, shape, shape) for name, shape in shapes.items()}]


def add_profiles(
    builder: api.Builder, config: api.BuilderConfig, profiles: Sequence[Profile]
) -> None:
    """Hand planned profiles to a configuration.

    Raises:
        UserInputError: The compiler refuses one.
    """
    for number, planned in enumerate(profiles):
        profile = builder.create_optimization_profile()
        for name, sizes in planned.items():
            put = profile.set_shape_input if sizes.is_values else profile.set_shape
            put(name, sizes.min, sizes.opt, sizes.max)
        if config.add_optimization_profile(profile) < 0:
            msg = f"The compiler refuses optimization profile {number}: {_text(planned)}."
            raise UserInputError(msg)


def _text(profile: Profile) -> str:
    return "; ".join(
        f"{name!r} from {format_shape(sizes.min)} to {format_shape(sizes.max)}"
        for name, sizes in profile.items()
    )


def _given(name: str, settings: BuildSettings) -> Iterator[tuple[str, Shape]]:
    for word in _WORDS:
        shapes: Point = getattr(settings, word)
        if name in shapes:
            yield word, shapes[name]


def _check_names(inputs: Sequence[api.Tensor], settings: BuildSettings) -> None:
    names = [tensor.name for tensor in inputs]
    for word in _WORDS:
        for name in getattr(settings, word):
            if name not in names:
                msg = f"{word}: the model has no input {name!r}; its inputs: {listed(names)}."
                raise UserInputError(msg)


def _check_fit(tensor: api.Tensor, word: str, shape: Shape) -> None:
    """Rank and fixed sizes; the values of a shape tensor have a length of their own."""
    if tensor.is_shape_tensor:
        return
    declared = tuple(tensor.shape)
    text = f"{word}: input {tensor.name!r} is {_declared(declared)}, {format_shape(shape)} given"
    if len(shape) != len(declared):
        msg = f"{text}: {len(declared)} dimensions are needed, {len(shape)} were given."
        raise UserInputError(msg)
    for axis, (known, size) in enumerate(zip(declared, shape, strict=True)):
        if known not in (-1, size):
            msg = f"{text}: dimension {axis} has to be {known}."
            raise UserInputError(msg)


def _range(tensor: api.Tensor, settings: BuildSettings, points: Sequence[Point]) -> Range:
    name = tensor.name
    # A point gives the shape of a tensor, never the values of a shape tensor.
    seen = [point[name] for point in points if name in point and not tensor.is_shape_tensor]
    given = dict(_given(name, settings))
    for shape in seen:
        _check_fit(tensor, "shapes", shape)
    known = [*seen, *given.values()]
    if not known:
        raise UserInputError(_missing(tensor))
    opt = given.get("opt_shapes") or (known[0] if seen else given.get("max_shapes", known[0]))
    low = given.get("min_shapes") or tuple(map(min, zip(opt, *known, strict=True)))
    high = given.get("max_shapes") or tuple(map(max, zip(opt, *known, strict=True)))
    _check_order(name, ("min_shapes", low), ("opt_shapes", opt))
    _check_order(name, ("opt_shapes", opt), ("max_shapes", high))
    for shape in seen:
        _check_order(name, ("min_shapes", low), ("the workload", shape))
        _check_order(name, ("the workload", shape), ("max_shapes", high))
    return Range(low, opt, high, is_values=tensor.is_shape_tensor)


def _check_order(name: str, small: tuple[str, Shape], large: tuple[str, Shape]) -> None:
    for axis, (low, high) in enumerate(zip(small[1], large[1], strict=True)):
        if low > high:
            msg = (
                f"Input {name!r}: {format_shape(small[1])} ({small[0]}) is larger than "
                f"{format_shape(large[1])} ({large[0]}) in dimension {axis}; give sizes with "
                "min <= opt <= max."
            )
            raise UserInputError(msg)


def _missing(tensor: api.Tensor) -> str:
    if tensor.is_shape_tensor:
        return (
            f"Input {tensor.name!r} holds sizes (a shape tensor): give the values that it may take "
            f"in the base, e.g. min_shapes = {tensor.name}:1x2 with opt_shapes and max_shapes."
        )
    return (
        f"Input {tensor.name!r} is {_declared(tuple(tensor.shape))} in the model and has no "
        "profile: give its sizes with --shapes, or min_shapes, opt_shapes and max_shapes in the "
        "base."
    )


def _declared(shape: Shape) -> str:
    return "(" + ", ".join("?" if size == -1 else str(size) for size in shape) + ")"
