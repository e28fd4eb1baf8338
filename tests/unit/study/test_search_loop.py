import json
import shutil
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.samplers.registry import make_sampler, sampler_names
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import BASELINE_MS, SPENT
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import Note, TrialFinished, TrialStarted
from smart_tuner.study.search.baseline import frozen_baseline_ms
from smart_tuner.study.search.search import Search
from smart_tuner.trial.trial import Trial, TrialOutcome
from tests.unit.study.pretend import Answer, PretendEvaluator, Recorder

CHOICES = {f"k{n}": ("off", "on") for n in range(6)}
DEFAULTS = dict.fromkeys(CHOICES, "off")
ENDLESS = 1e9


def plain(tried: BuildRoute) -> Answer:
    """``k0`` is fast, ``k1`` slow, ``k2`` crashes, ``k3`` never ends."""
    if "k2" in tried.values:
        return TrialOutcome.BUILD_FAILED
    if "k3" in tried.values:
        return TrialOutcome.TIMED_OUT
    return -0.2 * ("k0" in tried.values) + 0.1 * ("k1" in tried.values)


class Bench:
    """One study folder, opened as often as one likes."""

    def __init__(self, root: Path, *, seed: int = 5, sampler: str = "default") -> None:
        self.folder = StudyFolder(root)
        root.mkdir(exist_ok=True)
        self.seed, self.sampler = seed, sampler
        self.evaluator = PretendEvaluator(plain)
        self.listener = Recorder()

    def open(
        self, *, missing: frozenset[tuple[str, str]] = frozenset(), trial_seconds: float = 300.0
    ) -> Search:
        sampler = make_sampler(self.sampler, CHOICES, DEFAULTS, self.seed)
        study = open_study(self.folder.journal, "smart_tuner", sampler, create=True)
        return Search(
            study=study,
            folder=self.folder,
            evaluator=self.evaluator,  # type: ignore[arg-type]
            choices=CHOICES,
            weights={"default": 1.0},
            baseline_ms=1.0,
            default=Trial(BuildRoute(), TrialOutcome.FEASIBLE, unchanged=True),
            missing=missing,
            trial_seconds=trial_seconds,
            listener=self.listener,
            min_gain=1.01,
        )

    def run(self, trials: int) -> Search:
        search = self.open()
        search.recover()
        search.run(Budget(ENDLESS, trials))
        return search

    def routes(self) -> list[str]:
        """Every route in the order of its trial."""
        return [str(record.route) for record in finished_trials(self.open().study)]

    def notes(self) -> list[str]:
        return [note.text for note in self.listener.of(Note)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "study")


def test_the_default_comes_first_and_no_route_comes_twice(bench: Bench) -> None:
    bench.run(20)
    routes = bench.routes()
    assert routes[0] == ""
    assert len(routes) == len(set(routes)) == 20


def test_outcomes_are_told_as_they_came(bench: Bench) -> None:
    search = bench.run(20)
    outcomes = {str(r.route): r.outcome for r in finished_trials(search.study)}
    assert outcomes.pop("") is TrialOutcome.FEASIBLE
    assert len(bench.evaluator.tried) == len(outcomes), "nothing is built for the default"
    for tried, outcome in zip(bench.evaluator.tried, outcomes.values(), strict=True):
        expected = plain(tried)
        is_failure = isinstance(expected, TrialOutcome)
        assert outcome is (expected if is_failure else TrialOutcome.FEASIBLE)


def test_a_listener_hears_each_trial_begin_and_end(bench: Bench) -> None:
    bench.run(8)
    begun = bench.listener.of(TrialStarted)
    ended = bench.listener.of(TrialFinished)
    assert [event.number for event in begun] == [event.number for event in ended]
    assert begun[0].reason == "baseline"
    assert all(event.reason for event in begun)
    assert ended[0].unchanged
    assert ended[0].gain == 1.0
    assert [event.incumbent_gain for event in ended] == sorted(e.incumbent_gain for e in ended)
    failed = [event for event in ended if event.outcome is not TrialOutcome.FEASIBLE]
    assert all(event.gain is None and event.message for event in failed)


