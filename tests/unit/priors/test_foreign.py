"""Evidence that others have gathered: tuning caches and Optuna studies."""

from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection

from smart_tuner.errors import UserInputError
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.foreign import observe_cache, observe_optuna

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("name", ["trtexec-fast", "trtexec-mixed", "torch-tensorrt"])
def test_a_tuning_cache_becomes_evidence(name: str) -> None:
    found = observe_cache(GOLDEN / f"{name}.jsonl")
    made = build_prior([found])
    (study,) = made.studies
    assert study.source == ("torch-tensorrt" if "torch" in name else "trtexec")
    assert study.objective == "compute"
    assert study.backend == "tensorrt"
    tried = {(k, v) for trial in found.trials for k, v in trial.values.items()}
    assert {(k, v) for k, knob in made.knobs.items() for v in knob.values} == tried


def journal(folder: Path) -> str:
    return str(folder / "runs.log")


def run(folder: Path, direction: StudyDirection, trials: int = 40) -> str:
    """Forty trials of a small study of somebody else's."""
    sign = 1.0 if direction is StudyDirection.MINIMIZE else -1.0

    def objective(trial: optuna.Trial) -> float:
        fast = trial.suggest_categorical("fast", [False, True])
        level = trial.suggest_categorical("level", [1, 2, 3])
        trial.suggest_float("noise", 0.0, 1.0)
        if level == 3:
            raise optuna.TrialPruned
        return float(10 * (0.7 if fast else 1.0) ** sign)

    study = optuna.create_study(
        study_name="theirs",
        storage=JournalStorage(JournalFileBackend(journal(folder))),
        direction=direction,
        sampler=optuna.samplers.RandomSampler(seed=1),
    )
    study.enqueue_trial({"fast": False, "level": 1})
    study.optimize(objective, n_trials=trials)
    return f"optuna:{journal(folder)}#theirs"


@pytest.mark.parametrize("direction", [StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE])
def test_an_optuna_study_becomes_evidence(tmp_path: Path, direction: StudyDirection) -> None:
    found = observe_optuna(run(tmp_path, direction))
    assert found.choices == {"fast": ("False", "True"), "level": ("1", "2", "3")}
    made = build_prior([found])
    fast = made.knobs["fast"].values["True"].evidence[found.entry.id]
    assert fast.active > 0.9
    assert fast.effect == pytest.approx(-0.36, abs=0.05)
    assert made.knobs["level"].values["3"].evidence[found.entry.id].failure > 0.8
    assert made.studies[0].source == "optuna"


def test_what_is_no_such_study_is_said_in_one_line(tmp_path: Path) -> None:
    run(tmp_path, StudyDirection.MINIMIZE, trials=1)
    for source, said in (
        ("optuna:nothing", "give optuna:STORAGE#STUDY"),
        (f"optuna:{journal(tmp_path)}#other", "holds no Optuna study"),
        ("optuna:nosuch://host/db#x", "Cannot read the Optuna storage"),
        (f"optuna:sqlite:///{tmp_path}/new.db#x", "holds no Optuna study"),
    ):
        with pytest.raises(UserInputError, match=said) as caught:
            observe_optuna(source)
        assert "\n" not in str(caught.value)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("{}\n")
    with pytest.raises(UserInputError):
        observe_cache(empty)
