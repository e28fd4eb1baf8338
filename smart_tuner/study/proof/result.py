"""What a study found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import whole_file
from smart_tuner.study.proof.gain import Gain
from smart_tuner.validate.pairs import LossOverPairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


GAINS = ("route_gain", "engine_gain", "sustained_gain", "bare_gain")


class Verdict(str, Enum):
    """The answer of a study. Values are stored: add, never rename."""

    WINNER = "winner"
    DEFAULT_IS_BEST = "default is best"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What a study found, as ``result.json`` keeps it.

    Attributes:
        verdict: ``WINNER``: a route ships. ``DEFAULT_IS_BEST``: none beat the default by the
            smallest gain asked for. ``UNDECIDED``: the budget ended before any route besides
            the default was tried.
        sentence: The verdict in one sentence, then what weakens it.
        route: Canonical text of the shipped route; empty for the default.
        min_gain: The smallest gain that ships.
        max_regression: The largest slow-down at one workload point that ships.
        route_gain: Gain over fresh builds of both arms; ``None`` if nothing was confirmed.
        engine_gain: Gain of the very file that ships over the fastest baseline build.
        sustained_gain: Gain in long blocks under sustained load, if there was time for them.
        bare_gain: Gain over the compiler's bare default, when the study has a base of its own.
        indicative: Fewer than five builds a side stand behind the route gain.
        provisional: Inputs were synthetic, so the accuracy claim holds for those only.
        trials: Finished trials by outcome.
        spent_seconds: Wall-clock seconds of all sessions.
        study: The study folder.
        notes: What a user should hear.
        accuracy: Losses of the route that was confirmed over the reference pairs of the search,
            one entry an output and point; none if nothing was confirmed.
        finding: The verdict alone, without what weakens it and what to do next; empty in studies
            from before it was kept.
    """

    verdict: Verdict
    sentence: str
    route: str
    study: Path
    min_gain: float
    max_regression: float
    route_gain: Gain | None = None
    engine_gain: Gain | None = None
    sustained_gain: Gain | None = None
    bare_gain: Gain | None = None
    indicative: bool = False
    provisional: bool = False
    trials: Mapping[str, int] = field(default_factory=dict)
    spent_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    accuracy: tuple[LossOverPairs, ...] = ()
    finding: str = ""

    @property
    def gain(self) -> float:
        """The gain of what ships; 1.0 when the default does."""
        ships = self.verdict is Verdict.WINNER and self.route_gain is not None
        return self.route_gain.value if ships and self.route_gain else 1.0

    def to_json(self) -> dict[str, Any]:
        """Plain types, infinities as text, the study folder left out since it may be moved."""
        data = asdict(self)
        del data["study"]
        data["verdict"] = self.verdict.value
        return {key: _finite(value) for key, value in data.items()}


def _finite(value: Any) -> Any:
    """Make infinite bounds strict JSON."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def read_gain(data: Mapping[str, Any] | None) -> Gain | None:
    """Read what a gain became in JSON.

    Raises:
        ValueError, KeyError, TypeError: It is damaged.
    """
    if data is None:
        return None
    value, low, high = (float(data[key]) for key in ("value", "low", "high"))
    return Gain(value, low, high, int(data["samples"]))


def _read_accuracy(data: Mapping[str, Any]) -> LossOverPairs:
    """Read one entry of ``accuracy``, whose infinities are text.

    Raises:
        ValueError, KeyError, TypeError: It is damaged.
    """
    figures = {key: float(data[key]) for key in ("worst", "mean", "epsilon")}
    return LossOverPairs(**{**data, **figures})


def write_result(path: Path, result: TuneResult) -> None:
    """Write ``result.json``."""
    text = json.dumps(result.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    with whole_file(path) as file:
        file.write(f"{text}\n".encode())


def read_result(path: Path) -> TuneResult:
    """Read ``result.json``.

    Raises:
        UserInputError: It is missing or damaged.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        data |= {key: float(data[key]) for key in ("min_gain", "max_regression")}
        data |= {key: read_gain(data[key]) for key in GAINS}
        data["verdict"] = Verdict(data["verdict"])
        data["notes"] = tuple(data["notes"])
        data["accuracy"] = tuple(map(_read_accuracy, data.get("accuracy", ())))
        return TuneResult(study=path.parent, **data)
    except FileNotFoundError:
        msg = f"No verdict in {path.parent} yet: `smart-tuner status` says how far it is."
        raise UserInputError(msg) from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        msg = f"{path} is damaged ({error}): run the same `tune` command again to write it anew."
        raise UserInputError(msg) from None
