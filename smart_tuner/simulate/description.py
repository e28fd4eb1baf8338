"""The JSON file that a simulated compiler, or recorded trials, are kept in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Gate, Noise, PairEffect, ValueEffect
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

MAX_CHARACTERS = 64_000_000
"""Length of the longest text that is parsed."""

_Text = Annotated[str, Field(max_length=1000)]
_Setting = tuple[_Text, _Text]
_Log = Annotated[float, Field(ge=-50, le=50)]
_Amount = Annotated[float, Field(ge=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class Description:
    """A pretend compiler and how the replay backend plays it.

    Attributes:
        compiler: What answers.
        real_seconds: Seconds that really pass for each simulated second; 0 answers at once.
        seed: Makes builds and measurements repeatable; ``None`` draws them anew, as real
            compilers do.
    """

    compiler: SimulatedCompiler | RecordedCompiler
    real_seconds: float = 0.0
    seed: int | None = None


def write_description(description: Description) -> str:
    """Write a description as JSON; ``read_description`` gives an equal one back.

    Raises:
        UserInputError: It holds what the file cannot, such as an infinite latency.
    """
    compiler = description.compiler
    try:
        wire = _DescriptionWire(
            schema_version=1,
            real_seconds=description.real_seconds,
            seed=description.seed,
            simulated=_SimulatedWire.model_validate(compiler, from_attributes=True)
            if isinstance(compiler, SimulatedCompiler)
            else None,
            recorded=_RecordedWire.model_validate(compiler, from_attributes=True)
            if isinstance(compiler, RecordedCompiler)
            else None,
        )
    except ValidationError as error:
        raise _refusal(error) from None
    return wire.model_dump_json(exclude_defaults=True, indent=1) + "\n"


def read_description(text: str) -> Description:
    """Read what ``write_description`` wrote, or a person.

    Raises:
        UserInputError: Not JSON, an unknown key, a value of the wrong type or out of bounds, or
            parts that do not fit each other.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"The replay description is longer than {MAX_CHARACTERS} characters."
        raise UserInputError(msg)
    try:
        wire = _DescriptionWire.model_validate_json(text.encode("utf-8", "surrogatepass"))
    except ValidationError as error:
        raise _refusal(error) from None
    compilers = [part.compiler() for part in (wire.simulated, wire.recorded) if part is not None]
    if len(compilers) != 1:
        msg = "A replay description has either a `simulated` or a `recorded` part, one of both."
        raise UserInputError(msg)
    return Description(compilers[0], wire.real_seconds, wire.seed)


def _refusal(error: ValidationError) -> UserInputError:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part)[:60] for part in first["loc"]) or "the text"
    return UserInputError(f"Cannot read the replay description at {place}: {first['msg']}.")


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _KnobWire(_Wire):
    name: Annotated[_Text, Field(min_length=1)]
    values: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=1000)]
    default: _Text
    help: Annotated[str, Field(max_length=10_000)] = ""


class _EffectWire(_Wire):
    knob: _Text
    value: _Text
    log_latency: _Log = 0.0
    loss: _Amount = 0.0
    log_build: _Log = 0.0
    failure: Failure | None = None
    noop: bool = False


class _PairWire(_Wire):
    first: _Setting
    second: _Setting
    log_latency: _Log = 0.0
    failure: Failure | None = None


class _GateWire(_Wire):
    child: _Text
    parent: _Text
    opened_by: _Text


class _NoiseWire(_Wire):
    build: _Amount = Noise().build
    measurement: _Amount = Noise().measurement
    spike_rate: Annotated[float, Field(ge=0, le=1)] = Noise().spike_rate
    spike_size: _Amount = Noise().spike_size
    drift: _Log = Noise().drift
    drift_period_seconds: Annotated[float, Field(ge=1e-6, le=1e12)] = Noise().drift_period_seconds


class _TrialWire(_Wire):
    values: dict[_Text, _Text]
    outcome: _Text
    latency_ms: _Amount | None = None
    loss: _Amount | None = None
    build_seconds: _Amount = 0.0


_Knobs = Annotated[tuple[_KnobWire, ...], Field(min_length=1, max_length=2000)]


def _to_knobs(wires: tuple[_KnobWire, ...]) -> tuple[Knob, ...]:
    return tuple(
        Knob(wire.name, wire.values, wire.default, wire.help, source="simulated") for wire in wires
    )


class _SimulatedWire(_Wire):
    knobs: _Knobs
    base_latency_ms: _Amount
    epsilon: _Amount = 1e-3
    effects: Annotated[tuple[_EffectWire, ...], Field(max_length=100_000)] = ()
    pairs: Annotated[tuple[_PairWire, ...], Field(max_length=100_000)] = ()
    gates: Annotated[tuple[_GateWire, ...], Field(max_length=2000)] = ()
    noise: _NoiseWire = _NoiseWire()
    build_seconds: _Amount = 10.0
    timeout_seconds: _Amount = 60.0
    base_loss: _Amount = 0.0
    jitter: _Amount = 0.0
    origin: _Text = ""

    def compiler(self) -> SimulatedCompiler:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return SimulatedCompiler(
            **fields
            | {
                "knobs": _to_knobs(self.knobs),
                "effects": tuple(ValueEffect(**part.model_dump()) for part in self.effects),
                "pairs": tuple(PairEffect(**part.model_dump()) for part in self.pairs),
                "gates": tuple(Gate(**part.model_dump()) for part in self.gates),
                "noise": Noise(**self.noise.model_dump()),
            }
        )


class _RecordedWire(_Wire):
    knobs: _Knobs
    trials: Annotated[tuple[_TrialWire, ...], Field(max_length=1_000_000)]
    noise: _NoiseWire = _NoiseWire(build=0.0, spike_rate=0.0)
    timeout_seconds: _Amount = 60.0
    origin: _Text = ""

    def compiler(self) -> RecordedCompiler:
        return RecordedCompiler(
            knobs=_to_knobs(self.knobs),
            trials=tuple(RecordedTrial(**part.model_dump()) for part in self.trials),
            noise=Noise(**self.noise.model_dump()),
            timeout_seconds=self.timeout_seconds,
            origin=self.origin,
        )


class _DescriptionWire(_Wire):
    schema_version: Literal[1]
    real_seconds: _Amount = 0.0
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    simulated: _SimulatedWire | None = None
    recorded: _RecordedWire | None = None
