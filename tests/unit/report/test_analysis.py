"""What a study tells: effects, culprits, trade-offs, verdicts, for studies in every state."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.report.analysis.conditions import MachineState, Series
from smart_tuner.report.analysis.culprits import culprits
from smart_tuner.report.analysis.effects import Effects, Finding, effects_of
from smart_tuner.report.analysis.failures import failures_of
from smart_tuner.report.analysis.headline import headline_of
from smart_tuner.report.analysis.history import History, history_of
from smart_tuner.report.analysis.outlook import outlook_of
from smart_tuner.report.analysis.phases import phases_of
from smart_tuner.report.analysis.summary import StudySummary, summarize
from smart_tuner.report.analysis.tradeoff import sweep_of, tradeoff_of, winners_of
from smart_tuner.report.explain import explain
from smart_tuner.report.figures.search import history_figure, slower_words
from smart_tuner.report.html.page import html_report
from smart_tuner.report.knob_sentences import effects_words, failures_words
from smart_tuner.report.page import write_report
from smart_tuner.report.reading import StudyView, read_study
from smart_tuner.report.sentences import (
    confirmation_words,
    history_words,
    machine_words,
    outlook_words,
    sweep_words,
    tradeoff_words,
)
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord, best_feasible
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.proof.gain import Gain
from smart_tuner.trial.fields import to_json
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.pairs import LossOverPairs
from tests.studies_for_viewing import Kind, make_study, running

if TYPE_CHECKING:
    from tests.conftest import MakeOnce

StudyOf = Callable[[Kind], StudyFolder]

SPACE = {f"k{place}": ["0", "1", "2"] for place in range(12)}
DOCUMENT = {
    "seed": 1,
    "settings": {"model": "m.onnx", "budget": 600.0, "min_gain": 1.01},
    "identity": {"model": "abc"},
    "space": SPACE,
    "accuracy": {"metric": "linf", "epsilon": 0.01, "rtol": 1e-3, "atol": 1e-4},
}


def view_of(*records: TrialRecord, baseline_ms: float = 2.0) -> StudyView:
    return StudyView(
        Path("/a.study"), "finished", DOCUMENT, records=records, baseline_ms=baseline_ms
    )


def record(
    number: int, route: dict[str, str], log_ratio: float | None, **more: object
) -> TrialRecord:
    value = None if log_ratio is None else 2.0 * math.exp(log_ratio)
    made = TrialRecord(
        number,
        BuildRoute(tuple(sorted(route.items()))),
        TrialOutcome.FEASIBLE,
        value,
        -6.0,
        half_width=0.01,
        seconds={"build": 1.0, "total": 2.0},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def broken(number: int, route: dict[str, str]) -> TrialRecord:
    return record(number, route, None, outcome=TrialOutcome.BUILD_FAILED, violation=None)


def random_routes(count: int, seed: int) -> list[dict[str, str]]:
    generator = np.random.default_rng(seed)
    routes = []
    for _ in range(count):
        picked = generator.choice(12, size=4, replace=False)
        routes.append({f"k{knob}": str(generator.integers(1, 3)) for knob in picked})
    return routes


def measured(truth: dict[str, float], count: int, noise: float, seed: int) -> list[TrialRecord]:
    generator = np.random.default_rng(seed + 1000)
    return [
        record(
            number,
            route,
            sum(truth.get(f"{knob}={value}", 0.0) for knob, value in route.items())
            + noise * float(generator.standard_normal()),
        )
        for number, route in enumerate(random_routes(count, seed))
    ]


def effect(effects: Effects, name: str) -> tuple[float, float, Finding]:
    value = next(item for item in effects.values if f"{item.knob}={item.value}" == name)
    assert value.effect is not None
    assert value.half_width is not None
    return value.effect, value.half_width, value.finding


TRUTH = {"k0=1": -0.15, "k1=2": -0.05, "k2=1": 0.12}


def test_planted_effects_are_found_and_nothing_else() -> None:
    effects = effects_of(view_of(*measured(TRUTH, 120, 0.004, 3)))
    for name, true in TRUTH.items():
        mean, width, finding = effect(effects, name)
        assert abs(mean - true) < 0.01
        assert width < 0.01
        assert finding is (Finding.PAYS if true < 0 else Finding.COSTS)
    sure = {*effects.of(Finding.PAYS), *effects.of(Finding.COSTS)}
    assert {f"{value.knob}={value.value}" for value in sure} == TRUTH.keys()
    assert len(effects.of(Finding.NO_EFFECT)) >= 18
    assert [value.effect for value in effects.values] == sorted(
        v.effect or 0 for v in effects.values
    )


def test_intervals_cover_what_is_true() -> None:
    held = total = 0
    for seed in range(30):
        effects = effects_of(view_of(*measured(TRUTH, 60, 0.01, seed)))
        for value in effects.values:
            true = TRUTH.get(f"{value.knob}={value.value}", 0.0)
            total += 1
            held += abs((value.effect or 0.0) - true) <= (value.half_width or 0.0)
    assert held / total > 0.93


def test_where_nothing_matters_hardly_anything_is_said_to_pay() -> None:
    said = [
        value
        for seed in range(20)
        for value in effects_of(view_of(*measured({}, 40, 0.01, seed))).values
        if value.finding in (Finding.PAYS, Finding.COSTS)
    ]
    assert len(said) <= 20 * 24 * 0.02


def test_a_noisy_trial_weighs_less() -> None:
    quiet = [record(n, {"k0": "1"}, -0.1, half_width=0.005) for n in range(4)]
    noisy = [record(n, {"k0": "1"}, 0.5, half_width=0.2) for n in range(4, 6)]
    rest = [record(n, {"k1": "1"}, 0.0, half_width=0.005) for n in range(6, 12)]
    mean, _, _ = effect(effects_of(view_of(*quiet, *noisy, *rest)), "k0=1")
    assert abs(mean + 0.1) < 0.03


def test_few_noisy_trials_prove_no_value_to_do_nothing() -> None:
    generator = np.random.default_rng(4)
    routes = [
        {f"k{knob}": "1" for knob in range(12) if generator.random() < 0.7} for _ in range(9)
    ]
    records = [
        record(n, route, float(generator.normal(-0.2, 0.3)), half_width=0.4)
        for n, route in enumerate(routes)
    ]
    effects = effects_of(view_of(*records))
    assert {value.finding for value in effects.values} == {Finding.UNCLEAR}


def test_nothing_is_estimated_from_too_few_trials() -> None:
    effects = effects_of(view_of(record(0, {}, 0.0), record(1, {"k0": "1"}, -0.2)))
    assert [value.effect for value in effects.values] == [None]
    assert effects.untried == 23


def company(route: dict[str, str]) -> list[tuple[str, str]]:
    return [item for item in route.items() if item[0] != "k0"]


@pytest.mark.parametrize("companions", [1, 3])
def test_one_value_that_always_breaks_is_blamed(companions: int) -> None:
    good = [
        record(n, route, 0.0) for n, route in enumerate(random_routes(30, 5)) if "k0" not in route
    ]
    bad = [
        broken(100 + n, {"k0": "1", **dict(list(company(route))[:companions])})
        for n, route in enumerate(random_routes(12, 6))
    ]
    failures = failures_of(view_of(*good, *bad))
    assert [(value.knob, value.value) for value in failures.blamed] == [("k0", "1")]
    assert failures.pairs == ()
    assert failures.failed == 12


def test_a_pair_is_blamed_where_each_value_works_alone() -> None:
    good = [record(n, {"k0": "1", f"k{2 + n}": "1"}, 0.0) for n in range(6)]
    good += [record(10 + n, {"k1": "1", f"k{2 + n}": "1"}, 0.0) for n in range(6)]
    bad = [broken(20 + n, {"k0": "1", "k1": "1", f"k{2 + n}": "1"}) for n in range(3)]
    failures = failures_of(view_of(*good, *bad))
    assert [(pair.first, pair.second) for pair in failures.pairs] == [(("k0", "1"), ("k1", "1"))]
    assert failures.pairs[0].failed == 3
    assert any("k0=1 together with k1=1" in line for line in failures_words(failures))


def test_suspects_that_are_always_seen_together_share_the_blame() -> None:
    flags = np.array([[True, True, False]] * 8 + [[False, False, True]] * 8)
    found = culprits(flags, np.array([True] * 8 + [False] * 8))
    assert found.single[0] == pytest.approx(found.single[1])
    assert found.single[0] > 0.3
    assert found.single[2] == 0


def violator(number: int, log_ratio: float, violation: float) -> TrialRecord:
    return record(
        number, {"k0": "1"}, log_ratio, outcome=TrialOutcome.INFEASIBLE, violation=violation
    )


def test_a_violator_is_infeasible_everywhere() -> None:
    view = view_of(record(0, {}, 0.0), record(1, {"k1": "1"}, -0.1), violator(2, -0.5, 1.0))
    summary = summarize(view)
    assert [point.feasible for point in summary.history.points] == [True, True, False]
    assert [point.incumbent for point in summary.history.points][-1] == pytest.approx(
        math.exp(0.1)
    )
    assert [point.feasible for point in summary.tradeoff.points] == [True, True, False]
    assert summary.failures.failed == 1
    assert "1.105x" in summary.headline.sentence
    text = json.dumps(to_json(summary))
    assert json.loads(text)["history"]["points"][2]["word"] == "over epsilon"


def test_what_breaks_a_limit_is_eligible_at_no_epsilon() -> None:
    over = violator(1, -0.5, -2.0)
    tradeoff = tradeoff_of(view_of(record(0, {}, 0.0), replace(over, over_limits=("memory",))))
    assert [point.feasible for point in tradeoff.points] == [True, False]
    assert [step.eligible for step in sweep_of(tradeoff)] == [1]


def test_the_sweep_lets_routes_in_one_by_one() -> None:
    records = [
        record(0, {}, 0.0, violation=-6.0),
        record(1, {"k1": "1"}, -0.1, violation=-1.0),
        record(2, {"k2": "1"}, -0.05, violation=-0.5),
        violator(3, -0.5, 1.0),
        violator(4, -0.9, 6.0),
    ]
    steps = sweep_of(tradeoff_of(view_of(*records)))
    assert [step.eligible for step in steps] == [1, 2, 3, 4]
    assert [step.number for step in winners_of(steps)] == [0, 1, 3]
    assert (
        "From 10 times this epsilon on, trial 3 would be the fastest, at 1.649x."
        in sweep_words(steps)
    )


def test_the_pareto_set_is_never_beaten() -> None:
    generator = np.random.default_rng(2)
    records = [
        record(
            n,
            {"k0": "1"},
            float(generator.normal(0, 0.1)),
            violation=float(generator.uniform(-6, 0)),
        )
        for n in range(60)
    ]
    points = tradeoff_of(view_of(*records)).points
    for point in points:
        beaten = any(other.gain > point.gain and other.ratio <= point.ratio for other in points)
        assert point.on_front is not beaten


def history(gains: Sequence[float]) -> History:
    records = [record(n, {"k0": "1"}, -math.log(gain)) for n, gain in enumerate(gains)]
    return history_of(view_of(*records))


@pytest.mark.parametrize(
    ("gains", "worth"),
    [
        ([1.0, 1.1, *[1.1] * 20], False),
        ([1.0, *[1.0] * 9, 1.1, 1.2], True),
        ([1.0, 1.2], True),
    ],
    ids=["flat", "rising", "too few"],
)
def test_going_on_is_worth_it_while_the_second_half_still_rises(
    gains: list[float], worth: bool
) -> None:
    told = history(gains)
    outlook = outlook_of(told, effects_of(view_of()))
    assert outlook.worth_it is worth
    assert ("not look worth it" in outlook_words(outlook)[0]) is not worth


def test_the_time_adds_up() -> None:
    view = replace(view_of(*measured({}, 10, 0.01, 1)), spent_seconds=30.0)
    phases = phases_of(view)
    assert sum(phase.seconds for phase in phases.phases) == pytest.approx(30.0)
    assert sum(phase.share for phase in phases.phases) == pytest.approx(1.0)


@pytest.fixture(scope="session")
def study_of(make_once: MakeOnce) -> StudyOf:
    def get(kind: Kind) -> StudyFolder:
        count = 40 if kind is Kind.BIG else None
        folder = make_once(f"analysed-{kind.value}", lambda place: make_study(kind, place, count))
        return StudyFolder(folder / f"{kind.value}.study")

    return get


SENTENCES = {
    Kind.FINISHED: (
        "faster than the default (95 % interval",
        "within epsilon 0.001 (linf)",
        "deploy",
    ),
    Kind.INTERRUPTED: ("was stopped", "unconfirmed", "run the same tune command again"),
    Kind.ALL_FAILED: ("The default ships: all 7 routes that were tried failed",),
    Kind.NO_GAIN: ("No gain of 1.01x or more: best candidate 1.0", "keep the default"),
    Kind.ONE_TRIAL: ("Undecided: the budget ended", "larger --budget"),
}


@pytest.mark.parametrize("kind", list(SENTENCES), ids=lambda kind: str(kind.value))
def test_the_verdict_is_one_sentence_that_says_what_to_do(study_of: StudyOf, kind: Kind) -> None:
    sentence = summarize(read_study(study_of(kind).root)).headline.sentence
    for part in SENTENCES[kind]:
        assert part in sentence
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")


def test_a_running_study_says_so(study_of: StudyOf) -> None:
    folder = study_of(Kind.RUNNING)
    with running(folder):
        view = read_study(folder.root)
    assert view.state == "running"
    assert view.in_flight == 1
    assert "is running" in headline_of(view, summarize(view).outlook).sentence


def check(summary: StudySummary) -> None:
    """Everything has words, and is strict JSON."""
    json.dumps(to_json(summary), allow_nan=False)
    told = explain(summary)
    assert told.verdict
    assert all(line for lines in told.subjects.values() for line in lines)


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: str(kind.value))
def test_every_kind_of_study_can_be_told(study_of: StudyOf, kind: Kind) -> None:
    view = read_study(study_of(kind).root)
    assert view.problems == ()
    check(summarize(view))


DAMAGE = {
    "no journal": ("journal.log", None),
    "broken journal": ("journal.log", "not a journal\n" * 3),
    "broken verdict": ("result.json", "{"),
    "no platform": ("platform.json", None),
    "broken finalists": ("finalists.json", "[1]"),
    "changed winner": ("winner/engine.json", "changed"),
    "no trial folders": ("trials", None),
}


@pytest.mark.parametrize("name", list(DAMAGE))
def test_a_broken_study_is_told_as_far_as_it_goes(
    study_of: StudyOf, tmp_path: Path, name: str
) -> None:
    root = tmp_path / "broken.study"
    shutil.copytree(study_of(Kind.FINISHED).root, root)
    file, content = DAMAGE[name]
    if content is not None:
        (root / file).write_text(content)
    elif (root / file).is_dir():
        shutil.rmtree(root / file)
    else:
        (root / file).unlink()
    view = read_study(root)
    summary = summarize(view)
    check(summary)
    quiet = ("no trial folders", "no journal")
    assert bool(view.problems) is (name not in quiet)
    assert all(problem in summary.headline.cautions for problem in view.problems)
    assert ("damaged" in summary.headline.sentence) is (name == "changed winner")


@pytest.mark.parametrize(
    ("worst", "over", "told"), [(0.049, "worst", 1), (0.03, "worst", 0), (0.049, "mean", 0)]
)
def test_a_loss_close_to_epsilon_is_told_with_what_a_new_input_may_do(
    study_of: StudyOf, worst: float, over: str, told: int
) -> None:
    view = read_study(study_of(Kind.FINISHED).root)
    assert view.result is not None
    row = LossOverPairs("default", "y", "linf", worst, "a", 0.01, 7, 0.05, over)
    result = replace(view.result, accuracy=(row,), provisional=False)
    cautions = summarize(replace(view, result=result)).headline.cautions
    close = [line for line in cautions if "of epsilon" in line]
    assert len(close) == told
    assert all("98 % of epsilon, on 7 pairs" in line and "1 in 8" in line for line in close)


def over(number: int, route: dict[str, str], violation: float) -> TrialRecord:
    return record(number, route, None, outcome=TrialOutcome.INFEASIBLE, violation=violation)


def test_a_violation_is_put_on_the_worst_value_in_its_route() -> None:
    works = [record(n, {f"k{n}": "1"}, 0.0) for n in range(2, 10)]
    slight = [over(20 + n, {"k0": "1", f"k{2 + n}": "1"}, 0.7) for n in range(5)]
    infinite = [over(30 + n, {"k1": "1", f"k{2 + n}": "1"}, 6.0) for n in range(3)]
    both = over(40, {"k0": "1", "k1": "1"}, 6.0)
    failures = failures_of(view_of(*works, *slight, *infinite, both))
    told = {value.knob: (value.over, value.excused) for value in failures.blamed}
    assert told == {"k0": (6, 1), "k1": (4, 0)}
    lines = failures_words(failures)
    assert "k0=1 surely costs too much accuracy: 5 of 5 that ran with it (1 more had" in lines[-2]
    assert failures.ended == ": 9 over epsilon or a limit"


def test_a_way_to_fail_is_called_the_only_one_where_it_is() -> None:
    works = [record(n, {f"k{n}": "1"}, 0.0) for n in range(2, 10)]
    bad = [broken(20 + n, {"k0": "1", f"k{2 + n}": "1"}) for n in range(5)]
    late = replace(broken(30, {"k0": "1", "k9": "1"}), outcome=TrialOutcome.TIMED_OUT)
    always = failures_words(failures_of(view_of(*works, *bad)))
    mostly = failures_words(failures_of(view_of(*works, *bad, late)))
    assert "k0=1 surely breaks routes: 5 of 5 with it failed, always: build failed." in always
    assert "k0=1 surely breaks routes: 6 of 6 with it failed, mostly: build failed." in mostly
    assert mostly[0] == "6 of 14 trials cannot ship: 6 failed."


def test_slow_trials_are_at_the_edge_of_the_picture_and_counted() -> None:
    told = history([1.0, 1.005, 0.99, 0.85, 0.5])
    assert told.gain_range == pytest.approx((0.96, 1.02))
    assert [point.number for point in told.slower] == [3, 4]
    assert slower_words(told) == "2 trials, at the edge, are slower than 0.96x"
    figure = history_figure(told)
    heights = [y for trace in figure.data if trace.name == "ok" for y in trace.y]
    assert sorted(heights)[:3] == [pytest.approx(0.96), pytest.approx(0.96), 0.99]


def test_the_default_is_told_from_routes_without_effect() -> None:
    idle = {"unchanged": True}
    view = view_of(record(0, {}, 0.0, **idle), record(1, {"k0": "1"}, 0.0, **idle))
    assert history_words(history_of(view)) == (
        "2 trials: the default itself (trial 0), 1 no effect. None was measured faster than the default."
    )


def test_effects_are_told_in_percent_of_the_latency() -> None:
    view = view_of(*measured({"k0=1": math.log(1.2), "k1=1": math.log(0.8)}, 120, 0.001, 3))
    lines = effects_words(effects_of(view), failures_of(view))
    assert re.search(r"Pays, in latency: k1=1 -(20\.0|19\.9) %\.", lines[0])
    assert re.search(r"Costs, in latency: k0=1 \+(20\.0|19\.9) %\.", lines[1])


def test_a_winner_is_told_plainly(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.FINISHED).root)
    assert view.result is not None
    engine = view.result.engine_gain
    assert engine is not None
    brief = summarize(view).brief
    facts = dict(brief.facts)
    assert list(facts) == ["Deploy", "Latency", "Expect", "Accuracy", "Device", "Spent"]
    assert brief.lead == (
        f"{engine.value:.3f}x faster than the default: 2.5 ms becomes {2.5 / engine.value:.4g} ms."
    )
    assert facts["Deploy"].startswith("`finished.study/winner/engine.json`, but first check it")
    for part in (
        "apply",
        "--metric=linf",
        "--epsilon=0.001",
        "--inputs=YOUR_INPUTS",
        view.result.route,
    ):
        assert part in facts["Deploy"]
    assert facts["Expect"].index(f"{engine.value:.3f}x") < facts["Expect"].index("engine gain")
    assert "loss 0.0006 against epsilon 0.001 (linf), on 1 synthetic pair" in facts["Accuracy"]
    assert facts["Device"].startswith("Simulated")
    assert "linf is the largest absolute difference." in brief.meanings


def test_real_inputs_and_devices_ask_for_no_check(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.FINISHED).root)
    assert view.result is not None
    settings = {**view.settings, "backend": "onnxruntime"}
    real = replace(
        view,
        document={**view.document, "settings": settings},
        result=replace(view.result, provisional=False),
        manifest={**view.manifest, "files": {**view.manifest["files"], "load_winner.py": ""}},
        points={"default": "x 1x3x8x8"},
    )
    facts = dict(summarize(real).brief.facts)
    assert facts["Deploy"] == (
        "`finished.study/winner/engine.json`. `finished.study/winner/load_winner.py` loads it."
    )
    assert "on 1 real pair" in facts["Accuracy"]
    assert facts["Latency"].endswith("of one inference, default (x 1x3x8x8).")
    assert "Device" not in facts


def test_shapes_are_read_from_what_was_prepared(study_of: StudyOf, tmp_path: Path) -> None:
    root = tmp_path / "shapes.study"
    shutil.copytree(study_of(Kind.ONE_TRIAL).root, root)
    (root / "references").mkdir()
    points = [{"name": "small", "shapes": {"x": [1, 3, 8, 8], "scale": []}}]
    (root / "references" / "workload.json").write_text(json.dumps({"points": points}))
    assert read_study(root).points == {"small": "x 1x3x8x8, scale scalar"}
    (root / "references" / "workload.json").write_text("[]")
    assert read_study(root).points == {}


def test_no_gain_names_the_best_candidate_and_how_many_it_was_chosen_from(
    study_of: StudyOf,
) -> None:
    view = read_study(study_of(Kind.NO_GAIN).root)
    summary = summarize(view)
    routes = [item for item in view.records if len(item.route)]
    compared = sum(item.outcome is TrialOutcome.FEASIBLE for item in routes)
    gain = summary.confirmation.builds[0].gain
    over = summary.failures.over
    assert tradeoff_words(summary.tradeoff) == (
        f"{compared + 1} trials with both a latency and a loss, the default among them ({over} "
        "more were too inaccurate to be timed): all are within epsilon, so no measured speed was "
        "given up for accuracy."
    )
    assert 0 < compared < len(routes)
    assert re.fullmatch(
        r"No gain of 1\.01x or more: best candidate 1\.00\dx \(95 % interval 0\.\d+ to 1\.\d+, 1 "
        rf"fresh build a side\), {compared} of {len(routes)} routes were compared, "
        rf"{len(routes) - compared} failed or broke epsilon; keep the default\.",
        summary.headline.sentence,
    )
    assert confirmation_words(summary.confirmation) == (
        f"1 fresh build was made: the best gave {gain:.4f}x, less than the 1.01x that ships, so "
        "no more followed."
    )


def test_one_figure_is_given_for_sustained_load(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.FINISHED).root)
    assert view.result is not None
    assert view.result.sustained_gain is not None
    builds = summarize(view).confirmation.builds
    told = [build.gain for build in builds if build.phase == "sustained"]
    assert told == [view.result.sustained_gain.value]


def test_the_machine_is_told_with_units_and_drift_only_where_there_is_some() -> None:
    def seen(*figures: float) -> tuple[str, ...]:
        trials = tuple(range(len(figures)))
        baseline = Series("baseline_ms", "median of the baseline, ms", trials, figures)
        power = Series("power_w", "power, W", trials, (290.0, 310.0))
        return machine_words(MachineState((power,), baseline, (), measured=len(figures)))

    assert seen(2.5, 2.501) == (
        "The baseline held still beside 2 measured trials, at 2.5 ms.",
        "Power: 290 to 310 W.",
    )
    assert seen(2.5, 2.6)[0].startswith("The baseline took 2.5 to 2.6 ms beside")


def test_noise_that_hides_a_gain_is_said_and_not_taken_for_none(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.NO_GAIN).root)
    assert view.result is not None
    wide = replace(view, result=replace(view.result, route_gain=Gain(1.0, 0.95, 1.07, 5)))
    assert summarize(wide).headline.sentence.endswith(
        "; the measurements were too noisy to tell, so try again on a quiet machine."
    )
    slowest = next(item for item in view.records if len(item.route) and item.value_ms)
    noisy = replace(slowest, half_width=0.2, value_ms=view.baseline_ms)
    once = replace(view, records=(view.records[0], noisy), runs=())
    assert "too noisy to tell" in summarize(once).headline.sentence


def test_a_study_from_before_findings_were_kept_keeps_its_own_words(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.NO_GAIN).root)
    assert view.result is not None
    older = replace(view, result=replace(view.result, finding="", sentence="Nothing better."))
    assert summarize(older).headline.sentence == "Nothing better; keep the default."


def test_knobs_of_the_fastest_trial_that_do_not_ship_are_named(study_of: StudyOf) -> None:
    view = read_study(study_of(Kind.FINISHED).root)
    page = html_report(view)
    fastest = best_feasible(view.records)
    assert fastest is not None
    assert f"The fastest trial, {fastest.number}, had more knobs." in page
    assert view.result is not None
    dropped = set(str(fastest.route).split()) - set(view.result.route.split())
    told = page.partition("had more knobs.")[2].partition("</p>")[0]
    assert dropped
    assert all(word in told for word in dropped)


def test_what_is_kept_of_a_study_is_told_from_its_figures(
    study_of: StudyOf, tmp_path: Path
) -> None:
    """As studies are kept in a repository: lines of trials, verdict and manifest, no engine."""
    whole = study_of(Kind.FINISHED).root
    root = tmp_path / "kept.study"
    root.mkdir()
    write_report(whole)
    for name in ("study.toml", "platform.json", "result.json", "trials.jsonl"):
        shutil.copy(whole / name, root / name)
    shutil.copy(whole / "winner" / "manifest.json", root / "manifest.json")
    kept, live = read_study(root), read_study(whole)
    assert kept.problems == ()
    assert [item.route for item in kept.records] == [item.route for item in live.records]
    assert kept.baseline_ms == live.baseline_ms
    told, known = summarize(kept), summarize(live)
    check(told)
    assert told.history.points == known.history.points
    assert told.headline.accuracy == known.headline.accuracy
    assert told.headline.deploy.startswith("Nothing from this folder")
    assert "damaged" not in told.headline.sentence
    (root / "trials.jsonl").write_text('{"number": 0}\n')
    assert "is damaged" in read_study(root).problems[0]