def test_a_small_space_is_searched_to_its_end_and_no_further(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "study")
    bench.run(1000)
    assert len(bench.routes()) == 2 ** len(CHOICES)
    assert "nothing is left to try" in bench.notes()[-1]


@pytest.mark.parametrize("sampler", sampler_names())
def test_the_same_seed_proposes_the_same_in_one_session_or_in_many(
    tmp_path: Path, sampler: str
) -> None:
    at_once = Bench(tmp_path / "at once", sampler=sampler)
    at_once.run(14)
    in_parts = Bench(tmp_path / "in parts", sampler=sampler)
    for trials in (1, 4, 5, 9, 14):
        in_parts.run(trials)
    assert at_once.routes() == in_parts.routes()


def test_another_seed_proposes_other_routes(tmp_path: Path) -> None:
    one, other = Bench(tmp_path / "one", seed=1), Bench(tmp_path / "other", seed=2)
    one.run(12)
    other.run(12)
    assert one.routes() != other.routes()


def test_a_kill_changes_no_later_proposal_but_the_repeated_route(tmp_path: Path) -> None:
    """The stream of a trial is keyed by its number, so only numbers move."""
    killed, spared = Bench(tmp_path / "killed"), Bench(tmp_path / "spared")
    killed.run(6)
    shutil.copytree(killed.folder.root, spared.folder.root, dirs_exist_ok=True)
    for bench in (killed, spared):
        with pytest.raises(KeyboardInterrupt):
            interrupt(bench, at=7)
        bench.run(12)
    assert killed.routes() == spared.routes()
    assert len(set(killed.routes())) == 12


def interrupt(bench: Bench, *, at: int) -> None:
    """End the process, as it were, while a trial runs."""
    search = bench.open()
    bench.evaluator.answer = stop
    try:
        search.run(Budget(ENDLESS, at))
    finally:
        bench.evaluator.answer = plain


def stop(_: BuildRoute) -> Answer:
    raise KeyboardInterrupt


def test_an_interrupted_trial_is_closed_and_its_route_tried_again(bench: Bench) -> None:
    bench.run(3)
    with pytest.raises(KeyboardInterrupt):
        interrupt(bench, at=4)
    lost = bench.evaluator.tried[-1]
    search = bench.run(4)
    assert bench.notes() == ["trial 3 was interrupted: its route is tried again"]
    assert bench.routes()[3] == str(lost)
    states = [trial.state for trial in search.study.get_trials(deepcopy=False)]
    assert states.count(TrialState.FAIL) == 1
    assert TrialState.RUNNING not in states


def complete_but_untold(bench: Bench) -> int:
    """A trial whose result is on disk and that the journal thinks is running."""
    bench.run(3)
    search = bench.open()
    tell = optuna.Study.tell
    try:
        optuna.Study.tell = stop_telling  # type: ignore[assignment, method-assign]
        with pytest.raises(KeyboardInterrupt):
            search.run(Budget(ENDLESS, 4))
    finally:
        optuna.Study.tell = tell  # type: ignore[method-assign]
    (running,) = search.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    assert (bench.folder.trial(running.number) / "result.json").is_file()
    return running.number


def stop_telling(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_complete_result_is_told_on_resume_once(bench: Bench) -> None:
    number = complete_but_untold(bench)
    tried = len(bench.evaluator.tried)
    for _ in range(3):
        bench.open().recover()
    assert bench.notes() == [f"trial {number} had finished before the interruption: kept"]
    assert len(bench.routes()) == 4
    assert len(bench.evaluator.tried) == tried
    results = [
        json.loads(line)
        for line in bench.folder.journal.read_text().splitlines()
        if json.loads(line)["op_code"] == 6
    ]
    assert len({row["trial_id"] for row in results}) == len(results)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"schema_version": 99}', "\u0000"])
def test_a_damaged_result_is_a_lost_trial(bench: Bench, text: str) -> None:
    number = complete_but_untold(bench)
    (bench.folder.trial(number) / "result.json").write_text(text)
    bench.open().recover()
    assert bench.notes() == [f"trial {number} was interrupted: its route is tried again"]
    assert len(bench.routes()) == 3


