"""``smart-tuner import``: a summary, trials in our form, and a model to replay them."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from smart_tuner.backends.replay import ReplayBackend
from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import BuildError
from smart_tuner.model.load import load_model
from smart_tuner.report.tuning_cache import CacheSummary
from smart_tuner.route.build_route import BuildRoute
from tests.unit.cli.calling import call

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for path in GOLDEN.glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_a_summary_says_what_there_is_and_that_it_is_no_proof(here: Path) -> None:
    with (here / "trtexec-mixed.jsonl").open("a") as file:
        file.write('# note\n{"iter":5,"build_r')
    ended = call("import", "trtexec", "trtexec-mixed.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "trtexec-mixed.jsonl: trtexec tuning cache, tuner 2.19.45, mixed search",
        "  kept: 9 rows on 6 routes (3 ok, 1 over epsilon, 2 build failed)",
        "  dropped: 1 no JSON, 1 torn last line",
        "  accuracy: l0 within 0.1",
        "  baseline: 0.02839 ms  -conv_lowering=on -copy_ppg=on -kgen:tiling=2 -peep:max=2",
        "  fastest: 0.0281 ms, 1.010x  -copy_ppg=off -peep:max=2",
        "  noise: times of one route differ by up to 1 % (routes with several rows: 3)",
        (
            "  not proven: each time is one mean over one run of one build, warm-up included, and "
            "the fastest of many is partly luck"
        ),
        (
            "  to measure it: smart-tuner apply /models/m.onnx --backend tensorrt "
            "'--route=-copy_ppg=off -peep:max=2'"
        ),
    ]


def test_the_summary_as_data(here: Path) -> None:
    ended = call("import", "torch-tensorrt", "torch-tensorrt.jsonl", "--json")
    data = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert set(data) == {field.name for field in dataclasses.fields(CacheSummary)}
    assert data["origin"] == "Torch-TensorRT"
    assert data["epsilon"] == 0.5
    assert data["apparent_gain"] == 1.2
    assert data["trials"] == {"feasible": 2, "infeasible": 1}


def test_a_cache_in_which_nothing_worked_ends_with_1(here: Path) -> None:
    (here / "bad.jsonl").write_text('{"build_route":"-a=1","crash":true,"error_message":"x"}\n')
    ended = call("import", "trtexec", "bad.jsonl")
    assert ended.code == 1
    assert "fastest: none, no route worked" in ended.out
    assert "baseline: not there" in ended.out


def test_a_run_that_was_killed_at_once_is_a_cache_too(here: Path) -> None:
    header = (here / "trtexec-fast.jsonl").read_text().splitlines()[0]
    (here / "begun.jsonl").write_text(f"{header}\n")
    ended = call("import", "trtexec", "begun.jsonl", "--json")
    data = json.loads(ended.out)
    assert ended.code == 1
    assert (data["rows"], data["trials"], data["has_header"]) == (0, {}, True)
    assert data["fastest_route"] is data["baseline_ms"] is data["apparent_gain"] is None


def test_trials_are_kept_in_the_form_of_a_study(here: Path) -> None:
    assert call("import", "trtexec", "trtexec-mixed.jsonl", "--out", "trials.jsonl").code == 0
    rows = [json.loads(line) for line in (here / "trials.jsonl").read_text().splitlines()]
    assert [row["route"] for row in rows][:4] == [
        *("", "-kgen:tiling=0", "-kgen:tiling=1", "-copy_ppg=off"),
    ]
    assert rows[0]["gain"] == 1.0
    assert rows[2]["outcome"] == "infeasible"
    assert rows[2]["violation"] == pytest.approx(0.845, abs=0.001)
    assert rows[1]["reason"] == "trtexec tuning cache, phase 1, iter 1, median of 2 rows"
    assert {row["half_width"] for row in rows} == {None}  # nobody measured twice


def test_the_trials_can_be_replayed(here: Path) -> None:
    ended = call("import", "trtexec", "trtexec-mixed.jsonl", "--replay", "replayed")
    assert ended.code == 0
    assert "--backend replay --metric linf --epsilon 0.1" in ended.err
    backend, model = ReplayBackend(), here / "replayed" / "model.onnx"
    assert {knob.name: knob.default for knob in backend.knobs(load_model(model))} == {
        "conv_lowering": "on",
        "copy_ppg": "on",
        "kgen:tiling": "2",
        "peep:max": "2",
    }
    inputs = {"x": np.ones((1, 16), np.float32)}
    outputs = {}
    for value in ("2", "0", "1"):
        route = BuildRoute((("kgen:tiling", value),) if value != "2" else ())
        engine = backend.build(BuildRequest(model, route), here)
        with backend.load(engine) as runner:
            outputs[value] = runner.infer(inputs)["y"]
    exact = outputs["2"].astype(float)
    differences = [float(abs(outputs[value].astype(float) - exact).max()) for value in ("0", "1")]
    assert differences == pytest.approx([0.01, 0.7], rel=1e-3)
    with pytest.raises(BuildError):
        backend.build(
            BuildRequest(model, BuildRoute((("copy_ppg", "off"), ("kgen:tiling", "0")))), here
        )


def test_what_is_there_is_kept_unless_told_otherwise(here: Path) -> None:
    (here / "trials.jsonl").write_text("mine")
    (here / "folder").mkdir()
    (here / "folder" / "mine.txt").write_text("mine")
    words = ("import", "trtexec", "trtexec-fast.jsonl")
    for option, name in (("--out", "trials.jsonl"), ("--replay", "folder")):
        ended = call(*words, option, name)
        assert ended.code == 2
        assert "--force" in ended.err
        assert call(*words, option, name, "--force").code == 0
    assert (here / "trials.jsonl").read_text() != "mine"
    assert sorted(os.listdir(here / "folder")) == [  # noqa: PTH208, names only
        *("mine.txt", "model.onnx", "model.onnx.replay.json"),
    ]


def test_a_replay_without_a_baseline_leaves_nothing(here: Path) -> None:
    rows = (
        '{"tuning_expr":"-a=[1|2]","default_build_route":"-a=0"}',
        '{"build_route":"-a=1","gpu_time":1}',
    )
    (here / "full.jsonl").write_text("\n".join(rows))
    ended = call("import", "trtexec", "full.jsonl", "--replay", "r", "--out", "o.jsonl")
    assert ended.code == 2
    assert not (here / "r").exists()
    assert not (here / "o.jsonl").exists()
