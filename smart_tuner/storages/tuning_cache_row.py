"""Header and rows of a tuning cache, from their parsed JSON, and trtexec's rule of accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.knobs.text import clean_sentence, name_fault, value_fault
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

TRTEXEC, TORCH = "trtexec", "Torch-TensorRT"

METRICS = {"l0": "L0", "l1": "L1", "l2": "L2", "linf": "LInf", "cos": "Cosine"}
"""Our name of a metric, and trtexec's. The figures are the same, but that trtexec calls two
tensors of zeros different under Cosine, and lets NaN pass under L0 and LInf."""

LOST_RESULT = "failed to parse tuning result JSON"
"""What trtexec says when a loss was NaN or infinite, which its JSON cannot hold."""


class Unusable(str, Enum):
    """Why a row says nothing."""

    NO_ROUTE = "row without a route"
    ODD_ROUTE = "row whose route is none"
    NO_RESULT = "row without a result"


@dataclass(frozen=True, slots=True)
class CacheHeader:
    """What a run was about.

    Attributes:
        tuner_version: ``unknown`` if the header does not say.
        metric: Our name of the accuracy metric; empty if there is none.
        atol: Absolute tolerance of l0.
        rtol: Relative tolerance of l0.
        epsilon: Threshold of the loss; 0 when accuracy was not checked.
        search: ``fast``, ``full`` or ``mixed``.
        expression: What was swept.
        defaults: Default of every knob.
        model: The ONNX file, as the header has it.
        origin: Which tool wrote the file.
    """

    tuner_version: str = "unknown"
    metric: str = ""
    atol: float = 0.0
    rtol: float = 0.0
    epsilon: float = 0.0
    search: str = ""
    expression: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    origin: str = TRTEXEC

    def fails(self, loss: float) -> bool:
        """Whether a loss is too large by the rule of the tool that wrote the file.

        trtexec refuses a loss that reaches the threshold, Torch-TensorRT one that exceeds it. NaN
        fails here, although trtexec's comparison lets it pass.
        """
        if not self.epsilon:
            return False
        return not (loss < self.epsilon or (self.origin == TORCH and loss == self.epsilon))

    @property
    def our_epsilon(self) -> float:
        """The epsilon that accepts the same losses under our rule, loss <= epsilon."""
        if self.origin == TORCH or not self.epsilon:
            return self.epsilon
        return math.nextafter(self.epsilon, 0.0)


def trtexec_threshold(epsilon: float) -> float:
    """The threshold that accepts the same losses under trtexec's rule, loss < threshold.

    trtexec keeps it as a float32 above 0, so this is the smallest normal float32 above epsilon.
    """
    single = np.float32(min(epsilon, float(np.finfo(np.float32).max)))
    if single <= epsilon:
        single = np.nextafter(single, np.float32(np.inf))
    return float(max(single, np.finfo(np.float32).tiny))


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One route as trtexec saw it.

    Attributes:
        number: ``iter``.
        phase: 1, or 2 after ``iter`` began anew.
        settings: Knob and value, in the route's order.
        outcome: How it ended, as far as it can be told. trtexec says of a crash only that there
            was one: it counts as a failed build, unless the loss was NaN.
        message: What the row says about a failure, one line.
        losses: Loss by output; NaN where the file has none.
        gpu_ms: Mean GPU compute time in milliseconds; None without one.
    """

    number: int
    phase: int
    settings: tuple[tuple[str, str], ...]
    outcome: TrialOutcome
    message: str = ""
    losses: Mapping[str, float] = field(default_factory=dict)
    gpu_ms: float | None = None

    @property
    def loss(self) -> float | None:
        """The largest loss, NaN above all; None if accuracy was not checked or is not known."""
        return max(self.losses.values(), key=_badness, default=None)


def header_of(data: Mapping[str, Any]) -> CacheHeader:
    """Read a header; what is missing or of another type is left at its default."""
    accuracy = data.get("accuracy_parameter")
    limits = accuracy if isinstance(accuracy, dict) else {}
    files = data.get("files")
    algorithm = _text(data.get("accuracy_algorithm")).lower()
    ours = {theirs.lower(): name for name, theirs in METRICS.items()}
    is_torch = "partition_key" in data or "user_tuning_cache_file" in data
    return CacheHeader(
        tuner_version=_text(data.get("tuner_version")) or "unknown",
        metric=ours.get(algorithm, algorithm if algorithm in METRICS else ""),
        atol=_amount(limits.get("atol")),
        rtol=_amount(limits.get("rtol")),
        epsilon=_amount(limits.get("epsilon")),
        search=_text(data.get("searching_algorithm")),
        expression=_text(data.get("tuning_expr"), whole=True),
        defaults=dict(settings_of(data.get("default_build_route")) or ()),
        model=_text(files.get("onnx")) if isinstance(files, dict) else "",
        origin=TORCH if is_torch else TRTEXEC,
    )


def row_of(
    data: Mapping[str, Any], number: int, phase: int, header: CacheHeader
) -> CacheRow | Unusable:
    """Read a row, or say why it cannot be used."""
    if not isinstance(data.get("build_route"), str):
        return Unusable.NO_ROUTE
    settings = settings_of(data["build_route"])
    if settings is None:
        return Unusable.ODD_ROUTE
    message = _text(data.get("error_message"))
    losses = _losses(data.get("accuracy_loss"))
    gpu_ms = _amount(data.get("gpu_time")) or None
    if data.get("crash") is True:
        is_nan = message.startswith(LOST_RESULT)
        outcome = TrialOutcome.INFEASIBLE if is_nan else TrialOutcome.BUILD_FAILED
        return CacheRow(number, phase, settings, outcome, message or "crashed")
    row_losses = {name: math.nan if loss is None else loss for name, loss in losses.items()}
    if any(map(header.fails, row_losses.values())) or (message and losses):
        outcome = TrialOutcome.INFEASIBLE
    elif message:
        outcome = TrialOutcome.RUN_FAILED
    elif gpu_ms is None:
        return Unusable.NO_RESULT
    else:
        outcome = TrialOutcome.FEASIBLE
    return CacheRow(number, phase, settings, outcome, message, row_losses, gpu_ms)


def settings_of(text: object) -> tuple[tuple[str, str], ...] | None:
    """Knob and value of each token of a route; None if the text is no route.

    The last value counts when a knob comes twice, as an option's would.
    """
    if not isinstance(text, str):
        return None
    found: dict[str, str] = {}
    for token in text.split(" "):
        name, equals, value = token.partition("=")
        if not token:
            continue
        bare = name.removeprefix("-")
        if not equals or name == bare or name_fault(bare) or value_fault(value):
            return None
        if "\ufffd" in token:
            return None
        found[bare] = value
    return tuple(found.items())


def _text(value: object, *, whole: bool = False) -> str:
    """Foreign text on one printable line; empty for anything else."""
    if not isinstance(value, str):
        return ""
    return value if whole else clean_sentence(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _amount(value: object) -> float:
    """A finite number above 0, else 0."""
    number = _number(value)
    return number if number is not None and 0 < number < math.inf else 0.0


def _losses(value: object) -> dict[str, float | None]:
    if isinstance(value, dict):
        return {clean_sentence(str(name)): _number(loss) for name, loss in value.items()}
    number = _number(value)
    return {} if number is None else {"": number}


def _badness(loss: float) -> float:
    return math.inf if math.isnan(loss) else loss