def test_a_result_of_another_route_is_a_lost_trial(bench: Bench) -> None:
    """An old journal was deleted: the trial folders are those of another search."""
    number = complete_but_untold(bench)
    shutil.copy2(bench.folder.trial(0) / "result.json", bench.folder.trial(number) / "result.json")
    bench.open().recover()
    assert bench.notes() == [f"trial {number} was interrupted: its route is tried again"]


def test_engines_of_trials_are_not_kept(bench: Bench) -> None:
    bench.run(6)
    names = {path.name for path in bench.folder.root.rglob("trials/*/*")}
    assert names == {"result.json", "route.txt"}


def test_spent_time_is_kept_with_each_trial(bench: Bench) -> None:
    search = bench.open()
    search.run(Budget(ENDLESS, 2, spent_before=100.0))
    assert bench.open().study.user_attrs[SPENT] >= 100.0


def test_a_time_budget_that_is_over_tries_nothing(bench: Bench) -> None:
    bench.open().run(Budget(10.0, spent_before=10.0))
    assert bench.evaluator.tried == []


@pytest.mark.parametrize(("gain", "tried_for"), [(0.2, 70.0), (-0.2, 100.0)])
def test_time_is_kept_back_only_for_what_is_worth_confirming(
    bench: Bench, gain: float, tried_for: float
) -> None:
    budget = Budget(100.0)

    def answer(tried: BuildRoute) -> Answer:
        budget.spent_before += 5.0
        return -gain if len(tried) else 0.0

    bench.evaluator.answer = answer
    bench.open().run(budget)
    assert budget.spent == pytest.approx(tried_for, abs=6.0)


def test_a_route_that_the_end_of_the_budget_cut_off_teaches_nothing(bench: Bench) -> None:
    budget = Budget(100.0, spent_before=30.0)

    def slow(tried: BuildRoute) -> Answer:
        if not len(tried):
            return 0.0
        budget.spent_before += bench.evaluator.deadlines[-1] or 0.0
        return TrialOutcome.TIMED_OUT

    bench.evaluator.answer = slow
    bench.open(trial_seconds=300.0).run(budget)
    # 70 s were left, nothing to confirm: less than a trial may take, so running out says nothing.
    assert bench.routes() == [""]
    deadline = bench.evaluator.deadlines[-1]
    assert deadline == pytest.approx(70.0, abs=5.0)
    assert bench.notes() == [
        "trial 1 did not fit into what was left of the budget: its route is tried again"
    ]
    bench.evaluator.answer = plain
    lost = str(bench.evaluator.tried[-1])
    bench.open().run(Budget(ENDLESS, trials=2))
    assert bench.routes() == ["", lost]


def test_a_route_that_had_all_its_time_is_told_as_timed_out(bench: Bench) -> None:
    bench.evaluator.answer = lambda tried: TrialOutcome.TIMED_OUT if len(tried) else 0.0
    search = bench.open(trial_seconds=5.0)
    search.run(Budget(100.0, trials=3))
    outcomes = [record.outcome for record in finished_trials(search.study)]
    assert outcomes.count(TrialOutcome.TIMED_OUT) == 2
    assert bench.evaluator.deadlines == [5.0] * 2


def test_what_this_machine_does_not_offer_is_not_tried(bench: Bench) -> None:
    missing = frozenset({("k0", "on"), ("k4", "on")})
    search = bench.open(missing=missing)
    search.run(Budget(ENDLESS, 20))
    assert not any(missing & set(tried.settings) for tried in bench.evaluator.tried)
    absent = [r for r in finished_trials(search.study) if missing & set(r.route.settings)]
    assert absent
    assert all(record.outcome is TrialOutcome.NOT_APPLIED for record in absent)
    assert all("not offered here: k" in record.message for record in absent)


def test_the_baseline_s_latency_is_frozen_by_the_first_session(bench: Bench) -> None:
    study = bench.open().study
    weights = {"a": 3.0, "b": 1.0}
    first = frozen_baseline_ms(study, {"a": 1.0, "b": 16.0}, weights)
    assert first == pytest.approx(2.0)
    assert frozen_baseline_ms(bench.open().study, {"a": 5.0, "b": 5.0}, weights) == first
    assert study.user_attrs[BASELINE_MS] == first
