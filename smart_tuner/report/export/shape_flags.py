"""Shapes of a workload as flags of trtexec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.model.shapes import format_shape, parse_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_tuner.model.workload import Workload

Shapes = dict[str, tuple[int, ...]]
_REDUCE: Mapping[str, Callable[..., int]] = {"min": min, "max": max}


def shape_flags(workload: Workload, settings: Mapping[str, str]) -> tuple[list[str], str]:
    """Flags that build with the workload's profiles and run its first point.

    trtexec refuses shapes for a model whose inputs are all static, and takes none for a static
    input, so only the others are named.

    Returns:
        The flags, and what is wrong with them; empty if nothing is.
    """
    free = [spec.name for spec in workload.model.inputs if not spec.is_static]
    if odd := [name for name in free if "," in name or "'" in name]:
        return [], f"trtexec cannot name the input {odd[0]!r}"
    if not free:
        return [], ""
    points = [_only(free, point.shapes) for point in workload.points]
    first = _named("shapes", points[0])
    if settings.get("profiles") == "per_point" and len(points) > 1:
        words = []
        for index, shapes in enumerate(points):
            words.append(f"--profile={index}")
            words += [_named(f"{end}Shapes", shapes) for end in ("min", "opt", "max")]
        return [*words, "--useProfile=0", first], ""
    profile = profile_shapes(workload, settings)
    ends = {end: _only(free, profile[end]) for end in ("min", "opt", "max")}
    if ends["min"] == ends["opt"] == ends["max"] == points[0]:
        return [first], ""
    return [*(_named(f"{end}Shapes", shapes) for end, shapes in ends.items()), first], ""


def profile_shapes(workload: Workload, settings: Mapping[str, str]) -> dict[str, Shapes]:
    """The shared profile: what the base says, else what the points span, the first one as opt."""
    points = [point.shapes for point in workload.points]
    found: dict[str, Shapes] = {"opt": dict(map(_as_tuple, points[0].items()))}
    for end, reduce in _REDUCE.items():
        found[end] = {
            name: tuple(map(reduce, *(point[name] for point in points)))
            if len(points) > 1
            else tuple(shape)
            for name, shape in points[0].items()
        }
    for end, shapes in found.items():
        text = settings.get(f"{end}_shapes", "")
        shapes.update(parse_shapes(text.split()) if text else {})
    return found


def _as_tuple(item: tuple[str, tuple[int, ...]]) -> tuple[str, tuple[int, ...]]:
    return item[0], tuple(item[1])


def _only(names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> Shapes:
    return {name: tuple(shapes[name]) for name in names}


def _named(option: str, shapes: Shapes) -> str:
    return f"--{option}=" + ",".join(
        f"{name}:{format_shape(shape)}" for name, shape in shapes.items()
    )
