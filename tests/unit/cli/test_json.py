"""Data for programs: strict JSON with the keys that the documentation names, and exit codes."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.cli import doctor
from smart_tuner.cli.gpus import nvidia_gpus
from smart_tuner.cli.output import print_json
from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import BackendNotFound
from smart_tuner.knobs.read import read_database
from smart_tuner.report.reading import read_study
from smart_tuner.report.status import StudyStatus
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import TuneResult
from smart_tuner.study.verify import Verification
from smart_tuner.trial.record import trial_from_json
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.cli.calling import REPLAY, call

if TYPE_CHECKING:
    from pathlib import Path


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_study_ends_with_a_page_to_look_at(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "faster than the default" in page
    assert "speed" in page.partition("<script")[0]
    view = read_study(finished)
    assert {run.phase for run in view.runs} >= {"finalist", "report"}
    assert all(run.blocks or run.unchanged for run in view.runs)
    assert len(view.noise) == 1


def names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_tune(finished: Path) -> None:
    data = strict((finished.parent / "tune.json").read_text(encoding="utf-8"))
    assert set(data) == names(TuneResult)
    assert data["study"] == str(finished)
    assert data["verdict"] == "winner"
    assert data["route"] == "-speed=fast"
    assert data["route_gain"]["low"] > 1.4
    assert data["trials"]["feasible"] == 1


def test_status(finished: Path) -> None:
    ended = call("status", finished, "--json")
    data = strict(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert set(data) == names(StudyStatus)
    assert data["state"] == "finished"
    assert data["best_gain"] == pytest.approx(1.49, abs=0.02)


def test_verify(finished: Path) -> None:
    ended = call("verify", finished, "--rounds", 2, "--json")
    data = strict(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert set(data) == names(Verification) | {"holds"}
    assert data["holds"] is True
    assert data["route"] == "-speed=fast"
    assert set(data["gain"]) == {"value", "low", "high", "samples"}


def test_verify_ends_with_1_when_there_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = Gain(1.5, 1.4, 1.6, 5), Gain(1.0, 0.0, math.inf, 1)
    found = Verification("-speed=fast", now, 0, before=before, agrees=False, rebuilt=True)
    monkeypatch.setattr("smart_tuner.cli.verify.verify", lambda *_, **__: found)
    ended = call("verify", "study")
    assert ended.code == 1
    assert ended.out.startswith(
        "The route -speed=fast, built anew: now 1.000x (no interval from 1 sample); when the "
        "study ended 1.5"
    )
    assert "No gain is proven here today." in ended.out
    assert strict(call("verify", "study", "--json").out)["gain"]["high"] == "inf"


def test_verify_ends_with_1_when_the_route_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Gain(1.5, 1.4, 1.6, 5)
    found = Verification("-speed=fast", None, 5, before=before, agrees=False, rebuilt=True)
    monkeypatch.setattr("smart_tuner.cli.verify.verify", lambda *_, **__: found)
    ended = call("verify", "study")
    assert ended.code == 1
    assert ended.out.startswith("The route -speed=fast, built anew, does not work here any more")


@pytest.mark.parametrize(
    ("route", "outcome", "code"),
    [("", "feasible", 0), ("-grave=yes", "build_failed", 1)],
)
def test_apply(route: str, outcome: str, code: int, here: Path) -> None:
    ended = call("apply", "model.onnx", *REPLAY, "--route", route, "--json")
    data = strict(ended.out)
    assert ended.code == code
    assert data["outcome"] == outcome
    assert trial_from_json(data).outcome is TrialOutcome(outcome)


def test_apply_for_people(here: Path) -> None:
    ended = call("apply", "model.onnx", *REPLAY, "--route", "-speed=fast", "--out", "engine")
    assert ended.code == 0
    assert "route: -speed=fast\noutcome: ok\n" in ended.out
    assert "gain at default: 1.49" in ended.out
    assert "engine: engine\n" in ended.out
    assert [path.name for path in (here / "engine").iterdir()] != []


def test_knobs(here: Path) -> None:
    words = ("knobs", "--backend", "replay", "--model", "model.onnx")
    ended = call(*words, "--json")
    strict(ended.out)
    assert [knob.name for knob in read_database(ended.out)] == ["speed", "grave"]
    some = call(*words, "grave", "--json")
    assert [knob.name for knob in read_database(some.out)] == ["grave"]
    (here / "saved.json").write_text(ended.out)
    again = call("knobs", "--database", "saved.json", "--json")
    assert again.out == ended.out


def test_knobs_for_people(here: Path) -> None:
    ended = call("knobs", "--backend", "replay", "--model", "model.onnx")
    assert ended.code == 0
    assert "speed = slow | fast\n    How fast it goes, [bold]really[/bold].\n" in ended.out
    assert "2 of 2 knobs" in ended.out


def test_no_knob_found_ends_with_1(here: Path) -> None:
    for words in (("gone",), ("gone", "--json")):
        ended = call("knobs", "--backend", "replay", "--model", "model.onnx", *words)
        assert ended.code == 1
        assert ended.err == ""


def test_routes() -> None:
    words = ("routes", "--expression", "-execution_mode=[sequential|parallel]", "--mode", "full")
    data = strict(call(*words, "--json").out)
    assert data == {"count": 2, "mode": "full", "routes": ["", "-execution_mode=parallel"]}
    shown = call(*words).out
    assert shown == "2 build routes would be tried:\n[0] (default)\n[1] -execution_mode=parallel\n"


def test_routes_are_counted_beyond_what_is_listed() -> None:
    values = "|".join(map(str, range(1, 251)))
    text = f"-session:dynamic_block_base=[{values}]"
    ended = call("routes", "--expression", text)
    lines = ended.out.splitlines()
    assert lines[0] == "251 build routes would be tried:"
    assert lines[-1] == "... and 151 more"
    assert strict(call("routes", "--expression", text, "--json").out)["routes"][-1].endswith(
        "=250"
    )


def findings(*words: str) -> tuple[int, dict[str, dict[str, str]]]:
    ended = call("doctor", "--json", *words)
    data = strict(ended.out)
    assert all(set(item) == {"subject", "state", "text"} for item in data)
    assert {item["state"] for item in data} <= {"ok", "note", "missing"}
    return ended.code, {item["subject"]: item for item in data}


def test_doctor() -> None:
    code, found = findings()
    assert code == 0
    assert found["backend onnxruntime"]["state"] == "ok"
    assert found["backend replay"]["state"] == "note"
    assert "smart-tuner" in found["backend tensorrt"]["text"]
    assert any(subject.startswith("NVIDIA GPU") for subject in found)


def test_doctor_ends_with_3_when_nothing_can_be_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise BackendNotFound(f"{name} needs a runtime: pip install it.")

    monkeypatch.setattr(doctor, "query_platform", gone)
    code, found = findings()
    assert code == 3
    assert found["backend onnxruntime"]["state"] == "missing"
    assert "pip install" in found["backend onnxruntime"]["text"]
    assert call("doctor").code == 3


def test_gpus_are_read_from_the_driver(tmp_path: Path) -> None:
    for bus in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / bus).mkdir()
        text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 10\n"
        (tmp_path / bus / "information").write_text(text)
    assert nvidia_gpus(tmp_path) == ("NVIDIA H200", "NVIDIA H200")


def test_gpus_are_asked_of_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_gpus(tmp_path / "gone") == ()
    tool.write_text("#!/bin/sh\necho 'NVIDIA A100'\n")
    tool.chmod(0o755)
    assert nvidia_gpus(tmp_path / "gone") == ("NVIDIA A100",)
    tool.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
    assert nvidia_gpus(tmp_path / "gone") == ()


def test_numbers_that_json_lacks_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": (float("inf"), [float("-inf")]), "b": float("nan"), "é": 1.5})
    assert strict(capsys.readouterr().out) == {"a": ["inf", ["-inf"]], "b": "nan", "é": 1.5}


def test_a_pretender_is_installed() -> None:
    assert set(doctor.PRETENDERS) == {load_backend(name).name for name in doctor.PRETENDERS}


def test_a_finished_study_has_its_report(finished: Path) -> None:
    report = (finished / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# model.onnx on simulated\n")
    assert "| `y` | " in report
    assert "-grave=yes" in report
    rows = [strict(line) for line in (finished / "trials.jsonl").read_text().split("\n")[:-1]]
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert {row["outcome"] for row in rows} == {"feasible", "build_failed"}
    assert rows[0]["route"] == ""
