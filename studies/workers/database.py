#!/usr/bin/env python3
"""How does a study of 209 knobs and 5,000 trials fare in PostgreSQL, and where does it bend?

    studies/workers/database.py postgresql://... [--out studies/workers/database.json]

The server itself fills the study with made-up trials; at each size it measures what ten ordinary trials cost
(ask with random routes, tell), what opening the study takes and how much memory that needs, and
what the default sampler takes to propose. At the end it writes trials through Optuna's own
statements and through Optuna's gRPC proxy, for comparison.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import optuna
import psutil
from optuna.storages import GrpcStorageProxy, RDBStorage, run_grpc_proxy_server
from sqlalchemy import text

from smart_tuner.knobs.read import bundled_database
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_trial
from smart_tuner.storages.database import open_database_study
from smart_tuner.storages.gathering import storage_of
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.storage_contract import WEIGHTS, tried
from smart_tuner.trial.trial import TrialOutcome

SIZES = (100, 1000, 2000, 5000)
CHOICES = {knob.name: knob.choices for knob in bundled_database()}
DEFAULTS = {name: values[0] for name, values in CHOICES.items()}
RESULT = tried(TrialOutcome.FEASIBLE, -0.01)


def sampler(name: str) -> optuna.samplers.BaseSampler:
    return make_sampler(name, CHOICES, DEFAULTS, 1)


def fill(study: optuna.Study, size: int) -> None:
    """Add finished trials with random routes until there are so many; the server makes them up."""
    storage = storage_of(study)
    study_id = storage.get_study_id_from_name(study.study_name)
    model = next(trial for trial in study.get_trials(deepcopy=False) if trial.params)
    numbers = {"study": study_id, "model": model._trial_id, "size": size}
    with storage._tables.engine.begin() as connection:
        for statement in FILL:
            connection.execute(text(statement), numbers)


NEW = "(SELECT trial_id FROM trials WHERE study_id = :study AND state = 'WAITING') AS new"
FILL = (
    """INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete)
    SELECT number, :study, 'WAITING', now(), now() FROM generate_series(
        (SELECT count(*) FROM trials WHERE study_id = :study), :size - 1) AS number""",
    f"""INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)
    SELECT new.trial_id, param_name, floor(random() * json_array_length(
        distribution_json::json -> 'attributes' -> 'choices')), distribution_json
    FROM trial_params, {NEW} WHERE trial_params.trial_id = :model ORDER BY 1, param_id""",
    f"""INSERT INTO trial_values (trial_id, objective, value, value_type)
    SELECT trial_id, 0, exp(0.05 * random()), 'FINITE' FROM {NEW}""",
    f"""INSERT INTO trial_user_attributes (trial_id, key, value_json)
    SELECT new.trial_id, key, value_json FROM trial_user_attributes, {NEW}
    WHERE trial_user_attributes.trial_id = :model""",
    f"""INSERT INTO trial_system_attributes (trial_id, key, value_json)
    SELECT new.trial_id, key, value_json FROM trial_system_attributes, {NEW}
    WHERE trial_system_attributes.trial_id = :model AND key NOT LIKE 'smart_tuner%'""",
    "UPDATE trials SET state = 'COMPLETE' WHERE study_id = :study AND state = 'WAITING'",
)


def of_a_trial(study: optuna.Study, count: int = 10) -> dict[str, float]:
    """Milliseconds of an ask and a tell."""
    asks, tells = [], []
    for _ in range(count):
        started = time.perf_counter()
        trial = ask_trial(study, CHOICES)
        asks.append(time.perf_counter() - started)
        started = time.perf_counter()
        tell_trial(study, trial, RESULT, 5.0, WEIGHTS)
        tells.append(time.perf_counter() - started)
    return {
        "ask_ms": round(1e3 * statistics.median(asks), 1),
        "tell_ms": round(1e3 * statistics.median(tells), 1),
    }


def opening(url: str, name: str) -> dict[str, float]:
    """Seconds and memory of reading a study, in a process of its own."""
    words = [sys.executable, __file__, url, "--open", name]
    return json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)


def open_and_tell(url: str, name: str) -> None:
    before = psutil.Process().memory_info().rss
    started = time.perf_counter()
    study = open_database_study(url, name, sampler("default"), create=False)
    study.get_trials(deepcopy=False)
    seconds = time.perf_counter() - started
    memory = psutil.Process().memory_info().rss - before
    asks = []
    for _ in range(2):  # the first ask reads every trial, later ones only what is new
        started = time.perf_counter()
        ask_trial(study, CHOICES)
        asks.append(time.perf_counter() - started)
    said = {"open_s": round(seconds, 2), "open_mb": round(memory / 1e6)}
    more = {"default_ask_first_s": round(asks[0], 2), "default_ask_s": round(asks[1], 2)}
    print(json.dumps({**said, **more}))


def through_optuna(url: str) -> dict[str, dict[str, float]]:
    """Trials by Optuna's own statements, direct and through its proxy."""
    plain = RDBStorage(url.replace("postgresql:", "postgresql+psycopg:", 1))
    found = {}
    study = optuna.create_study(storage=plain, sampler=sampler("random"))
    found["optuna"] = of_a_trial(study, 3)
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, url, "--proxy", str(port)])
    try:
        proxy = GrpcStorageProxy(host="localhost", port=port)
        proxy.wait_server_ready(timeout=60)
        study = optuna.create_study(storage=proxy, sampler=sampler("random"))
        found["grpc_proxy"] = of_a_trial(study, 3)
    finally:
        server.kill()
        server.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--open", default="")
    parser.add_argument("--proxy", type=int, default=0)
    said = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if said.open:
        open_and_tell(said.url, said.open)
        return
    if said.proxy:
        plain = RDBStorage(said.url.replace("postgresql:", "postgresql+psycopg:", 1))
        run_grpc_proxy_server(plain, host="localhost", port=said.proxy)
        return
    name = f"large-{time.time_ns()}"
    study = open_database_study(said.url, name, sampler("random"), create=True)
    of_a_trial(study, 2)
    rows = []
    for size in SIZES:
        fill(study, size)
        study.get_trials(deepcopy=False)
        row = {"trials": size, **of_a_trial(study)}
        with storage_of(study)._tables.engine.connect() as connection:
            bytes_used = connection.execute(text("SELECT pg_database_size(current_database())"))
            row["database_mb"] = round(bytes_used.scalar_one() / 1e6)
        rows.append({**row, **opening(said.url, name)})
        print(rows[-1], flush=True)
    compared = through_optuna(said.url)
    print(compared)
    if said.out:
        document = {"knobs": len(CHOICES), "rows": rows, "ways": compared}
        said.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
