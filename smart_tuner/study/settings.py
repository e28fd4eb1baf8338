"""The settings of a study: one definition for flags, TOML files and the Python call."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_SECONDS = re.compile(_NUMBER)
_SIZE = re.compile(rf"{_NUMBER}\s*(?:([KMGT])(?:iB|B)?|B)?", re.IGNORECASE)
_UNLIMITED = "inf"


def parse_duration(value: object) -> object:
    """Turn ``10m``, ``1h30m``, ``90s``, ``90`` or ``inf`` into seconds; other types pass through.

    Raises:
        ValueError: The text is none of these.
    """
    if isinstance(value, bool):
        msg = "a duration is a number of seconds or text; write 90s, 10m, 2h or 1h30m"
        raise ValueError(msg)  # noqa: TRY004, pydantic turns only this into its own error
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if text == _UNLIMITED:
        return math.inf
    if _SECONDS.fullmatch(text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        msg = f"{value!r} is not a duration; write 90s, 10m, 2h or 1h30m"
        raise ValueError(msg)
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: float) -> str:
    """Write seconds so that ``parse_duration`` reads the same number."""
    if math.isinf(seconds):
        return _UNLIMITED
    text = f"{seconds:f}" if float(f"{seconds:f}") == seconds else f"{seconds:.20f}"
    return f"{text.rstrip('0').rstrip('.')}s"


def parse_size(value: object) -> object:
    """Turn ``4G``, ``512M`` or ``1000000`` into bytes; other types pass through.

    Raises:
        ValueError: The text is none of these.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    size = float(match[1]) * 1024 ** "_KMGT".find((match[2] or "_").upper()) if match else math.inf
    if math.isinf(size):
        msg = f"{value!r} is not a size; write 512M or 4G"
        raise ValueError(msg)
    return int(size)


Duration = Annotated[float, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(parse_size)]
Texts = tuple[str, ...]

_DURATIONS = frozenset({"budget", "trial_timeout"})
_LISTS = (
    *("epsilon", "shapes", "inputs", "outputs", "held_out", "input_range"),
    *("only", "freeze", "ask", "values"),
)


class StudySettings(BaseModel):
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
    seed: int | None = Field(
        None, ge=0, lt=1 << 63, description="Seed of everything random; drawn if missing."
    )
    metric: str | None = Field(
        None, description="Accuracy loss: l0, l1, l2, linf, cos, or module:function. [default: l0]"
    )
    epsilon: Texts = Field(
        (),
        description="Largest acceptable loss: a number, OUTPUT:NUMBER, or auto. [default: 0.001]",
    )
    rtol: float = Field(1e-3, ge=0, description="Relative tolerance of l0.")
    atol: float = Field(1e-4, ge=0, description="Absolute tolerance of l0.")
    reference: Literal["unoptimized", "baseline"] = Field(
        "unoptimized",
        description="Who makes reference outputs that you do not give: unoptimized or baseline.",
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

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _as_texts(cls, value: object) -> object:
        """Take one value for a list of one, and numbers for their text: ``epsilon = 0.01``."""
        items = [value] if isinstance(value, str | float | int) else value
        if not isinstance(items, list | tuple):
            return value
        return tuple(str(item) if isinstance(item, float | int) else item for item in items)

    @model_validator(mode="after")
    def _check_together(self) -> StudySettings:
        if self.epsilon and self.metric is None:
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
            value = format_duration(float(value))
        # Joined with "=": a value may begin with a dash.
        words += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    return words
