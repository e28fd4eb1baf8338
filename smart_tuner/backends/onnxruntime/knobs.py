"""The knob database of the installed runtime, with the knobs that are idle on one model."""

from __future__ import annotations

import logging
import platform
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_tuner.backends.onnxruntime.build import ARTEFACT_LIMIT_BYTES
from smart_tuner.backends.onnxruntime.catalogue import load_catalogue
from smart_tuner.backends.onnxruntime.cuda_options import cuda_knobs, idle_with_cuda
from smart_tuner.backends.onnxruntime.option import SWITCH, Acts, Kind
from smart_tuner.backends.onnxruntime.options import LEVELS, OPTION_BY_NAME
from smart_tuner.backends.onnxruntime.passes import RULES, optimizer_help
from smart_tuner.backends.onnxruntime.runtime import import_runtime
from smart_tuner.backends.onnxruntime.survey import UnknownOperatorError, kept_survey
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue
    from smart_tuner.backends.onnxruntime.option import Option
    from smart_tuner.backends.onnxruntime.survey import Survey
    from smart_tuner.model.spec import ModelSpec

logger = logging.getLogger(__name__)

UNCHANGED = "changed nothing in this model"


def knob_database(model: ModelSpec | None = None, provider: str = "cpu") -> KnobDatabase:
    """All knobs; with a model, those that cannot act on it carry the reason.

    An optimizer is idle when it changed nothing in any step, neither by default nor with each of
    the active ones, nor with all of them off. A rewrite rule is idle when the optimized graph is
    the same without it.

    Args:
        model: What is tuned.
        provider: Who runs it: ``cpu`` or ``cuda``.

    Raises:
        ModelError: The runtime refuses the model.
        EnvironmentNotFit: The runtime is missing.
    """
    catalogue = load_catalogue()
    knobs = (*_option_knobs(catalogue), *_thread_knobs(), *_pass_knobs(catalogue))
    if provider == "cuda":
        knobs = tuple(replace(knob, idle=idle_with_cuda(knob.name)) for knob in knobs)
        knobs += cuda_knobs(model.operators if model is not None else None)
    if model is not None:
        found = _survey(model, catalogue, provider)
        knobs = tuple(
            knob if knob.idle else replace(knob, idle=_idle(knob, model, found)) for knob in knobs
        )
    return KnobDatabase(knobs=knobs, tuner_version=catalogue.version)


def _option_knobs(catalogue: Catalogue) -> Iterator[Knob]:
    for option in catalogue.options:
        values = option.values
        if option.name == "graph_optimization_level":
            levels = import_runtime().GraphOptimizationLevel
            values = tuple(name for name in values if hasattr(levels, LEVELS[name]))
        source = "run option" if option.kind is Kind.RUN else "session option"
        yield Knob(option.name, values, option.default, option.help, source, option.is_open)


def _thread_knobs() -> tuple[Knob, ...]:
    """Thread counts never reach above what this process may use."""
    quota = cpu_quota()
    values = ("auto", *(str(count) for count in _counts(quota)))
    within = f"Threads within a node; auto lets the runtime choose, the CPU quota is {quota}."
    across = f"Threads across nodes; acts in parallel mode only, the CPU quota is {quota}."
    return (
        Knob("threads:intra", values, "auto", within, "threads"),
        Knob("threads:inter", values, "auto", across, "threads"),
    )


def _counts(quota: int) -> list[int]:
    """1, 2, ... up to 16, from there in steps of a quarter, the quota itself always."""
    counts = []
    count = 1
    while count < quota:
        counts.append(count)
        count += max(1, count // 4) if count >= 16 else 1
    return [*counts, quota]


def _pass_knobs(catalogue: Catalogue) -> Iterator[Knob]:
    for name, level in catalogue.optimizers.items():
        text = optimizer_help(name, level)
        yield Knob(f"optimizer:{name}", SWITCH, "on", text, "optimizer")
    for name in catalogue.rules:
        yield Knob(f"rule:{name}", SWITCH, "on", RULES[name], "rewrite rule")


def _survey(model: ModelSpec, catalogue: Catalogue, provider: str) -> Survey | None:
    """Ask the runtime about the model; None if only a base could make it load."""
    graphs = model.size_bytes <= ARTEFACT_LIMIT_BYTES
    try:
        return kept_survey(model, catalogue.rules, graphs=graphs, provider=provider)
    except UnknownOperatorError as error:
        # No warning: a base may name the library, and without one the first build says so.
        logger.info("%s (no knob is marked idle)", error)
        return None


def _idle(knob: Knob, model: ModelSpec, found: Survey | None) -> str:
    """Why a knob cannot act on a model, or nothing."""
    option = OPTION_BY_NAME.get(knob.name)
    if option is not None:
        return _idle_option(option, model, found)
    kind, _, name = knob.name.partition(":")
    if found is None or kind not in {"optimizer", "rule"}:
        return ""
    awake = found.awake if kind == "optimizer" else found.rules
    return "" if awake is None or name in awake else UNCHANGED


def _idle_option(option: Option, model: ModelSpec, found: Survey | None) -> str:
    if option.acts is Acts.LOADING:
        return "acts on loading, not on running"
    if option.machines and platform.machine().lower() not in option.machines:
        return f"acts on {option.machines[0]} processors only"
    if option.needs and not model.operators.keys() & set(option.needs):
        return f"no {' or '.join(option.needs[:2])} in this model"
    return _idle_by_survey(option, found) if found is not None else ""


def _idle_by_survey(option: Option, found: Survey) -> str:
    if option.target == "session.disable_aot_function_inlining" and not found.has_functions:
        return "no local functions in this model"
    folds = "optimization.constant_folding"
    if option.target.startswith(folds) and "ConstantFolding" not in found.awake:
        return UNCHANGED
    return ""
