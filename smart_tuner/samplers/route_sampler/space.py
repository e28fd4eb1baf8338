"""The space that a sampler moves in, with routes as tuples of choice indices."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from optuna.distributions import CategoricalDistribution

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

Choice = None | bool | int | float | str
"""What a knob can be set to: what Optuna can keep."""

Route = tuple[int, ...]
"""Index into a knob's choices, one a knob."""


@dataclass(frozen=True, slots=True)
class RouteSpace:
    """Knobs with their choices.

    Attributes:
        names: Knob names.
        choices: Choices of each knob, at least one.
        default: The default route.
        indices_by_name: For each knob, choice to index; in the order of ``names``.
    """

    names: tuple[str, ...]
    choices: tuple[tuple[Choice, ...], ...]
    default: Route
    indices_by_name: dict[str, dict[object, int]]

    @classmethod
    def of(
        cls, choices: Mapping[str, Sequence[Choice]], defaults: Mapping[str, Choice]
    ) -> RouteSpace:
        """Check and take over a space.

        Args:
            choices: Choices by knob name.
            defaults: One of the choices by knob name.

        Raises:
            UserInputError: Two choices of a knob are equal (as 1 and True are), one is NaN, or a
                default is no choice.
        """
        for name, values in choices.items():
            _check_choices(name, values)
            if name not in defaults or defaults[name] not in values:
                msg = f"Knob {name}: the default {defaults.get(name)!r} is not among its choices."
                raise UserInputError(msg)
        indices: dict[str, dict[object, int]] = {
            name: {value: index for index, value in enumerate(values)}
            for name, values in choices.items()
        }
        return cls(
            names=tuple(choices),
            choices=tuple(tuple(values) for values in choices.values()),
            default=tuple(index[defaults[name]] for name, index in indices.items()),
            indices_by_name=indices,
        )

    @property
    def size(self) -> int:
        """Number of routes."""
        return math.prod(len(values) for values in self.choices)

    @property
    def distributions(self) -> dict[str, CategoricalDistribution]:
        """As Optuna wants it; knobs with one choice are left out, since Optuna sets them."""
        return {
            name: CategoricalDistribution(values)
            for name, values in zip(self.names, self.choices, strict=True)
            if len(values) > 1
        }

    @property
    def alternatives(self) -> tuple[tuple[int, int], ...]:
        """Every (knob, choice) that is not a default, in order: the columns of ``flags``."""
        return tuple(
            (knob, choice)
            for knob, values in enumerate(self.choices)
            for choice in range(len(values))
            if choice != self.default[knob]
        )

    def encode(self, params: Mapping[str, object]) -> Route | None:
        """Turn parameters into a route; knobs without a value are at their default.

        Returns:
            ``None`` if no knob has a value, or one has a value that is no choice (any more).
        """
        if self.names and params.keys().isdisjoint(self.names):
            return None
        if not params.keys() >= self.indices_by_name.keys():
            params = {**self.decode(self.default), **params}
        # Done for every trial at every ask: two C loops, no Python code a knob.
        values = map(params.__getitem__, self.names)
        try:
            route = tuple(map(dict.get, self.indices_by_name.values(), values))
        except TypeError:  # a value that cannot be hashed, from a space of another kind
            return None
        return None if None in route else cast("Route", route)

    def decode(self, route: Route) -> dict[str, Choice]:
        """Value by knob name."""
        return {
            name: values[choice]
            for name, values, choice in zip(self.names, self.choices, route, strict=True)
        }

    def changes(self, route: Route) -> dict[str, Choice]:
        """Value by knob name where it is not the default."""
        values = self.decode(route)
        return {
            name: values[name]
            for name, choice, default in zip(self.names, route, self.default, strict=True)
            if choice != default
        }

    def flags(self, routes: Sequence[Route]) -> npt.NDArray[np.bool_]:
        """Whether route i has alternative j; shape (routes, alternatives)."""
        table = np.array(routes, dtype=np.int64).reshape(len(routes), len(self.names))
        columns = np.array(self.alternatives, dtype=np.int64).reshape(-1, 2)
        return np.asarray(table[:, columns[:, 0]] == columns[:, 1])

    def around(self, route: Route, generator: np.random.Generator) -> Iterator[Route]:
        """Every other route, nearest first, in random order of the knobs."""
        knobs = [knob for knob, values in enumerate(self.choices) if len(values) > 1]
        order = [int(knob) for knob in generator.permutation(knobs)]
        for distance in range(1, len(order) + 1):
            for picked in itertools.combinations(order, distance):
                options = (
                    [c for c in range(len(self.choices[knob])) if c != route[knob]]
                    for knob in picked
                )
                for values in itertools.product(*options):
                    yield replace(route, dict(zip(picked, values, strict=True)))


def replace(route: Route, changes: Mapping[int, int]) -> Route:
    """The route with other choices at some knobs."""
    return tuple(changes.get(knob, choice) for knob, choice in enumerate(route))


def _check_choices(name: str, values: Sequence[Choice]) -> None:
    if len(set(values)) != len(values) or not values:
        msg = f"Knob {name}: choices must be at least one, each given once; 1 equals True and 1.0."
        raise UserInputError(msg)
    if any(value != value for value in values):
        msg = f"Knob {name}: NaN equals nothing, not even itself; use the text 'nan'."
        raise UserInputError(msg)
