"""What an entry of a store belongs to, and what changed since an earlier one."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from smart_tuner.engine.backend import files_read_again
from smart_tuner.model.files import file_digest
from smart_tuner.model.store import workload_inputs
from smart_tuner.study.setup.identity import KNOB_DATABASE, platform_identity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.setup.plan import Plan

Facts = dict[str, str]
"""One line a fact: what it is, and its value or digest."""

SHAPES, INPUTS, SEARCHED = "shapes", "reference inputs", "searched knobs"
BESIDE = "files beside the model"
DEVICE, BACKEND, RUNTIME = "device", "backend", "backend version"

SAME_WORK = (SHAPES, BACKEND, "statistic", "base objective", "base io", "base streams")
"""Facts that must agree before two latencies can be compared at all, beside the device."""

_DIGITS, _SHORT = 12, 60
_DIGESTS = frozenset({"model", BESIDE, KNOB_DATABASE, INPUTS, SEARCHED})
_KEY_DIGITS = 16


def collect_facts(plan: Plan, platform: Platform, workload: Workload, references: Path) -> Facts:
    """Everything that a tuned engine depends on.

    Args:
        plan: Model, knobs, base and accuracy.
        platform: Where it runs.
        workload: Points and their shapes.
        references: Folder of the prepared workload.
    """
    shapes = "; ".join(
        f"{point.name} (weight {point.weight:g}): "
        + ", ".join(f"{name}:{_sizes(shape)}" for name, shape in sorted(point.shapes.items()))
        for point in workload.points
    )
    files = files_read_again(plan.settings.backend, plan.model.path)
    beside = {path.name: file_digest(path) for path in files if path != plan.model.path}
    return {
        **plan.identity,
        **({BESIDE: _digest(beside)} if beside else {}),
        **platform_identity(platform),
        SHAPES: shapes,
        INPUTS: _digest(workload_inputs(references)),
        SEARCHED: _digest({name: list(values) for name, values in plan.space.choices.items()}),
    }


def facts_key(facts: Mapping[str, str]) -> str:
    """What entries are found by: equal facts, equal key."""
    return _digest(dict(facts))[:_KEY_DIGITS]


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Each fact that differs, as ``driver was 550.54, is 560.28``."""
    return tuple(
        f"{name} was {_shown(name, before.get(name))}, is {_shown(name, now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    )


def differing(before: Mapping[str, str], now: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The first of some facts that differs; empty if none does."""
    return next((name for name in names if before.get(name) != now.get(name)), "")


def _shown(name: str, value: str | None) -> str:
    if value is None:
        return "not there"
    if name in _DIGESTS:
        return value[:_DIGITS]
    return value if len(value) <= _SHORT else f"{value[: _SHORT - 3]}..."


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
