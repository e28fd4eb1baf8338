"""Inputs and outputs of an engine, and the profile that takes given shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.elements import Element, element_of
from smart_tuner.errors import RunError
from smart_tuner.model.shapes import format_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of an engine.

    Attributes:
        name: Its name.
        is_input: Which of the two.
        element: Type of its elements.
        is_on_host: Whether the engine reads or writes it on the host (shapes as data).
        shares: The input whose memory this output overwrites; empty for memory of its own.
    """

    name: str
    is_input: bool
    element: Element
    is_on_host: bool = False
    shares: str = ""


def ports_of(engine: api.CudaEngine, states: Sequence[tuple[str, str]]) -> tuple[Port, ...]:
    """List inputs and outputs.

    Args:
        engine: The engine.
        states: Pairs of an input and the output that overwrites it, beside those that the engine
            itself declares.

    Raises:
        RunError: A pair names no input or output of the engine, or does not match.
    """
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    inputs = {name for name in names if engine.get_tensor_mode(name).name == "INPUT"}
    shares = {name: _declared_alias(engine, name) for name in names if name not in inputs}
    for past, present in states:
        if past not in inputs or present not in shares:
            wrong, what = (past, "input") if past not in inputs else (present, "output")
            msg = f"states: the engine has no {what} {wrong!r}; it has {', '.join(names)}"
            raise RunError(msg)
        shares[present] = past
    ports = tuple(
        Port(
            name=name,
            is_input=name in inputs,
            element=element_of(name, engine.get_tensor_dtype(name)),
            is_on_host=engine.get_tensor_location(name).name == "HOST",
            shares=shares.get(name, ""),
        )
        for name in names
    )
    _check_shared({port.name: port for port in ports})
    return ports


def _declared_alias(engine: api.CudaEngine, name: str) -> str:
    if isinstance(engine, api.HasAliases):
        return engine.get_aliased_input_tensor(name) or ""
    return ""


def _check_shared(ports: Mapping[str, Port]) -> None:
    for port in ports.values():
        if not port.shares:
            continue
        past = ports[port.shares]
        if past.element != port.element or past.is_on_host or port.is_on_host:
            msg = (
                f"states: {past.name} ({past.element.dtype}) and {port.name} "
                f"({port.element.dtype}) cannot share memory"
            )
            raise RunError(msg)


def choose_profile(engine: api.CudaEngine, shapes: Mapping[str, Shape]) -> int:
    """Return the profile that takes the shapes; one that is tuned for them if there is one.

    Args:
        engine: The engine.
        shapes: Shapes of the inputs that lie on the device.

    Raises:
        RunError: No profile takes them; says what they do take.
    """
    profiles = range(max(1, engine.num_optimization_profiles))
    limits = [
        {name: _limits(engine, name, index) for name in shapes if _is_dynamic(engine, name)}
        for index in profiles
    ]
    fitting = [
        index
        for index in profiles
        if all(_lies_within(shapes[name], each) for name, each in limits[index].items())
    ]
    for index in fitting:
        if all(shapes[name] == each[1] for name, each in limits[index].items()):
            return index
    if fitting:
        return fitting[0]
    wrong = next(
        (name, each) for name, each in limits[0].items() if not _lies_within(shapes[name], each)
    )
    raise RunError(_outside(wrong[0], shapes[wrong[0]], wrong[1], len(profiles)))


def _outside(name: str, shape: Shape, limits: Sequence[Shape], profiles: int) -> str:
    others = f" or any of {profiles - 1} other profiles" if profiles > 1 else ""
    return (
        f"input {name} has shape {format_shape(shape)}, outside the profile of the engine "
        f"({format_shape(limits[0])} to {format_shape(limits[2])}){others}; "
        "build with min_shapes and max_shapes that hold it"
    )


def _is_dynamic(engine: api.CudaEngine, name: str) -> bool:
    return any(size < 0 for size in engine.get_tensor_shape(name))


def _limits(engine: api.CudaEngine, name: str, profile: int) -> tuple[Shape, ...]:
    return tuple(tuple(shape) for shape in engine.get_tensor_profile_shape(name, profile))


def _lies_within(shape: Shape, limits: Sequence[Shape]) -> bool:
    return len(shape) == len(limits[0]) and all(
        least <= size <= most
        for least, size, most in zip(limits[0], shape, limits[2], strict=True)
    )
