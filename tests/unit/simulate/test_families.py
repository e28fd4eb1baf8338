"""Families of compilers share what they say they share."""

import itertools

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.effects import ValueEffect
from smart_tuner.simulate.families import Family, matters

Effects = dict[tuple[str, str], ValueEffect]


def large(family: Family, number: int) -> Effects:
    """What changes the latency of a member by enough to count."""
    effects = family.member(number).effects
    return {(e.knob, e.value): e for e in effects if abs(e.log_latency) >= 0.0095}


def test_a_member_is_always_the_same_and_members_differ() -> None:
    family = Family(3, 0.8, 0.15)
    assert family.member(1) == family.member(1)
    assert family.member(1) != family.member(2)
    assert family.member(1).knobs == family.member(2).knobs


@pytest.mark.parametrize(("shared", "flipped"), [(0.8, 0.15), (0.5, 0.35), (0.3, 0.5)])
def test_members_share_and_flip_as_much_as_they_should(shared: float, flipped: float) -> None:
    overlaps, differing, both = [], 0, 0
    for seed in range(12):
        members = [large(Family(seed, shared, flipped), number) for number in range(3)]
        for one, other in itertools.combinations(members, 2):
            common = one.keys() & other.keys()
            overlaps.append(2 * len(common) / (len(one) + len(other)))
            both += len(common)
            differing += sum(one[k].log_latency * other[k].log_latency < 0 for k in common)
    # By chance, unrelated members have a few values in common, too.
    assert shared - 0.05 < sum(overlaps) / len(overlaps) < shared + 0.15
    assert differing / both == pytest.approx(flipped, abs=0.09)


def test_families_of_different_seeds_have_nothing_in_common() -> None:
    one, other = large(Family(1, 0.8, 0.15), 0), large(Family(2, 0.8, 0.15), 0)
    assert len(one.keys() & other.keys()) < 0.3 * len(one)


def test_a_member_matters_in_as_many_values_as_any_sparse_compiler() -> None:
    for shared in (0.0, 0.5, 1.0):
        counts = [
            sum(matters(effect) for effect in Family(seed, shared, 0.2).member(0).effects)
            for seed in range(6)
        ]
        assert 25 < sum(counts) / len(counts) < 70


def test_impossible_families_are_refused() -> None:
    for figures in ((-1, 0.5, 0.1), (0, 1.5, 0.1), (0, 0.5, 0.6)):
        with pytest.raises(UserInputError, match="No such family"):
            Family(*figures)
