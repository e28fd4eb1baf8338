"""What a model is tuned for: weighted points, each with reference pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class ReferencePair:
    """Inputs with the outputs that a trusted runtime gave for them (trtexec: ``--refPair``).

    Attributes:
        name: Unique within its point; shown when this pair decides.
        inputs: Tensor file with every model input.
        outputs: Tensor file with the trusted outputs.
        held_out: Never seen by the search; decides whether the winner ships.
    """

    name: str
    inputs: Path
    outputs: Path
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadPoint:
    """One set of input shapes, with its share of the objective.

    Attributes:
        name: Unique within the workload.
        weight: Share of this point in the mean log ratio, > 0; shares need not add up to 1.
        shapes: Concrete shape of each input.
        pairs: At least one pair that is not held out; the first one is also the timed input.
        synthetic: Whether the inputs were made up from a seed.
    """

    name: str
    weight: float
    shapes: Mapping[str, tuple[int, ...]]
    pairs: tuple[ReferencePair, ...]
    synthetic: bool

    @property
    def search_pairs(self) -> tuple[ReferencePair, ...]:
        """The pairs that trials are checked against."""
        return tuple(pair for pair in self.pairs if not pair.held_out)


@dataclass(frozen=True, slots=True)
class Workload:
    """A model with the points it is tuned for."""

    model: ModelSpec
    points: tuple[WorkloadPoint, ...]
