from __future__ import annotations

import json
from pathlib import Path

import pytest

from smart_tuner.bench.play import play
from smart_tuner.bench.recorded import label, load_recorded
from smart_tuner.bench.run import Task
from smart_tuner.bench.workloads import Workload
from smart_tuner.errors import UserInputError
from smart_tuner.report.jsonl import trial_row
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.description import Description, write_description
from smart_tuner.simulate.generators import make_compiler
from smart_tuner.storages.history import TrialRecord
from smart_tuner.trial.trial import TrialOutcome

STUDY = """
schema_version = 1

[space]
fusion = ["on", "off"]
"threads:intra" = ["4", "1", "2"]
order = ["default", "memory"]
"""


def write_study(folder: Path) -> Path:
    """What is kept of a study: settings, and trials as the report writes them."""
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    records = [TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 2.0)]
    for number in range(1, 13):
        slow = (("threads:intra", "1"),) if number % 2 else ()
        route = BuildRoute((("fusion", "off"), *slow)) if number % 3 else BuildRoute(slow)
        latency = 2.0 * (1.2 if number % 3 else 1.0) * (0.9 if slow else 1.0)
        if route:
            latency *= 1 + 0.0004 * (-1) ** (number // 2)
            records.append(TrialRecord(number, route, TrialOutcome.FEASIBLE, latency))
    broken = BuildRoute((("fusion", "off"), ("order", "memory")))
    records.append(TrialRecord(13, broken, TrialOutcome.BUILD_FAILED))
    lines = [trial_row(record, 2.0) for record in records]
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_a_study_becomes_a_compiler_with_its_effects(tmp_path: Path) -> None:
    compiler = load_recorded(write_study(tmp_path / "study"))
    assert compiler.latency_ms({}) == 2.0
    assert compiler.latency_ms({"fusion": "off"}) == pytest.approx(2.4, rel=0.01)
    assert compiler.latency_ms({"threads:intra": "1"}) == pytest.approx(1.8, rel=0.01)
    assert compiler.latency_ms({"threads:intra": "2"}) == 2.0
    assert compiler.failure({"order": "memory"}) is not None
    assert compiler.failure({"fusion": "off"}) is None
    assert compiler.attainable_gain() == pytest.approx(1 / 0.9, rel=0.01)


def test_a_table_is_replayed_and_what_is_not_in_it_does_not_build(t4_file: Path) -> None:
    compiler = load_recorded(t4_file)
    sizes = len(compiler.knobs[0].choices) * len(compiler.knobs[1].choices)
    run = play(Task("random-8", Workload(label(t4_file), 0, 2, str(t4_file)), 30))
    assert sizes == 6
    assert run.optimum == pytest.approx(-0.405465, abs=1e-5)  # ln(2 / 3)
    assert run.observed[-1] == pytest.approx(run.optimum)
    assert set(run.outcomes) <= {"feasible", "run_failed", "build_failed"}
    assert run.outcomes["build_failed"] > 0


def test_a_replay_description_is_read_too(tmp_path: Path) -> None:
    compiler = make_compiler("sparse", seed=1, knob_count=5)
    path = tmp_path / "model.onnx.replay.json"
    path.write_text(write_description(Description(compiler)))
    assert load_recorded(path) == compiler


def test_labels_tell_files_of_one_name_apart() -> None:
    assert label(Path("hub/convolution/A100_T4.json.gz")) == "convolution/A100_T4"
    assert label(Path("studies/epyc-2/silero-vad")) == "epyc-2/silero-vad"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("none.json", None),
        ("torn.json.gz", b"\x1f\x8b\x08\x00torn"),
        ("text.json", b"hello"),
        ("bytes.json", b"\xff\xfe"),
        ("empty.json", b'{"results": []}'),
        ("odd.json", json.dumps({"results": [{"configuration": {}}]}).encode()),
    ],
)
def test_what_is_no_record_is_one_clear_error(
    tmp_path: Path, name: str, data: bytes | None
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UserInputError) as caught:
        load_recorded(path)
    assert "\n" not in str(caught.value)
    assert name.split(".")[0] in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "trials"),
    [("", "{}"), (STUDY, "{}"), (STUDY, ""), (STUDY, '{"route": "-nope=1"}')],
)
def test_a_folder_that_holds_no_study_is_refused(
    tmp_path: Path, settings: str, trials: str
) -> None:
    (tmp_path / "study.toml").write_text(settings)
    (tmp_path / "trials.jsonl").write_text(trials)
    with pytest.raises(UserInputError):
        load_recorded(tmp_path)
