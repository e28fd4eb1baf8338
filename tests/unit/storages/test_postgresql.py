"""Studies in a real PostgreSQL database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

import optuna
import pytest
from optuna.storages import BaseStorage, RDBStorage
from optuna.testing.pytest_storages import StorageTestCase
from optuna.trial import TrialState

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.address import check_url
from smart_tuner.storages.ask import ask_trial
from smart_tuner.storages.database import DatabaseStorage, open_database_study
from smart_tuner.storages.gathering import one_append, storage_of
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.storage_contract import (
    BASELINE_MS,
    WEIGHTS,
    OpenStorage,
    StorageContract,
    tried,
)
from smart_tuner.trial.trial import TrialOutcome
from tests.postgres import Server, running_server

optuna.logging.set_verbosity(optuna.logging.ERROR)

Open = Callable[[str, Mapping[str, tuple[str, ...]]], optuna.Study]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    server.empty()
    return server.url


@pytest.fixture
def open_study(url: str) -> Open:
    def opened(sampler: str, choices: Mapping[str, tuple[str, ...]]) -> optuna.Study:
        defaults = {name: values[0] for name, values in choices.items()}
        made = make_sampler(sampler, choices, defaults, 1)
        return open_database_study(url, "s", made, create=True)

    return opened


class TestDatabase(StorageContract):
    @pytest.fixture
    def open_storage(self, url: str) -> OpenStorage:
        DatabaseStorage(url, create=True)
        return lambda: DatabaseStorage(url, create=False)


class TestOptunaContract:
    """Those of Optuna's own tests that reading and writing of our own could break."""

    @pytest.fixture
    def storage(self, url: str) -> BaseStorage:
        return DatabaseStorage(url, create=True)

    test_get_trial = StorageTestCase.test_get_trial
    test_get_all_trials = StorageTestCase.test_get_all_trials
    test_create_new_trial_with_template_trial = (
        StorageTestCase.test_create_new_trial_with_template_trial
    )


def statements_of_a_trial(study: optuna.Study, choices: Mapping[str, tuple[str, ...]]) -> int:
    """How many statements the second trial of a study takes, asked and told."""
    import sqlalchemy

    storage = storage_of(study)
    assert isinstance(storage, DatabaseStorage)
    told: list[object] = []
    for _ in range(2):
        told.clear()
        sqlalchemy.event.listen(
            storage._tables.engine, "before_cursor_execute", lambda *_: told.append(1)
        )
        trial = ask_trial(study, choices)
        tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, -0.1), BASELINE_MS, WEIGHTS)
        if len(study.get_trials(deepcopy=False)) == 1:
            told.clear()
    return len(told)


def test_a_trial_costs_as_many_statements_at_200_knobs_as_at_two(url: str) -> None:
    counts = []
    for knobs in (2, 200):
        choices = {f"k{n}": ("off", "on") for n in range(knobs)}
        sampler = make_sampler("random", choices, dict.fromkeys(choices, "off"), 1)
        study = open_database_study(url, f"s{knobs}", sampler, create=True)
        counts.append(statements_of_a_trial(study, choices))
    assert counts[0] == counts[1] < 80


def test_optuna_s_own_storage_reads_what_is_written(url: str, open_study: Open) -> None:
    choices = {"a": ("off", "on"), "b": ("x", "y", "z")}
    study = open_study("default", choices)
    for ratio in (0.0, -0.2):
        trial = ask_trial(study, choices)
        tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, ratio), BASELINE_MS, WEIGHTS)
    ask_trial(study, choices)
    plain = RDBStorage(url.replace("postgresql:", "postgresql+psycopg:"))
    for seen, ours in zip(
        optuna.load_study(study_name="s", storage=plain).trials, study.trials, strict=True
    ):
        assert seen == ours
        assert seen.constraints == ours.constraints
    plain.engine.dispose()


def test_workers_that_ask_at_once_see_each_other_s_routes_whole(open_study: Open) -> None:
    choices = {f"k{n}": ("off", "on") for n in range(5)}
    asked: list[tuple[int, str]] = []

    def ask() -> None:
        study = open_study("default", choices)
        for _ in range(3):
            trial = ask_trial(study, choices)
            asked.append((trial.number, str(trial.user_attrs["route"])))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, _ in asked) == list(range(12))
    assert len({route for _, route in asked}) == 12, "none is asked for twice"


def test_an_ask_that_fails_leaves_nothing_half_written(open_study: Open) -> None:
    choices = {"a": ("off", "on")}
    study = open_study("default", choices)

    def interrupted() -> None:
        with one_append(study):
            study.ask().suggest_categorical("a", ("off", "on"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert study.get_trials() == []
    assert ask_trial(study, choices).number == 0


def test_a_database_that_was_killed_is_named_and_works_again_after_a_start() -> None:
    choices = {"a": ("off", "on"), "b": ("off", "on")}
    with running_server() as server:
        url = server.url
        sampler = make_sampler("default", choices, dict.fromkeys(choices, "off"), 1)
        study = open_database_study(url, "s", sampler, create=True)
        trial = ask_trial(study, choices)
        server.kill()
        with pytest.raises(EnvironmentNotFit, match=r"cannot be used.*nothing finished is lost"):
            tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, 0.1), BASELINE_MS, WEIGHTS)
        with pytest.raises(EnvironmentNotFit, match="cannot be used"):
            open_database_study(url, "s", sampler, create=False)
        server.start()
        told = tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, 0.1), BASELINE_MS, WEIGHTS)
        assert told.state is TrialState.COMPLETE
        assert ask_trial(study, choices).number == 1


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("sqlite:///study.db", "no PostgreSQL address"),
        ("study.db", "no PostgreSQL address"),
        ("postgresql://me:secret@host/db", "leave the password out"),
    ],
)
def test_addresses_that_are_refused(url: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy) as error:
        check_url(url)
    assert "secret" not in str(error.value) or "://" not in str(error.value)


def test_a_study_that_is_not_in_the_database(url: str) -> None:
    open_database_study(url, "other", None, create=True)
    with pytest.raises(UserInputError, match="No study 's'"):
        open_database_study(url, "s", None, create=False)
