"""What a study says of its values, and what several say together."""

import pytest

from smart_tuner.priors.attribute import attribute
from smart_tuner.priors.build import build_prior, merge_priors, only
from smart_tuner.priors.distance import Nearness
from smart_tuner.priors.fold import flipped_share, fold
from smart_tuner.priors.found import said_and_found
from smart_tuner.priors.use import believe
from tests.unit.priors.planting import Special, entry, prior, study

EFFECTS = {"k1": -0.1, "k2": -0.05, "k3": 0.08, "k4": 0.04}


def test_effects_failures_losses_and_idle_values_are_told_apart() -> None:
    found, noise = attribute(study("s", EFFECTS, Special(("k9",), ("k8",), ("k7",)), trials=160))
    for name, effect in EFFECTS.items():
        line = found[name, "on"]
        assert line.active > 0.9
        assert line.effect == pytest.approx(effect, abs=0.02)
    others = [line.active for (name, _), line in found.items() if name not in EFFECTS]
    assert sum(others) / len(others) < 0.1
    assert found["k9", "on"].failure > 0.7
    assert max(line.failure for (name, _), line in found.items() if name != "k9") < 0.3
    assert (found["k8", "on"].violation or 0) > 0.5
    assert found["k7", "on"].active <= 0.01
    assert 0.005 < noise < 0.02


def test_the_same_study_gives_the_same_evidence() -> None:
    assert attribute(study("s", EFFECTS)) == attribute(study("s", EFFECTS))


def everywhere(*signs: int) -> dict[tuple[str, str], tuple[float, float]]:
    made = prior(*(study(f"s{n}", {"k1": 0.08 * sign}, seed=n) for n, sign in enumerate(signs)))
    folded = fold(made, {s.id: 1.0 for s in made.studies}).values
    return {item: (found.active, found.faster) for item, found in folded.items()}


def test_several_studies_are_surer_than_one_and_signs_less_sure_than_what_matters() -> None:
    one, four = everywhere(-1)["k1", "on"], everywhere(-1, -1, -1, -1)["k1", "on"]
    mixed = everywhere(-1, 1, -1, 1)["k1", "on"]
    assert one[0] < four[0]
    assert 0.5 < one[1] < four[1] < 0.99
    assert mixed[0] == pytest.approx(four[0], abs=0.05)
    assert mixed[1] == pytest.approx(0.5, abs=0.1)
    idle = [
        active for (name, _), (active, _) in everywhere(-1, -1, -1, -1).items() if name != "k1"
    ]
    assert max(idle) < 0.2


def test_a_size_that_no_study_has_seen_is_marked_as_assumed() -> None:
    made = prior(*(study(f"s{n}", {"k1": -0.2}, seed=n) for n in range(3)))
    found = fold(made, {s.id: 1.0 for s in made.studies}).values["k1", "on"]
    assert found.gain_seen > 0.9
    assert found.loss_seen == 0.0
    assert found.chance_faster > 0.7 > 0.2 > found.chance_slower
    assert found.chance_faster + found.chance_slower == pytest.approx(found.active)
    assert found.harm < found.promise


def test_signs_that_differ_between_studies_are_believed_less_everywhere() -> None:
    steady = prior(*(study(f"s{n}", EFFECTS, seed=n) for n in range(4)))
    turned = {name: -effect for name, effect in EFFECTS.items()}
    flighty = prior(*(study(f"s{n}", (EFFECTS, turned)[n % 2], seed=n) for n in range(4)))
    weights = {f"s{n}": 1.0 for n in range(4)}
    assert flipped_share(steady, weights) < 0.2 < 0.45 < flipped_share(flighty, weights)


def test_weight_zero_is_as_if_the_study_were_not_there() -> None:
    both = prior(study("a", EFFECTS), study("b", {"k20": -0.2}, seed=1))
    alone = only(both, "a")
    assert fold(both, {"a": 1.0, "b": 0.0}).values == fold(alone, {"a": 1.0}).values
    assert fold(both, {}).values == {}


def test_a_prior_may_have_another_default() -> None:
    moved = study("b", EFFECTS, seed=1)
    turned = type(moved)(moved.entry, {**moved.choices, "k1": ("on", "off")}, moved.trials)
    merged = merge_priors([prior(study("a", EFFECTS)), prior(turned)])
    assert merged.knobs["k1"].default == "off"
    lines = merged.knobs["k1"].values["on"].evidence
    assert lines["a"].effect < -0.05
    assert "b" not in lines or lines["b"].effect == 0.0


def test_past_routes_are_stripped_of_what_did_nothing() -> None:
    made = prior(*(study(f"s{n}", {"k1": -0.2, "k2": -0.1}, seed=n) for n in range(3)))
    found = believe(made, tuple(Nearness(s, 1.0, ()) for s in made.studies))
    assert found.beliefs.routes
    assert all(set(route) <= {"k1", "k2"} for route in found.beliefs.routes)
    doubted = believe(made, found.studies, {"k1": "no such operator"})
    assert doubted.folded.values["k1", "on"].active < found.folded.values["k1", "on"].active / 2


def test_afterwards_it_is_said_what_became_of_each_claim() -> None:
    made = prior(
        *(
            study(
                f"s{n}", {"k1": -0.1, "k2": -0.1, "k3": -0.1}, Special(("k9",)), seed=n, trials=150
            )
            for n in range(3)
        )
    )
    said = fold(made, {s.id: 1.0 for s in made.studies}).values
    rows = said_and_found(
        said,
        study("now", {"k1": -0.1, "k2": 0.1, "k5": 0.1}, Special(("k9",)), trials=150, seed=7),
    )
    verdicts = {row.knob: row.verdict for row in rows}
    assert verdicts["k1"] == "confirmed"
    assert verdicts["k2"] == "other way round"
    assert verdicts["k3"] == "did not matter"
    assert verdicts["k5"] == "mattered after all"
    assert verdicts["k9"] == "confirmed"


def test_a_study_without_routes_teaches_nothing() -> None:
    from smart_tuner.errors import UserInputError
    from smart_tuner.priors.observed import Observation, ObservedStudy

    empty = ObservedStudy(entry("e"), {"k": ("a", "b")}, (Observation({}, 0.0, unchanged=True),))
    with pytest.raises(UserInputError, match="nothing but the default"):
        build_prior([empty])
