"""What is held of values before a study begins, for instance from studies of other models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.samplers.route_sampler.space import Choice


@dataclass(frozen=True, slots=True)
class ValueBelief:
    """What is held of one value of one knob; ``None`` where nothing is.

    Attributes:
        active: Probability that it changes the latency at all, above 0 and below 1.
        mean: Expected effect if it does, ln(latency ratio); negative is faster.
        spread: Standard deviation of that effect, above 0.
        failure: Probability that routes with it break, above 0 and below 1.
        violation: Probability that routes with it break a continuous constraint such as
            ``accuracy``, above 0 and below 1.

    Raises:
        UserInputError: A figure is out of bounds.
    """

    active: float | None = None
    mean: float = 0.0
    spread: float | None = None
    failure: float | None = None
    violation: float | None = None

    def __post_init__(self) -> None:
        for name in ("active", "failure", "violation"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 1:
                msg = f"A belief's {name} is {share}; a probability between 0 and 1 is needed."
                raise UserInputError(msg)
        if self.spread is not None and not 0 < self.spread < math.inf:
            msg = f"A belief's spread is {self.spread}; a number above 0 is needed."
            raise UserInputError(msg)
        if not math.isfinite(self.mean):
            msg = f"A belief's mean is {self.mean}; a finite number is needed."
            raise UserInputError(msg)


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Starting beliefs of a search; measurements overrule them.

    Attributes:
        values: By (knob name, value). Knobs and values that the space lacks are ignored.
        routes: Routes worth trying early, best first, as values by knob name; knobs left out are
            at their default, and what the space lacks is ignored.
    """

    values: Mapping[tuple[str, Choice], ValueBelief] = field(default_factory=dict)
    routes: tuple[Mapping[str, Choice], ...] = ()
