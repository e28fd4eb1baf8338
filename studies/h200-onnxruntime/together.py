"""Measures what the samplers found on one network together: fresh builds, fresh samples, one base.

    python together.py OUT/NAME [ROUNDS]

Each round builds the base anew and measures against it: the fastest feasible route of each search, as far as all of them
got (so that the one with more trials has no advantage), the winner that ships, and the bare default, without anything of
the base. Routes are taken in another order each round. Where the study leaves copies out, winner and bare default are also measured with copies from and to
the host. Everything goes to OUT/NAME/together.json, round by round; a call goes on where the last one stopped. Studies that
`assemble restore` brought back have no inputs; those are read anew.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import tempfile
from pathlib import Path

import optuna

from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.store import read_workload
from smart_tuner.report.reading import read_study
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.parse import parse_route
from smart_tuner.storages.history import best_feasible
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.setup.plan import make_plan
from smart_tuner.study.proof.result import Verdict, read_result
from smart_tuner.study.session import DECIDED
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.record import trial_to_json
from smart_tuner.validate.constraint import constraint_from_json

STRATEGIES = ("default", "tpe", "evolution", "warm")
PAIRS = 16


def main(place: str, rounds: str = "2") -> None:
    """Measure the rounds that are missing."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = Path(place).resolve()
    study = StudyFolder(folder / "default.study")
    document = study.read_settings()
    plan = make_plan(make_settings({**document["settings"], "study": study.root, "seed": document["seed"]}))
    routes = {text: parse_route(text, plan.database) for text in found(folder)}
    bare = bare_route(plan)
    if bare.settings:
        routes["bare default"] = bare
    out = folder / "together.json"
    kept = json.loads(out.read_text()) if out.exists() else {"rounds": []}
    kept |= {"network": folder.name, "found": found(folder), "bare": str(bare), "pairs": PAIRS}
    with tempfile.TemporaryDirectory() as scratch:
        workload = inputs_of(study, plan, document["seed"], Path(scratch))
        constraint = constraint_from_json(document["accuracy"])
        plan = plan.with_lowered(workload, study.precision if study.precision.exists() else Path(scratch) / "precision")
        options = plan.options_with(constraint, document.get(DECIDED, {}))
        with Evaluator(workload, options, Path(scratch) / "references") as evaluator:
            evaluator.make_references()
        for number in range(len(kept["rounds"]), int(rounds)):
            with Evaluator(workload, options, Path(scratch) / str(number)) as evaluator:
                kept["rounds"].append(measured(evaluator, routes, number, Path(scratch), plan.goal.fixed(PAIRS)))
            write(kept, out)
        if plan.base.get("io") == "device" and "with copies" not in kept:
            # What a caller sees whose inputs and outputs lie on the host.
            some = {name: route for name, route in routes.items() if name in shown(folder, routes)}
            copying = dataclasses.replace(options, base={**options.base, "io": "host"})
            with Evaluator(workload, copying, Path(scratch) / "host") as evaluator:
                rows = measured(evaluator, some, 0, Path(scratch) / "host", plan.goal.fixed(PAIRS))
                kept["with copies"] = rows
            write(kept, out)


def write(kept: dict, out: Path) -> None:
    """Write a whole file or nothing."""
    partial = out.with_suffix(".partial")
    partial.write_text(json.dumps(kept))
    partial.replace(out)


def shown(folder: Path, routes: dict) -> list[str]:
    """The bare default, and what ships or else what RouteSampler found."""
    by = found(folder)
    ours = [text for text, who in by.items() if "shipped" in who] or [text for text, who in by.items() if "default" in who]
    return [*ours, "bare default"]


def measured(evaluator, routes, number, scratch, rule):
    """One round: every route once, against one new build of the base."""
    names = list(routes)
    random.Random(number).shuffle(names)
    rows = {}
    for name in names:
        trial = evaluator.evaluate(routes[name], scratch / f"round-{number}" / str(len(rows)), rule)
        row = trial_to_json(trial)
        row["engine"] = row["engine"] and {"fingerprint": row["engine"]["fingerprint"]}
        rows[name] = row
        gain = 1.0 if trial.unchanged else (trial.comparisons[0].gain if trial.comparisons else None)
        print(f"round {number}: {name or 'default'}: {trial.outcome.value} {gain} {trial.message}", flush=True)
    return rows


def inputs_of(study: StudyFolder, plan, seed: int, scratch: Path):
    """The inputs of a study: its own copies, or read anew where those were not kept."""
    if study.references.exists():
        return read_workload(plan.model, study.references)
    return prepare_workload(plan.model, plan.inputs(seed), scratch / "inputs")[0]


def found(folder: Path) -> dict[str, list[str]]:
    """Route to who found it: samplers by name, and ``shipped``."""
    by_route: dict[str, list[str]] = {}
    studies = {what: folder / f"{what}.study" for what in STRATEGIES}
    searches = {what: read_study(root).records for what, root in studies.items() if StudyFolder(root).exists}
    equal = min(map(len, searches.values()))
    for what, records in searches.items():
        best = best_feasible(record for record in records[:equal] if record.route.settings and not record.unchanged)
        if best is not None:
            by_route.setdefault(str(best.route), []).append(what)
    result = read_result(folder / "default.study" / "result.json")
    if result.verdict is Verdict.WINNER:
        by_route.setdefault(str(result.route), []).append("shipped")
    return by_route


def bare_route(plan) -> BuildRoute:
    """What sets every knob of the base back to the compiler's own default."""
    from smart_tuner.engine.backend import load_backend

    own = {knob.name: knob.default for knob in load_backend(plan.settings.backend).knobs()}
    back = {name: own[name] for name, value in plan.base.items() if own.get(name, value) != value}
    return BuildRoute(tuple(sorted(back.items())))


if __name__ == "__main__":
    main(*sys.argv[1:])
