"""Recorded tuning runs in the T4 format, as benchmark_hub publishes them.

benchmark_hub (github.com/AutoTuningAssociation/benchmark_hub, MIT) holds every configuration of a
few GPU kernels, measured on several GPUs, with those that failed to compile or to run. A user
fetches it; nothing of it is kept here::

    git clone --depth 1 https://github.com/AutoTuningAssociation/benchmark_hub
    smart-tuner bench --recorded benchmark_hub/cachefiles/convolution_milo/A6000_T4.json.gz ...

What such a table is not: a compiler with 200 knobs near a good default. It has eight to ten
parameters, most of them sizes, nothing in it is a default, and they interact strongly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003, pydantic reads the annotations
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.effects import Noise
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

if TYPE_CHECKING:
    from collections.abc import Sequence

_OUTCOMES = {
    "correct": "feasible",
    "compile": "build_failed",
    "constraints": "build_failed",
    "runtime": "run_failed",
    "timeout": "timed_out",
    "correctness": "infeasible",
}
MAX_RESULTS = 200_000


class _Times(BaseModel):
    compilation: Annotated[float, Field(ge=0)] = 0.0
    framework: Annotated[float, Field(ge=0)] = 0.0
    validation: Annotated[float, Field(ge=0)] = 0.0
    runtimes: tuple[Annotated[float, Field(gt=0)], ...] = ()

    @property
    def seconds(self) -> float:
        """What the attempt cost; the file counts in milliseconds."""
        return (self.compilation + self.framework + self.validation + sum(self.runtimes)) / 1e3


class _Result(BaseModel):
    configuration: Mapping[str, int | float | str | bool]
    times: _Times
    invalidity: str

    @property
    def outcome(self) -> str:
        """In our words; a valid configuration without a measurement did not run."""
        outcome = _OUTCOMES.get(self.invalidity)
        if outcome is None:
            legal = ", ".join(_OUTCOMES)
            msg = f"Unknown invalidity {self.invalidity!r} in a T4 file; it is one of {legal}."
            raise UserInputError(msg)
        return "run_failed" if outcome == "feasible" and not self.times.runtimes else outcome


class _File(BaseModel):
    results: Annotated[tuple[_Result, ...], Field(min_length=1, max_length=MAX_RESULTS)]


def read_t4(text: str, origin: str) -> RecordedCompiler:
    """Read a T4 file as recorded trials.

    The median configuration, by mean run time, of all that worked is taken for the default: there
    is none in the file, and this one leaves as many above it as below. A configuration that is not
    in the file breaks the kernel's restrictions and does not build.

    Args:
        text: The JSON document.
        origin: Where it comes from, for people.

    Raises:
        UserInputError: It is not a T4 file, or no configuration in it worked.
    """
    try:
        results = _File.model_validate_json(text).results
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        msg = f"{origin}: not a T4 file at {place}: {first['msg']}."
        raise UserInputError(msg) from None
    default = _median_configuration(results, origin)
    knobs = tuple(
        Knob(name, _values(results, name), str(value), source="recorded")
        for name, value in default.configuration.items()
    )
    trials = {_key(result): _trial(result, default) for result in results}
    noise = Noise(build=0.0, measurement=_spread(results), spike_rate=0.0)
    return RecordedCompiler(knobs, tuple(trials.values()), noise=noise, origin=origin)


def _median_configuration(results: Sequence[_Result], origin: str) -> _Result:
    worked = [result for result in results if result.outcome == "feasible"]
    if not worked:
        msg = f"{origin}: no configuration in it worked."
        raise UserInputError(msg)
    worked.sort(key=lambda result: fmean(result.times.runtimes))
    return worked[len(worked) // 2]


def _key(result: _Result) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in result.configuration.items()))


def _trial(result: _Result, default: _Result) -> RecordedTrial:
    names = default.configuration.keys()
    if result.configuration.keys() != names:
        msg = f"A T4 configuration has other parameters than {', '.join(names)}."
        raise UserInputError(msg)
    values = {name: str(value) for name, value in result.configuration.items()}
    is_measured = result.outcome == "feasible"
    return RecordedTrial(
        values=values,
        outcome=result.outcome,
        latency_ms=fmean(result.times.runtimes) if is_measured else None,
        loss=0.0 if is_measured else None,
        build_seconds=result.times.seconds,
    )


def _values(results: Sequence[_Result], name: str) -> tuple[str, ...]:
    """Every value of a parameter, numbers by size."""
    found = {result.configuration.get(name, "") for result in results}
    return tuple(
        str(value)
        for value in sorted(found, key=lambda value: (isinstance(value, str), value, str(value)))
    )


def _spread(results: Sequence[_Result]) -> float:
    """Standard deviation of ln(mean of a configuration's runs), at the median configuration."""
    logs = ([math.log(run) for run in result.times.runtimes] for result in results)
    errors = [stdev(runs) / math.sqrt(len(runs)) for runs in logs if len(runs) > 1]
    return median(errors) if errors else 0.0
