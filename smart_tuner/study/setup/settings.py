"""The settings of a study: one definition for flags, TOML files and the Python call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from smart_tuner.errors import UserInputError
from smart_tuner.study.setup.units import duration_word, parse_duration, parse_size
from smart_tuner.study.setup.worker_settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

Duration = Annotated[float, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(parse_size)]
Texts = tuple[str, ...]

BASE_FLAGS: Mapping[str, tuple[str, str]] = {
    "plugin": ("plugins", os.pathsep),
    "launch": ("launch", ""),
    "objective": ("objective", ""),
    "io": ("io", ""),
    "streams": ("streams", ""),
    "state": ("states", " "),
    "min_shapes": ("min_shapes", " "),
    "opt_shapes": ("opt_shapes", " "),
    "max_shapes": ("max_shapes", " "),
}
"""Settings that are another way to write one of the base: its name there, and what stands between
several values. A backend refuses those that it does not know."""

_DURATIONS = frozenset({"budget", "trial_timeout", "max_build_time"})
_LISTS = (
    *("metric", "epsilon", "shapes", "inputs", "outputs", "held_out", "input_range"),
    *("only", "freeze", "ask", "values", "first", "reuse", "prior", "regions", "precisions"),
    *("plugin", "state", "min_shapes", "opt_shapes", "max_shapes"),
)


class StudySettings(WorkerSettings):
    """Everything that a user may decide about a study.

    A field's description is the help of its flag; ``min_gain`` is ``--min-gain`` on the command
    line and ``min_gain`` in a TOML file.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="constants"
    )

    model: Path = Field(description="The ONNX model to tune.")
    study: Path | None = Field(
        None, description="Study folder; the same command continues it. [default: MODEL.study]"
    )
    backend: str = Field("onnxruntime", description="What compiles and runs the model.")
    base: Path | None = Field(
        None,
        description="TOML file with your production settings; routes are tried on top of them.",
    )
    budget: Duration = Field(
        600.0, ge=0, description="Wall-clock limit of the whole study, as 90s, 10m or 2h."
    )
    trials: int | None = Field(None, ge=1, description="Limit on the number of trials.")
    sampler: str = Field(
        "default",
        description="What proposes routes: default, tpe, evolution, random, fast or mixed.",
    )
    first: Texts = Field(
        (), description="Route to try first, such as the winner of an earlier study."
    )
    reuse: tuple[Path, ...] = Field(
        (), description="Study of the same thing whose measured routes count here as well."
    )
    prior: Texts = Field(
        (), description="Begin from a prior file, past studies, or auto: the nearest in ./studies."
    )
    seed: int | None = Field(
        None, ge=0, lt=1 << 63, description="Seed of everything random; drawn if missing."
    )
    metric: Texts = Field(
        (),
        description="Accuracy loss: l0, l1, l2, linf, cos, mae, top1, embedding, or "
        "module:function; OUTPUT=NAME for one output. [default: l0]",
    )
    epsilon: Texts = Field(
        (),
        description="Largest acceptable loss: a number, OUTPUT:NUMBER, or auto. [default: 0.001]",
    )
    rtol: float = Field(1e-3, ge=0, description="Relative tolerance of l0.")
    atol: float = Field(1e-4, ge=0, description="Absolute tolerance of l0.")
    over_pairs: Literal["worst", "mean"] = Field(
        "worst",
        description="Loss over several reference pairs that keeps epsilon: worst or mean.",
    )
    reference: Literal["unoptimized", "baseline"] = Field(
        "unoptimized",
        description="Who makes reference outputs that you do not give: unoptimized (another "
        "compiler, where the backend names one) or baseline.",
    )
    shapes: Texts = Field((), description="Input shapes, as NAME:1x3x224x224.")
    inputs: Texts = Field(
        (),
        description="Reference inputs: .npz, NAME:FILE.npy, NAME:FILE.bin, or a folder of pairs.",
    )
    outputs: Texts = Field((), description="Reference outputs for --inputs, in the same forms.")
    held_out: Texts = Field(
        (), description="Reference pairs that only decide whether the winner ships."
    )
    input_range: Texts = Field((), description="Range of synthetic inputs, as NAME:LOW:HIGH.")
    workload: Path | None = Field(None, description="TOML file with several weighted points.")
    only: Texts = Field((), description="Search only knobs that match these patterns.")
    freeze: Texts = Field((), description="Leave knobs that match these patterns at the base.")
    ask: Texts = Field((), description="Also search these knobs that are off unless asked for.")
    values: Texts = Field((), description="Values of an open knob, as KNOB=[1|2|4].")
    all_knobs: bool = Field(
        default=False, description="Also search knobs that seem idle on this model."
    )
    regions: Texts = Field(
        (),
        description="Search the precision of parts of the graph: how many, auto, per-layer, or "
        "patterns of node names, as NAME=PATTERN.",
    )
    precisions: Texts = Field(
        (),
        description="What regions may be: fp16, bf16, int8, int8_dynamic or fp8. [default: what "
        "the backend has fast kernels for]",
    )
    calibration: Literal["minmax", "entropy", "percentile"] = Field(
        "minmax", description="How int8 and fp8 find their ranges: minmax, entropy or percentile."
    )
    min_gain: float = Field(
        1.01, ge=1.0, description="Smallest gain, at the interval's lower bound, that ships."
    )
    max_regression: float = Field(
        0.05, ge=0, description="Largest slow-down at any one workload point of a winner."
    )
    trial_timeout: Duration = Field(
        300.0, gt=0, description="A trial that takes longer is killed."
    )
    memory_limit: Size | None = Field(
        None, gt=0, description="Memory of one child process, as 512M or 4G."
    )
    statistic: Literal["median", "mean", "p90", "p95", "p99"] = Field(
        "median", description="Figure of the latency: median, mean, p90, p95 or p99."
    )
    objective: Literal["end_to_end", "compute", "throughput"] | None = Field(
        None, description="What is measured: end_to_end, compute or throughput."
    )
    io: Literal["host", "device", "zero_copy"] | None = Field(
        None, description="Where inputs and outputs lie: host, device or zero-copy."
    )
    launch: Literal["auto", "graph", "enqueue"] | None = Field(
        None, description="How inferences are launched: auto, graph or enqueue."
    )
    streams: int | None = Field(None, ge=1, description="Streams of --objective throughput.")
    plugin: Texts = Field((), description="Library with custom layers.")
    state: Texts = Field((), description="Input and output that share a buffer (KV cache).")
    min_shapes: Texts = Field((), description="Smallest input shapes of the engine, as --shapes.")
    opt_shapes: Texts = Field((), description="Input shapes that the engine is optimized for.")
    max_shapes: Texts = Field((), description="Largest input shapes of the engine.")
    max_memory: Size | None = Field(
        None, gt=0, description="Device memory that an engine may hold, as 512M or 4G."
    )
    max_engine_size: Size | None = Field(
        None, gt=0, description="Size that an engine file may have, as 100M."
    )
    max_build_time: Duration | None = Field(
        None, gt=0, description="Time that a build may take, as 90s or 5m."
    )

    @field_validator("regions", "precisions", mode="after")
    @classmethod
    def _each(cls, value: Texts) -> Texts:
        """Take ``fp16,int8`` for two values."""
        return tuple(part for text in value for part in text.split(",") if part)

    @field_validator("objective", "io", "launch", mode="before")
    @classmethod
    def _with_underscores(cls, value: object) -> object:
        """Take ``zero-copy`` for ``zero_copy``, as flags are written."""
        return value.replace("-", "_") if isinstance(value, str) else value

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _as_texts(cls, value: object) -> object:
        """Take one value for a list of one, None for none, numbers for text: ``epsilon = 0.01``."""
        if value is None:
            return ()
        items = [value] if isinstance(value, str | float | int) else value
        if not isinstance(items, list | tuple):
            return value
        return tuple(str(item) if isinstance(item, float | int) else item for item in items)

    @model_validator(mode="after")
    def _check_together(self) -> StudySettings:
        if self.epsilon and not self.metric:
            msg = (
                "an epsilon means nothing without its metric: add --metric, "
                "e.g. --metric linf --epsilon 0.01"
            )
            raise ValueError(msg)
        if self.budget == 0:
            msg = "the budget is zero: give --budget 10m, and --trials N to also limit the count"
            raise ValueError(msg)
        said = (self.shapes, self.inputs, self.outputs, self.held_out, self.input_range)
        if self.workload and any(said):
            msg = (
                "--workload says all about inputs itself: leave out --shapes, --inputs, "
                "--outputs, --held-out and --input-range"
            )
            raise ValueError(msg)
        if self.outputs and not self.inputs:
            msg = "--outputs needs the --inputs that they belong to"
            raise ValueError(msg)
        return self

    @property
    def base_settings(self) -> dict[str, str]:
        """What the settings of ``BASE_FLAGS`` say, under the names that a base uses."""
        given: dict[str, str] = {}
        for name, (key, between) in BASE_FLAGS.items():
            value = getattr(self, name)
            if value not in (None, ()):
                given[key] = between.join(value) if isinstance(value, tuple) else str(value)
        return given

    @property
    def folder(self) -> Path:
        """The study folder, absolute."""
        chosen = self.study or Path(f"{self.model.stem}.study")
        return chosen.expanduser().absolute()


