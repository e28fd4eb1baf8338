from __future__ import annotations

from smart_tuner.knobs.groups import group_knobs
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database


def knob(name: str, source: str = "build route") -> Knob:
    return Knob(name, ("on", "off"), "on", source=source)


def test_knobs_are_grouped_by_source_and_by_a_prefix_that_two_of_them_share() -> None:
    groups = group_knobs(
        (knob("kgen:a"), knob("alone"), knob("copy"), knob("kgen:b"), knob("copy:part"))
    )
    found = [(group.title, [member.name for member in group.knobs]) for group in groups]
    assert found == [
        ("build route, kgen", ["kgen:a", "kgen:b"]),
        ("build route", ["alone"]),
        ("build route, copy", ["copy", "copy:part"]),
    ]


def test_one_prefix_of_two_sources_is_two_groups() -> None:
    groups = group_knobs(
        (knob("tactic:a"), knob("tactic:b"), knob("tactic:c", "builder"), knob("tactic:d", ""))
    )
    assert [group.title for group in groups] == ["build route, tactic", "builder", "knobs"]


def test_no_knob_of_the_real_list_gets_lost() -> None:
    database = bundled_database()
    groups = group_knobs(database)
    assert sum(len(group.knobs) for group in groups) == len(database) == 209
    assert {"build route, kgen", "build route, mha_fusion"} <= {group.title for group in groups}
