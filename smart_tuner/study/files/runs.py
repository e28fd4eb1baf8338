"""What is kept of fresh measurements: the figures, once the engines behind them are deleted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.trial.evaluate import RESULT_FILE
from smart_tuner.trial.fields import Fields, to_json
from smart_tuner.trial.record import trial_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.measure.latency import Comparison
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.trial.trial import Trial


@dataclass(frozen=True, slots=True)
class FreshRun:
    """One fresh build of a route, measured against a fresh build of the baseline.

    Attributes:
        phase: ``finalist``, ``reset``, ``report``, ``sustained`` or ``bare default``.
        order: Which fresh measurement of the study it was.
        route: Canonical text of the route.
        outcome: How it ended, as ``TrialOutcome`` spells it.
        unchanged: The engine is the baseline's; it was not measured.
        seconds: Wall-clock seconds of the build and the measurement.
        blocks: ln(candidate / baseline) of each pair of blocks, by workload point.
        device: Figures of the device meanwhile, by name with unit.
        message: Why it ended so.
    """

    phase: str
    order: int
    route: str
    outcome: str
    unchanged: bool = False
    seconds: float = 0.0
    blocks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    device: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


def keep_runs(folder: StudyFolder) -> None:
    """Gather what fresh measurements left behind into one file, in place of an older one.

    Without any, an older file goes too: it belongs to a verdict that was given up.

    Raises:
        EnvironmentNotFit: It cannot be written.
    """
    runs = tuple(_left_behind(folder.finalists))
    if runs:
        write_json(folder.runs_file, to_json(runs))
    else:
        folder.runs_file.unlink(missing_ok=True)


def read_runs(folder: StudyFolder) -> tuple[FreshRun, ...]:
    """Fresh measurements, kept or still under way, in the order in which they were made.

    Raises:
        UserInputError: The file is damaged.
    """
    under_way = tuple(_left_behind(folder.finalists))
    if under_way or not folder.runs_file.is_file():
        return under_way
    try:
        rows = json.loads(folder.runs_file.read_text(encoding="utf-8"))
        return Fields({"runs": rows}, "fresh measurements").each("runs", _read)
    except (OSError, ValueError, UserInputError) as error:
        msg = f"{folder.runs_file} is damaged ({error}); the report goes without it."
        raise UserInputError(msg) from None


def _left_behind(place: Path) -> Iterator[FreshRun]:
    """Results in the folders of fresh builds; those of a kill, half written, are left out."""
    found: list[FreshRun] = []
    for path in place.glob(f"**/{RESULT_FILE}"):
        phase, _, order = path.parent.name.rpartition("-")
        if not order.isdecimal():
            continue
        try:
            trial = trial_from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError, UserInputError):
            continue
        found.append(_run(phase, int(order), trial))
    yield from sorted(found, key=lambda run: run.order)


def _run(phase: str, order: int, trial: Trial) -> FreshRun:
    return FreshRun(
        phase=phase,
        order=order,
        route=str(trial.route),
        outcome=trial.outcome.value,
        unchanged=trial.unchanged,
        seconds=float(trial.seconds.get("total", 0.0)),
        blocks={item.point: item.log_ratios for item in trial.comparisons},
        device=device_figures(trial.comparisons),
        message=trial.message,
    )


def device_figures(comparisons: Sequence[Comparison]) -> dict[str, float]:
    """The figures of the device over a trial's points: their mean, by name."""
    figures: dict[str, list[float]] = {}
    for comparison in comparisons:
        for name, figure in comparison.device.items():
            figures.setdefault(name, []).append(figure)
    return {name: sum(values) / len(values) for name, values in figures.items()}


def _read(data: object) -> FreshRun:
    fields = Fields(data, "fresh measurement")
    return FreshRun(
        phase=fields.text("phase"),
        order=fields.whole("order"),
        route=fields.text("route"),
        outcome=fields.text("outcome"),
        unchanged=fields.flag("unchanged"),
        seconds=fields.number("seconds"),
        blocks=fields.nested("blocks", _blocks),
        device=fields.number_map("device"),
        message=fields.text("message"),
    )


def _blocks(data: object) -> dict[str, tuple[float, ...]]:
    points: Any = data if isinstance(data, dict) else {}
    fields = Fields(data, "blocks")
    return {name: fields.numbers(name) for name in points}
