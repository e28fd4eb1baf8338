"""Comparing searches that begin from priors."""

from dataclasses import replace
from pathlib import Path

import pytest

from smart_tuner.bench.execute import RUNS_FILE
from smart_tuner.bench.families import Cell, FamilyComparison, compare_families, parse_cells
from smart_tuner.bench.family_runs import COLD, INVERTED, KINDS, WARM
from smart_tuner.bench.leave_one_out import leave_one_out
from smart_tuner.bench.play import play, play_with
from smart_tuner.bench.run import Run, Task
from smart_tuner.bench.workloads import Workload
from smart_tuner.errors import StudyMismatch, UserInputError
from smart_tuner.samplers.route_sampler.beliefs import Beliefs, ValueBelief

RECORDED = Path(__file__).parents[3] / "studies" / "onnxruntime-cpu" / "xeon-4"
SMALL = FamilyComparison(
    cells=(Cell(0.8, 0.15),),
    families=1,
    taught=40,
    trials=12,
    kinds=(COLD, WARM, INVERTED),
    targets=1,
    knobs=30,
)


def test_the_comparison_is_paired_kept_and_goes_on(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    summary = compare_families(SMALL, tmp_path, 1, lambda done, total: heard.append((done, total)))
    assert heard == [(0, 1), (1, 1)]
    gains = summary["gain"]
    assert isinstance(gains, dict)
    assert set(gains["80 % shared, 15 % flipped"]) == {COLD, WARM, INVERTED}
    text = (tmp_path / "families.md").read_text()
    assert "| 80 % shared, 15 % flipped | warm at 10 - cold at 10 | 1 |" in text
    again: list[tuple[int, int]] = []
    assert compare_families(SMALL, tmp_path, 1, lambda *both: again.append(both)) == summary
    assert again == [(1, 1)]
    _made_on_another_version(tmp_path / RUNS_FILE)
    with pytest.raises(StudyMismatch, match="another version"):
        compare_families(SMALL, tmp_path, 1, lambda *_: None)


def _made_on_another_version(runs: Path) -> None:
    first, *rest = map(Run.from_line, runs.read_text().splitlines())
    kept = (replace(first, digest="0" * 16), *rest)
    runs.write_text("".join(f"{run.to_line()}\n" for run in kept))


def test_a_cold_search_is_the_one_without_a_prior() -> None:
    task = Task("default", Workload("sparse", 5, 30), 12)
    plain = play(task)
    run, records = play_with(task, task.workload.compiler(), "default", None)
    assert (run.shipped, run.outcomes) == (plain.shipped, plain.outcomes)
    knob, value = records[1].route.settings[0]
    beliefs = Beliefs({(knob, value): ValueBelief(failure=0.95)})
    _, warned = play_with(task, task.workload.compiler(), "default", beliefs)
    assert [record.route for record in warned] != [record.route for record in records]


def test_recorded_studies_are_left_out_one_by_one(tmp_path: Path) -> None:
    places = [RECORDED / "magika", RECORDED / "ppocr-rec"]
    summary = leave_one_out(places, (1, 5, 0), tmp_path, 1, lambda *_: None)
    studies = summary["studies"]
    assert isinstance(studies, list)
    assert [study["study"] for study in studies] == ["xeon-4/magika", "xeon-4/ppocr-rec"]
    assert "of study xeon-4/ppocr-rec: same processor" in studies[0]["used"][0]
    text = (tmp_path / "left_out.md").read_text()
    assert text.count("| warm |") == 2
    taught_by_more = (*places, RECORDED / "densenet121")
    with pytest.raises(StudyMismatch, match="what taught them"):
        leave_one_out(taught_by_more, (1, 5, 0), tmp_path, 1, lambda *_: None)
    _made_on_another_version(tmp_path / RUNS_FILE)
    with pytest.raises(StudyMismatch, match="another version"):
        leave_one_out(places, (1, 5, 0), tmp_path, 1, lambda *_: None)
    with pytest.raises(UserInputError, match="at least two"):
        leave_one_out(places[:1], (1, 5, 0), tmp_path, 1, lambda *_: None)


def test_cells_are_read_strictly() -> None:
    assert parse_cells("80:15, 50:35,80:15") == (Cell(0.8, 0.15), Cell(0.5, 0.35))
    for text in ("80", "80:x", "80:90", ":", ""):
        with pytest.raises(UserInputError):
            parse_cells(text)
    assert COLD in KINDS
