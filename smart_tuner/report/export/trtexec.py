"""A winner for trtexec: its route, its expression, its trials, and the command that rebuilds it."""

from __future__ import annotations

import math
import shlex
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smart_tuner.report.export.flags import trtexec_flags
from smart_tuner.report.export.page import Export
from smart_tuner.report.export.winner import TENSORRT, need_runtime, route_knobs
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.keys import LOSSES
from smart_tuner.storages.tuning_cache_row import METRICS, CacheRow
from smart_tuner.storages.tuning_cache_write import CacheRun, cache_lines, route_text
from smart_tuner.study.files.kept import open_kept_study
from smart_tuner.study.files.names import BASELINE_MS
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import MEAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smart_tuner.report.export.winner import RouteKnobs, Winner
    from smart_tuner.storages.history import TrialRecord

ROUTE, EXPRESSION, SWEEP = "route.txt", "expression.txt", "winner_expression.txt"
CACHE, COMMAND = "tuning_cache.jsonl", "trtexec.sh"
ENGINE = "engine.plan"


def export_trtexec(winner: Winner, place: Path) -> Export:
    """Write everything that trtexec can use.

    Args:
        winner: A study's winner.
        place: The folder to fill.

    Raises:
        UserInputError: The study is not one of TensorRT.
    """
    need_runtime(winner, (TENSORRT,), "Route flags for trtexec")
    knobs = route_knobs(winner)
    route = knobs.only(winner.settings)
    others = {name: value for name, value in winner.settings.items() if name not in route}
    flags = trtexec_flags(winner, others)
    command = ["trtexec", f"--onnx={winner.model}", f"--saveEngine={ENGINE}", *flags.words]
    if timings := winner.timing_cache:
        command.append(f"--timingCacheFile={timings.name}")
    replay = [*command, f"--setBuildRoute={route_text(route)}"] if route else command
    texts = {
        ROUTE: route_text(route),
        EXPRESSION: _expression(winner, knobs, openly=False),
        SWEEP: " ".join(_pair(winner, knobs, name) for name in knobs.only(winner.route)),
    }
    files = {name: f"{text}\n" for name, text in texts.items() if text}
    notes = knobs.notes
    if len(knobs.database):
        files[CACHE], said = _cache(winner, knobs, command)
        notes += said
    else:
        notes += (f"{winner.runtime} {winner.version} has no build routes: flags say it all.",)
    files[COMMAND] = _script(replay)
    for name, text in files.items():
        (place / name).write_bytes(text.encode())
    about = {name: text for name, text in _ABOUT.items() if name in files}
    if timings:
        shutil.copyfile(timings, place / timings.name)
        about[timings.name] = "the winner's timings of kernels; trtexec adds its own"
    return Export("trtexec", about, _CAUTION, flags.without, notes)


def _pair(winner: Winner, knobs: RouteKnobs, name: str) -> str:
    """Default and chosen value of a knob; trtexec sweeps no open one, which stays as chosen."""
    value = winner.route[name]
    if knobs.database[name].is_open:
        return f"-{name}={value}"
    return f"-{name}=[{_default(winner, knobs, name)}|{value}]"


def _cache(winner: Winner, knobs: RouteKnobs, command: list[str]) -> tuple[str, tuple[str, ...]]:
    """The tuning cache, and what it lacks."""
    rows, left_out = _rows(winner, knobs)
    run = _run(winner, knobs, command)
    return "".join(cache_lines(run, rows)), (*_left_out(left_out), *_losses_note(run))


def _script(words: list[str]) -> str:
    return f'#!/bin/sh\ncd "$(dirname "$0")" || exit\nexec {shlex.join(words)} "$@"\n'


def _left_out(count: int) -> Iterator[str]:
    if count:
        yield (
            f"trials that turned builder knobs as well: {count}. A tuning cache has no place for "
            f"them, so they are not in {CACHE}."
        )


def _losses_note(run: CacheRun) -> Iterator[str]:
    if run.metric not in METRICS:
        yield f"trtexec has no metric {run.metric}: {CACHE} holds no losses."


def _space(winner: Winner, knobs: RouteKnobs) -> Mapping[str, tuple[str, ...]]:
    """Values by route knob of the study's space, the default first."""
    space = winner.document["space"]
    return {name: tuple(space[name]) for name in space if name in knobs.database}


def _default(winner: Winner, knobs: RouteKnobs, name: str) -> str:
    """The value in the baseline: the base's, or the compiler's own."""
    return winner.base.get(name, knobs.database[name].default)


def _expression(winner: Winner, knobs: RouteKnobs, *, openly: bool) -> str:
    """The study's space, with what the base fixes.

    Args:
        winner: The winner.
        knobs: The route knobs.
        openly: Also list values of open knobs, which trtexec refuses; else these stand at the
            winner's value.
    """
    space = _space(winner, knobs)
    words = [
        f"-{name}={value}" for name, value in knobs.only(winner.base).items() if name not in space
    ]
    for name, values in space.items():
        if openly or not knobs.database[name].is_open:
            words.append(f"-{name}=[{'|'.join(values)}]")
        elif name in winner.settings:
            words.append(f"-{name}={winner.settings[name]}")
    return " ".join(words)


