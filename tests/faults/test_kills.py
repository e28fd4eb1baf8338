"""kill -9, at random moments, again and again."""

import json
import random
import signal
import time

import pytest
from optuna.trial import TrialState

from smart_tuner.storages.history import finished_trials
from smart_tuner.study.files.names import SPENT
from smart_tuner.trial.trial import TrialOutcome
from tests.faults.victim import Victim

KILLS = 10
TRIALS = "200"


@pytest.mark.timeout(300)
def test_ten_kills_at_random_moments(victim: Victim) -> None:
    options = ("--seed", "5", "--budget", "10m", "--trials", TRIALS)
    random_moments = random.Random(20)
    finished: list[int] = []
    spent = 0.0
    for number in range(KILLS):
        session = victim.start(*options)
        if number % 2:
            # From the start of the process on: imports, preparation, baseline.
            time.sleep(random_moments.uniform(0.3, 2.0))
        else:
            # Every second of these after a trial that ended, however slow the machine is.
            session.wait_for(r"^\[search\]" if number % 4 else r"^trial ")
            time.sleep(random_moments.uniform(0.0, 0.8))
        session.send(signal.SIGKILL)
        assert session.finish() == -signal.SIGKILL, session.text
        victim.wait_until_alone()
        before, finished = finished, victim.ends()
        assert finished[: len(before)] == before, "what was finished stays"
        assert len(finished) == len(set(finished)), "no trial ends twice"
        study = victim.optuna_study()
        if study is not None:
            assert len(study.get_trials(states=(TrialState.RUNNING,))) <= 1, "more than one lost"
            before_spent, spent = spent, float(study.user_attrs.get(SPENT, 0.0))
            assert spent >= before_spent, "time of earlier sessions counts"

    study = victim.optuna_study()
    assert study is not None
    results = len(finished_trials(study))
    assert results >= 2, "the study moved on between the kills"
    session = victim.start("--budget", "2m", "--trials", str(max(results, 10)))
    assert session.finish() == 0, session.text
    assert victim.leftovers() == []
    assert len(victim.ends()) == len(set(victim.ends()))
    result = json.loads((victim.study / "result.json").read_text())
    assert result["spent_seconds"] > spent
    assert sum(result["trials"].values()) == max(results, 10)
    study = victim.optuna_study()
    assert study is not None
    good = {
        record.route
        for record in finished_trials(study)
        if record.outcome is TrialOutcome.FEASIBLE and "fast" in record.route.values
    }
    # The kills decide which routes were tried; what was found among them is not lost.
    assert result["verdict"] == ("winner" if good else "default is best")
