"""One search on one workload, as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003, pydantic reads the annotations
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from smart_tuner.bench.workloads import Workload  # noqa: TC001, as above
from smart_tuner.errors import UserInputError

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Task:
    """What identifies a run.

    Attributes:
        sampler: Name of the sampler.
        workload: What it works on.
        trials: How many trials it gets.
    """

    sampler: str
    workload: Workload
    trials: int


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of one search. Latencies are natural logarithms of latency over default.

    Attributes:
        task: What was run.
        digest: Of the compiler, so that runs on another version of a generator are not mixed in.
        optimum: True log latency of the fastest feasible route; 0 if nothing can be gained.
        shipped: True log latency of the recommended route after each trial.
        observed: The same for the route with the best figure of the search itself.
        costs: What the search had cost after each trial, in builds of the default route.
        outcomes: How many trials ended in which way.
        repeated: How many trials tried a route again.
        ask_seconds: Seconds that the sampler took after each trial, in all.
        confirmed: True log latency of the route that the study would ship at the end; 0 for the
            default.
        is_winner: Whether a route was confirmed to beat the default at ``MIN_GAIN``.
        is_winner_at_one: Whether one was confirmed to be faster at all.
    """

    __pydantic_config__ = _STRICT

    task: Task
    digest: str
    optimum: float
    shipped: tuple[float, ...]
    observed: tuple[float, ...]
    costs: tuple[float, ...]
    outcomes: Mapping[str, int]
    repeated: Annotated[int, Field(ge=0)]
    ask_seconds: tuple[float, ...]
    confirmed: float
    is_winner: bool
    is_winner_at_one: bool

    def to_line(self) -> str:
        """One line of JSON; ``from_line`` gives an equal run back."""
        return json.dumps(asdict(self), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Run:
        """Read a line.

        Raises:
            UserInputError: It is not what ``to_line`` writes.
        """
        try:
            return _ADAPTER.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            msg = f"Not a run of this version at {place}: {first['msg']}."
            raise UserInputError(msg) from None


_ADAPTER = TypeAdapter(Run)
