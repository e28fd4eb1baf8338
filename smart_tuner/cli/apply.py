"""``smart-tuner apply``: one route."""

from __future__ import annotations

import math
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.cli.options import merged, with_settings
from smart_tuner.cli.output import print_json
from smart_tuner.report.words import OUTCOME_WORDS, percent
from smart_tuner.study.apply import apply_route
from smart_tuner.study.progress.events import Event, Note
from smart_tuner.study.setup.settings import BASE_FLAGS
from smart_tuner.trial.record import trial_to_json
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.pairs import over_pairs

if TYPE_CHECKING:
    from smart_tuner.trial.trial import Trial

HELP = "Build one route, check its accuracy, and measure it beside the default."
EXAMPLE = "smart-tuner apply model.onnx --route '-execution_mode=parallel'"
NEEDS_ARGUMENTS = True
ROUTE = "Route"

SETTINGS = (
    *("model", "backend", "base", "metric", "epsilon", "rtol", "atol", "over_pairs"),
    *("reference", "shapes", "inputs", "outputs", "input_range", "workload", "seed"),
    *("trial_timeout", "memory_limit"),
    *("regions", "precisions", "calibration"),
    *("statistic", *BASE_FLAGS, "max_memory", "max_engine_size", "max_build_time"),
)


@guarded
@with_settings(SETTINGS)
def command(
    *,
    settings: dict[str, Any],
    route: Annotated[
        str,
        typer.Option(
            "--route",
            metavar="ROUTE",
            help="Values that differ from the base, as '-knob=value'.",
            rich_help_panel=ROUTE,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder that gets the engine and its loader.",
            rich_help_panel=ROUTE,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trial as JSON.")] = False,
) -> int:
    """Try one route and print what came out; 1 if it is not acceptable."""
    trial = apply_route(merged(None, settings), route, _listen, out)
    if as_json:
        print_json(trial_to_json(trial))
    else:
        _print(trial)
        if out is not None and trial.engine is not None:
            print(f"engine: {out}")
    return 0 if trial.outcome is TrialOutcome.FEASIBLE else 1


def _listen(event: Event) -> None:
    if isinstance(event, Note):
        complain(f"note: {event.text}")


def _print(trial: Trial) -> None:
    print(f"route: {trial.route or '(default)'}")
    reason = f": {trial.message}" if trial.message else ""
    print(f"outcome: {OUTCOME_WORDS[trial.outcome]}{reason}")
    for loss in over_pairs(trial.losses):
        print(f"loss of {loss}")
    for use in trial.limits:
        print(f"limit: {use}")
    for item in trial.comparisons:
        if "p99_ms" in item.device:
            ours, theirs = item.device["p99_ms"], item.device["baseline_p99_ms"]
            print(
                f"99 % of runs under load at {item.point}: {ours:.4g} ms, default {theirs:.4g} ms"
            )
    if trial.unchanged:
        print("gain: 1.000x, the engine is the default's")
    for item in trial.comparisons:
        low, high = (math.exp(-item.log_ratio + sign * item.half_width) for sign in (-1, 1))
        print(
            f"gain at {item.point}: {item.gain:.3f}x (95 % interval {low:.3f}-{high:.3f}), "
            f"{item.candidate.median_ms:.4g} ms against {item.baseline.median_ms:.4g} ms, "
            f"spread {percent(item.half_width)}"
        )
