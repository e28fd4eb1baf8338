"""Whether two runs of one engine on the same inputs give the same outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.validate.elements import differences as differences_of_numbers
from smart_tuner.validate.elements import (
    holds_ids,
    is_same_non_finite,
    numbers,
    share_of_different_ids,
    why_incomparable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Array = npt.NDArray[Any]


def differences(first: Mapping[str, Array], second: Mapping[str, Array]) -> tuple[str, ...]:
    """Return one line for each output that differs; NaN equals NaN in the same place.

    Args:
        first: Outputs of one run.
        second: Outputs of another run on the same inputs.
    """
    lines = [_difference(name, first[name], second.get(name)) for name in first]
    lines += [f"output {name!r} came only once" for name in second if name not in first]
    return tuple(line for line in lines if line)


def _difference(name: str, first: Array, second: Array | None) -> str:
    if second is None:
        return f"output {name!r} came only once"
    problem = why_incomparable(first, second)
    if problem:
        return f"output {name!r} had {problem.replace('the reference has', 'it had before')}"
    if holds_ids(first):
        return _share(name, share_of_different_ids(first, second))
    left, right = numbers(first), numbers(second)
    different = ~((left == right) | is_same_non_finite(left, right))
    gap = differences_of_numbers(first, second)[different]
    finite = gap[np.isfinite(gap)]
    size = f", by up to {finite.max():.3g}" if finite.size else ""
    return _share(name, float(different.mean()) if different.size else 0.0, size)


def _share(name: str, share: float, size: str = "") -> str:
    return f"output {name!r} differs in {100 * share:.3g} % of its elements{size}" if share else ""
