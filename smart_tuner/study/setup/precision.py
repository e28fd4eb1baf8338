"""How precision joins a study: regions as knobs, and the folder that routes are rewritten from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.precision.job import Job, prepare
from smart_tuner.precision.knobs import chosen_values, precision_knobs
from smart_tuner.precision.regions import find_regions
from smart_tuner.precision.support import CALIBRATED, PrecisionSupport
from smart_tuner.precision.view import load_bare, view_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smart_tuner.engine.backend import Backend
    from smart_tuner.knobs.knob import Knob
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.model.workload import Workload
    from smart_tuner.precision.regions import Region
    from smart_tuner.study.setup.settings import StudySettings


@dataclass(frozen=True, slots=True)
class PrecisionPlan:
    """What a study varies in the graph itself.

    Attributes:
        regions: The parts of the graph.
        knobs: One knob a region.
        values: Every value that any region may get.
        support: What the backend takes.
        calibration: How ranges are found.
        notes: What the user should hear.
    """

    regions: tuple[Region, ...]
    knobs: tuple[Knob, ...]
    values: frozenset[str]
    support: PrecisionSupport
    calibration: str
    notes: tuple[str, ...] = ()

    def joined(self, database: KnobDatabase) -> KnobDatabase:
        """The backend's knobs with those of the regions behind them."""
        return KnobDatabase((*database.knobs, *self.knobs), database.tuner_version)

    def lowered_spec(self, model: ModelSpec) -> ModelSpec:
        """The model as a backend may meet it: knobs of pairs are not idle where regions get them."""
        if self.values.isdisjoint(CALIBRATED):
            return model
        pairs = dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), 1)
        return replace(model, operators={**pairs, **model.operators})

    def job(self, model: ModelSpec, inputs: tuple[Path, ...], seconds: float) -> Job:
        """What has to be prepared once for all routes.

        Args:
            model: The user's model.
            inputs: Tensor files with reference inputs.
            seconds: Time that measuring the ranges may take.
        """
        return Job(
            model=model.path,
            sha256=model.sha256,
            size_bytes=model.size_bytes,
            regions=self.regions,
            values=self.values,
            scheme=self.support.scheme,
            calibration=self.calibration,
            inputs=inputs,
            deadline_seconds=seconds,
        )

    @property
    def identity(self) -> dict[str, str]:
        """What a resume must match beside the knobs' names and values."""
        members = {region.name: sorted(region.members) for region in self.regions}
        text = json.dumps(members, sort_keys=True)
        return {
            "regions": hashlib.sha256(text.encode()).hexdigest(),
            "calibration": self.calibration,
        }


def plan_precision(
    settings: StudySettings, model: ModelSpec, backend: Backend, base: Mapping[str, str]
) -> PrecisionPlan | None:
    """Find the regions and their values; ``None`` if the settings name no regions.

    Raises:
        UserInputError: The model has no regions, a pattern matches nothing, the backend does not
            take a value, or a value needs reference inputs and there are none.
    """
    if not settings.regions:
        if settings.precisions:
            msg = "--precisions says what regions may be; name the regions, as --regions auto."
            raise UserInputError(msg)
        return None
    support = _support(backend, base)
    values = chosen_values(support, settings.precisions)
    view = view_of(load_bare(str(model.path)))
    regions = find_regions(view, settings.regions, str(model.path))
    values, notes = _with_inputs(settings, values)
    knobs = precision_knobs(view, regions, values, support)
    return PrecisionPlan(regions, knobs, frozenset(values), support, settings.calibration, notes)


def region_knobs(model: ModelSpec, backend: Backend, wanted: Sequence[str]) -> tuple[Knob, ...]:
    """The regions of a model as knobs, with every value that the backend takes.

    Args:
        model: The model.
        backend: The backend, as it is without a base.
        wanted: As ``--regions`` says.

    Raises:
        UserInputError: The model has no regions, a pattern matches nothing, or the backend takes
            no other precision.
    """
    support = _support(backend, {})
    view = view_of(load_bare(str(model.path)))
    regions = find_regions(view, wanted, str(model.path))
    return precision_knobs(view, regions, chosen_values(support, tuple(support.values)), support)


def _support(backend: Backend, base: Mapping[str, str]) -> PrecisionSupport:
    ask = getattr(backend, "precisions", None)
    support: PrecisionSupport | None = None if ask is None else ask(base)
    return support or PrecisionSupport(where=f"backend {backend.name}")


def _with_inputs(
    settings: StudySettings, values: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Leave out what cannot be calibrated, unless it was asked for or nothing else is left."""
    needy = [value for value in values if value in CALIBRATED]
    if not needy or settings.inputs or settings.workload:
        return values, ()
    others = tuple(value for value in values if value not in CALIBRATED)
    if settings.precisions or not others:
        raise _no_inputs(needy)
    note = (
        f"{' and '.join(needy)} left out: their scales come from reference inputs; give --inputs."
    )
    return others, (note,)


def _no_inputs(values: list[str]) -> UserInputError:
    return UserInputError(
        f"Precision {' and '.join(values)} takes its scales from reference inputs, and there are "
        "none: give --inputs, or --precisions without it."
    )


def ready(plan: PrecisionPlan, workload: Workload, folder: Path, seconds: float) -> None:
    """Make the folder that routes are rewritten from, unless it is there already.

    Args:
        plan: What is varied.
        workload: Its search pairs calibrate; held-out pairs stay unseen.
        folder: The folder.
        seconds: Time that measuring the ranges may take.

    Raises:
        UserInputError: No pair is real, or the model cannot be rewritten.
    """
    pairs = tuple(
        pair.inputs
        for point in workload.points
        if not point.synthetic
        for pair in point.search_pairs
    )
    needy = sorted(plan.values & {*CALIBRATED})
    if needy and not pairs:
        raise _no_inputs(needy)
    prepare(folder, plan.job(workload.model, pairs, seconds))
