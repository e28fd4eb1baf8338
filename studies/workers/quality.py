#!/usr/bin/env python3
"""Is a study of several workers as good as one of a single worker with as many trials?

    studies/workers/quality.py [--runs 20] [--trials 60] [--out studies/workers/quality.json]

Workers ask one study of its default sampler, as `tune` and `worker` do, while the trials of the
others are in flight; trials take the simulated compiler's own build times on a clock that only
pretends. For 1, 2, 4 and 8 workers it prints the share of the attainable gain that the fastest
feasible route has (by the compiler's truth), after as many trials and after as much time.
"""

import argparse
import heapq
import json
import math
import statistics
from pathlib import Path

import optuna

from smart_tuner.bench.samplers import make_contestant
from smart_tuner.bench.trying import WEIGHTS, PretendEvaluator
from smart_tuner.bench.workloads import Workload
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial, enqueue, route_of
from smart_tuner.storages.history import best_feasible, finished_trials
from smart_tuner.storages.tell import tell_trial

WORKERS = (1, 2, 4, 8)
KNOBS = 100


def play(seed: int, workers: int, trials: int) -> dict[str, float]:
    """One study; the share of the attainable gain, and the times at which trials ended."""
    workload = Workload("sparse", seed, KNOBS)
    compiler = workload.compiler()
    evaluator = PretendEvaluator(workload, compiler)
    choices = {knob.name: knob.choices for knob in compiler.knobs}
    study = optuna.create_study(sampler=make_contestant("default", choices, seed, None))
    enqueue(study, {}, "baseline", choices)
    at_work: list[tuple[float, int, object, object]] = []
    now, asked, curve = 0.0, 0, []
    optimum = compiler.optimum().log_latency
    while asked < trials or at_work:
        while asked < trials and len(at_work) < workers:
            trial = ask_trial(study, choices)
            before = evaluator.seconds
            tried = evaluator.attempt(route_of(trial.params, choices))
            ends = now + max(1e-3, evaluator.seconds - before)
            heapq.heappush(at_work, (ends, trial.number, trial, tried))
            asked += 1
        now, _, trial, tried = heapq.heappop(at_work)
        tell_trial(study, trial, tried, evaluator.baseline_ms, WEIGHTS)
        best = best_feasible(finished_trials(study))
        route = best.route if best else BuildRoute()
        curve.append((now, evaluator.log_latency(route) / optimum))
    routes = [str(record.route) for record in finished_trials(study)]
    return {"curve": curve, "repeated": len(routes) - len(set(routes)), "seconds": now}


def at(curve: list[tuple[float, float]], seconds: float) -> float:
    """The share that had been reached by a time."""
    return max([share for ended, share in curve if ended <= seconds], default=0.0)


def summary(values: list[float]) -> str:
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.mean(values):.3f} +-{half:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "quality.json")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept: dict[str, list[dict[str, float]]] = {str(count): [] for count in WORKERS}
    for seed in range(arguments.runs):
        for count in WORKERS:
            run = play(1000 + seed, count, arguments.trials)
            one = kept["1"][seed]["curve"] if count > 1 else run["curve"]
            quarter = one[-1][0] / 4
            run["share"] = run["curve"][-1][1]
            run["share_in_a_quarter"] = at(run["curve"], quarter)
            kept[str(count)].append(run)
        print(f"run {seed + 1} of {arguments.runs}", flush=True)
    rows = []
    for count in WORKERS:
        runs = kept[str(count)]
        pairs = [a["share"] - b["share"] for a, b in zip(runs, kept["1"], strict=True)]
        speed = statistics.mean(
            b["seconds"] / a["seconds"] for a, b in zip(runs, kept["1"], strict=True)
        )
        rows.append(
            {
                "workers": count,
                "share": summary([run["share"] for run in runs]),
                "against_one": summary(pairs) if count > 1 else "",
                "share_in_a_quarter_of_the_time": summary(
                    [run["share_in_a_quarter"] for run in runs]
                ),
                "speed": round(speed, 2),
                "repeated": sum(run["repeated"] for run in runs),
            }
        )
        print(rows[-1])
    said = {"runs": arguments.runs, "trials": arguments.trials, "knobs": KNOBS, "rows": rows}
    arguments.out.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
