#!/usr/bin/env python3
"""What does the storage cost when 1, 2, 4, 8 workers search one study of 209 knobs?

    studies/workers/load.py journal|postgresql://... [--seconds 60] [--build 2.0] [--out FILE]

Each worker is a process that asks the default sampler, sleeps for as long as a build would take
(drawn anew each time), and tells a result: nothing but the storage and the sampler is real. It
prints trials per hour, what an ask and a tell took, and how busy the storage was.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import optuna

from smart_tuner.knobs.read import bundled_database
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_within
from smart_tuner.storages.database import open_database_study
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.storage_contract import WEIGHTS, tried
from smart_tuner.trial.trial import TrialOutcome

WORKERS = (1, 2, 4, 8)


def choices() -> dict[str, tuple[str, ...]]:
    """TensorRT's 209 route knobs."""
    return {knob.name: knob.choices for knob in bundled_database()}


def opened(where: str, name: str, seed: int = 1) -> optuna.Study:
    known = choices()
    sampler = make_sampler("default", known, {k: v[0] for k, v in known.items()}, seed)
    if where.startswith("postgresql:"):
        return open_database_study(where, name, sampler, create=True)
    return open_study(Path(where), name, sampler, create=True)


def worker(where: str, name: str, seconds: float, build: float, seed: int) -> None:
    """Work for a while and print what it took."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, known = opened(where, name), choices()
    dice = random.Random(seed)
    asks, tells = [], []
    processor = time.process_time()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        trial = ask_within(study, known, None, f"w{seed}")
        asks.append(time.perf_counter() - started)
        time.sleep(dice.expovariate(1 / build))
        started = time.perf_counter()
        result = tried(TrialOutcome.FEASIBLE, dice.gauss(-0.01, 0.02))
        tell_trial(study, trial, result, 5.0, WEIGHTS)
        tells.append(time.perf_counter() - started)
    processor = time.process_time() - processor
    print(json.dumps({"asks": asks, "tells": tells, "processor": processor}))


def measure(where: str, count: int, seconds: float, build: float) -> dict[str, float]:
    name = f"load-{count}-{time.time_ns()}"
    opened(where, name)
    words = [sys.executable, __file__, where, "--worker", name]
    words += ["--seconds", str(seconds), "--build", str(build)]
    crew = [
        subprocess.Popen([*words, "--seed", str(seed)], stdout=subprocess.PIPE)
        for seed in range(count)
    ]
    found = [json.loads(process.communicate()[0]) for process in crew]
    asks = [item for one in found for item in one["asks"]]
    tells = [item for one in found for item in one["tells"]]
    trials = len(tells)
    ideal = count * seconds / build
    return {
        "workers": count,
        "trials": trials,
        "trials_per_hour": round(3600 * trials / seconds),
        "of_ideal": round(trials / ideal, 2),
        "processor_ms_a_trial": round(1e3 * sum(one["processor"] for one in found) / trials, 1),
        "ask_ms_median": round(1e3 * statistics.median(asks), 1),
        "ask_ms_p90": round(1e3 * statistics.quantiles(asks, n=10)[8], 1),
        "tell_ms_median": round(1e3 * statistics.median(tells), 1),
        "tell_ms_p90": round(1e3 * statistics.quantiles(tells, n=10)[8], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--build", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", default="")
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    if said.worker:
        worker(said.where, said.worker, said.seconds, said.build, said.seed)
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for count in WORKERS:
            where = said.where
            if where == "journal":
                where = str(Path(place) / f"{count}.log")
            rows.append(measure(where, count, said.seconds, said.build))
            print(rows[-1], flush=True)
    if said.out:
        kind = said.where.partition(":")[0]
        document = {"storage": kind, "knobs": len(choices()), "build_seconds": said.build}
        said.out.write_text(json.dumps({**document, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