def make_settings(values: dict[str, Any]) -> StudySettings:
    """Validate settings.

    Raises:
        UserInputError: A key is unknown or a value is wrong; one line that names it.
    """
    try:
        return StudySettings.model_validate(values)
    except ValidationError as error:
        raise UserInputError(describe(error)) from None


def describe(error: ValidationError) -> str:
    """Say in one line what is wrong with settings."""
    lines = []
    for problem in error.errors(include_url=False):
        place = ".".join(str(part) for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            known = ", ".join(sorted(StudySettings.model_fields))
            text = f"no such setting; known are {known}"
        lines.append(f"{place}: {text}" if place else text)
    return "; ".join(lines)


def command_line(values: Mapping[str, Any], folder: Path) -> list[str]:
    """The ``tune`` command that these settings stand for, word by word.

    Args:
        values: Settings as ``study.toml`` keeps them.
        folder: The study folder.

    Returns:
        Words for ``shlex.join``; settings at their default are left out.
    """
    words = ["smart-tuner", "tune", str(values.get("model", "")), "--study", str(folder)]
    for name, field in StudySettings.model_fields.items():
        value = values.get(name)
        if name in {"model", "study"} or value in (None, [], field.default):
            continue
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag)
            continue
        if name in _DURATIONS:
            value = duration_word(value)
        # Joined with "=": a value may begin with a dash.
        words += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    return words