def _run(winner: Winner, knobs: RouteKnobs, command: list[str]) -> CacheRun:
    """The header; the defaults are those of the base, which every trial is compared with.

    ``full`` is what names the set that the trials are taken from: products of listed values.
    """
    accuracy = winner.document["accuracy"]
    expression = _expression(winner, knobs, openly=True)
    limits = (accuracy["epsilon"], *accuracy.get("per_output", {}).values())
    return CacheRun(
        tuner_version=knobs.database.tuner_version,
        metric=_metric(accuracy),
        atol=float(accuracy["atol"]),
        rtol=float(accuracy["rtol"]),
        epsilon=min(map(float, limits)),
        search="full",
        command=[
            *command,
            f"--tuneBuildRoutes={expression}",
            "--tuningSearch=full",
            f"--tuningCacheFile={CACHE}",
        ],
        model=str(winner.model.resolve()),
        engine=ENGINE,
        defaults={knob.name: _default(winner, knobs, knob.name) for knob in knobs.database},
        expression=expression,
    )


def _metric(accuracy: Mapping[str, Any]) -> str:
    """What outputs are judged by; trtexec knows one metric for all, on each pair by itself."""
    own = [f"{metric} for {output}" for output, metric in accuracy.get("metrics", {}).items()]
    mean = ["over the mean of pairs"] if accuracy.get("over_pairs") == MEAN else []
    return ", ".join([str(accuracy["metric"]), *own, *mean])


def _rows(winner: Winner, knobs: RouteKnobs) -> tuple[list[CacheRow], int]:
    """The baseline and every trial of route knobs alone; and how many others there were."""
    study = open_kept_study(winner.folder)
    baseline = {name: _default(winner, knobs, name) for name in _named(winner, knobs)}
    first = float(study.user_attrs[BASELINE_MS])
    losses = {
        trial.number: trial.user_attrs.get(LOSSES, [])
        for trial in study.get_trials(deepcopy=False)
    }
    rows = [CacheRow(0, 1, tuple(baseline.items()), TrialOutcome.FEASIBLE, gpu_ms=first)]
    left_out = 0
    for record in finished_trials(study):
        values = record.route.values
        if not set(values) <= set(baseline):
            left_out += 1
        elif values:
            row = _row(winner, record, losses[record.number])
            settings = tuple({**baseline, **values}.items())
            rows.append(replace(row, number=len(rows), settings=settings))
    return rows, left_out


def _named(winner: Winner, knobs: RouteKnobs) -> list[str]:
    """Knobs in the order of the expression."""
    space = _space(winner, knobs)
    return [*(name for name in knobs.only(winner.base) if name not in space), *space]


def _row(winner: Winner, record: TrialRecord, losses: list[list[Any]]) -> CacheRow:
    """A trial as a row, its route left out.

    trtexec knows no limit but accuracy: a route over another one is a failed run there.
    """
    ended, violation = record.outcome, record.violation
    if ended is TrialOutcome.INFEASIBLE and violation is not None and violation <= 0:
        ended = TrialOutcome.RUN_FAILED
    is_measured = ended in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE)
    can_tell = is_measured and _metric(winner.document["accuracy"]) in METRICS
    return CacheRow(
        number=record.number,
        phase=1,
        settings=(),
        outcome=ended,
        message="" if is_measured else record.message or ended.value.replace("_", " "),
        losses=_losses(losses) if can_tell else {},
        gpu_ms=record.value_ms if is_measured else None,
    )


def _losses(rows: list[list[Any]]) -> dict[str, float]:
    """The largest loss of each output over all points and pairs."""
    found: dict[str, float] = {}
    for _, _, output, _, loss, _ in rows:
        figure, known = float(loss), found.get(output, 0.0)
        found[output] = figure if math.isnan(figure) else max(known, figure)
    return found


_ABOUT = {
    ROUTE: 'the winner\'s route, for `--setBuildRoute="$(cat route.txt)"`',
    EXPRESSION: "the route knobs of the study, for `--tuneBuildRouteFile=expression.txt`; open "
    "knobs stand at the winner's value, since trtexec cannot sweep them",
    SWEEP: "the winner's knobs with default and chosen value, for `--tuneBuildRouteFile` with "
    "`--tuningSearch=full`",
    CACHE: "the trials as trtexec writes them; `gpu_time` is our latency, which is end to end "
    "unless the base says otherwise; not meant for `--continue`",
    COMMAND: "builds and times the winner with trtexec; further flags may follow",
}

_CAUTION = (
    "trtexec builds the engine again, and no two builds are alike: the engine that was measured "
    "is the one in the study's `winner/` folder."
)
