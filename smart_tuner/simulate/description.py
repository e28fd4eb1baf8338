"""The JSON file that a simulated compiler, or recorded trials, are kept in.

Every child process of the replay backend reads it. So the rules are given to pydantic's core, not
to its model classes: those take 80 ms to import and to build, a quarter of a child's start.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, ValidationError
from pydantic_core import core_schema as rules

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Gate, Noise, PairEffect, ValueEffect
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import CoreSchema

MAX_CHARACTERS = 64_000_000
"""Length of the longest text that is parsed."""


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
    kind = "simulated" if isinstance(compiler, SimulatedCompiler) else "recorded"
    document = {
        "schema_version": 1,
        "real_seconds": description.real_seconds,
        "seed": description.seed,
        kind: _written(compiler),
    }
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    _checked(text)
    return text


def read_description(text: str) -> Description:
    """Read what ``write_description`` wrote, or a person.

    Raises:
        UserInputError: Not JSON, an unknown key, a value of the wrong type or out of bounds, or
            parts that do not fit each other.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"The replay description is longer than {MAX_CHARACTERS} characters."
        raise UserInputError(msg)
    data = _checked(text)
    made = [
        make(data[name])
        for name, make in (("simulated", _simulated), ("recorded", _recorded))
        if data.get(name) is not None
    ]
    if len(made) != 1:
        msg = "A replay description has either a `simulated` or a `recorded` part, one of both."
        raise UserInputError(msg)
    return Description(made[0], data.get("real_seconds", 0.0), data.get("seed"))


def _checked(text: str) -> dict[str, Any]:
    try:
        data: dict[str, Any] = _DOCUMENT.validate_json(text.encode("utf-8", "surrogatepass"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part)[:60] for part in first["loc"]) or "the text"
        msg = f"Cannot read the replay description at {place}: {first['msg']}."
        raise UserInputError(msg) from None
    return data


def _written(part: Any) -> dict[str, Any]:
    """The fields of a part that the file holds, those left out that are at their defaults."""
    kept = {}
    for item in fields(part):
        if item.name not in _RULES[type(part)]:
            continue
        value = getattr(part, item.name)
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if value != default or item.name in _ALWAYS:
            kept[item.name] = _plain(value)
    return kept


def _plain(value: Any) -> Any:
    if type(value) in _RULES:
        return _written(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _simulated(data: Mapping[str, Any]) -> SimulatedCompiler:
    parts = {
        "effects": tuple(ValueEffect(**part) for part in data.get("effects", ())),
        "pairs": tuple(PairEffect(**part) for part in data.get("pairs", ())),
        "gates": tuple(Gate(**part) for part in data.get("gates", ())),
    }
    return SimulatedCompiler(**{**data, **_common(data), **parts})


def _recorded(data: Mapping[str, Any]) -> RecordedCompiler:
    trials = tuple(RecordedTrial(**part) for part in data["trials"])
    return RecordedCompiler(**{**data, **_common(data), "trials": trials})


def _common(data: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "knobs": tuple(Knob(**part, source="simulated") for part in data["knobs"])
    }
    if "noise" in data:
        parts["noise"] = Noise(**data["noise"])
    return parts


def _part(kind: type) -> CoreSchema:
    """An object with the fields of a kind of part; those without a default are required."""
    required = _ALWAYS | {
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    }
    return rules.typed_dict_schema(
        {
            name: rules.typed_dict_field(rule, required=name in required)
            for name, rule in _RULES[kind].items()
        },
        extra_behavior="forbid",
    )


def _number(least: float, most: float) -> CoreSchema:
    return rules.float_schema(ge=least, le=most, strict=True, allow_inf_nan=False)


def _several(part: CoreSchema, most: int, *, least: int = 0) -> CoreSchema:
    return rules.tuple_schema([part], variadic_item_index=0, min_length=least, max_length=most)


_TEXT = rules.str_schema(max_length=1000)
_SETTING = rules.tuple_schema([_TEXT, _TEXT])
_LOG, _AMOUNT = _number(-50, 50), _number(0, 1e12)
_FAILURE = rules.nullable_schema(rules.enum_schema(Failure, list(Failure), sub_type="str"))

_ALWAYS = frozenset({"base_latency_ms"})
"""Fields with a default that a description states all the same."""

_RULES: dict[type, dict[str, CoreSchema]] = {
    Knob: {
        "name": rules.str_schema(min_length=1, max_length=1000),
        "values": _several(_TEXT, 1000, least=1),
        "default": _TEXT,
        "help": rules.str_schema(max_length=10_000),
    },
    ValueEffect: {
        "knob": _TEXT,
        "value": _TEXT,
        "log_latency": _LOG,
        "loss": _AMOUNT,
        "log_build": _LOG,
        "failure": _FAILURE,
        "noop": rules.bool_schema(strict=True),
    },
    PairEffect: {
        "first": _SETTING,
        "second": _SETTING,
        "log_latency": _LOG,
        "failure": _FAILURE,
    },
    Gate: {"child": _TEXT, "parent": _TEXT, "opened_by": _TEXT},
    Noise: {
        "build": _AMOUNT,
        "measurement": _AMOUNT,
        "spike_rate": _number(0, 1),
        "spike_size": _AMOUNT,
        "drift": _LOG,
        "drift_period_seconds": _number(1e-6, 1e12),
    },
    RecordedTrial: {
        "values": rules.dict_schema(_TEXT, _TEXT),
        "outcome": _TEXT,
        "latency_ms": rules.nullable_schema(_AMOUNT),
        "loss": rules.nullable_schema(_AMOUNT),
        "build_seconds": _AMOUNT,
    },
}
_RULES[SimulatedCompiler] = {
    "knobs": _several(_part(Knob), 2000, least=1),
    "base_latency_ms": _AMOUNT,
    "epsilon": _AMOUNT,
    "effects": _several(_part(ValueEffect), 100_000),
    "pairs": _several(_part(PairEffect), 100_000),
    "gates": _several(_part(Gate), 2000),
    "noise": _part(Noise),
    "build_seconds": _AMOUNT,
    "timeout_seconds": _AMOUNT,
    "base_loss": _AMOUNT,
    "jitter": _AMOUNT,
    "origin": _TEXT,
}
_RULES[RecordedCompiler] = {
    "knobs": _several(_part(Knob), 2000, least=1),
    "trials": _several(_part(RecordedTrial), 1_000_000),
    "noise": _part(Noise),
    "timeout_seconds": _AMOUNT,
    "origin": _TEXT,
}
_DOCUMENT = SchemaValidator(
    rules.typed_dict_schema(
        {
            "schema_version": rules.typed_dict_field(rules.literal_schema([1])),
            "real_seconds": rules.typed_dict_field(_AMOUNT, required=False),
            "seed": rules.typed_dict_field(
                rules.nullable_schema(rules.int_schema(ge=0, le=2**63 - 1, strict=True)),
                required=False,
            ),
            "simulated": rules.typed_dict_field(
                rules.nullable_schema(_part(SimulatedCompiler)), required=False
            ),
            "recorded": rules.typed_dict_field(
                rules.nullable_schema(_part(RecordedCompiler)), required=False
            ),
        },
        extra_behavior="forbid",
    ),
)
