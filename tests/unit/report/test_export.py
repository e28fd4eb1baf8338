"""``smart-tuner export``: the winner of a study of TensorRT, pretended, and one of ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import pytest

from smart_tuner.backends.onnxruntime.loader import loader_source
from smart_tuner.backends.onnxruntime.settings import SessionSettings
from smart_tuner.knobs.read import bundled_database
from smart_tuner.model.tensors import save_tensors
from smart_tuner.report.export.runner_onnxruntime import session_runner
from smart_tuner.report.export.runners import runner_source
from smart_tuner.report.export.tensors import winner_tensors
from smart_tuner.report.export.winner import read_winner
from smart_tuner.route.expression import parse_expression
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.cached_trials import cached_trials
from smart_tuner.storages.tuning_cache import read_tuning_cache
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.tune import tune
from tests.fake_tensorrt.fake_cuda import FakeCuda, Status
from tests.fake_tensorrt.fake_cuda_engine import FakeEngine, FakeModule
from tests.unit.backends.tensorrt.running import any_batch
from tests.unit.cli.calling import Ended, call
from tests.unit.report.pretend_tensorrt import compiler

if TYPE_CHECKING:
    from tests.conftest import MakeOnce

BACKEND = "tests.unit.report.pretend_tensorrt:PretendTensorRt"


def make_study(folder: Path) -> None:
    """A finished study with a winner."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    model = write_simulated_model(folder, compiler(), seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.setattr("smart_tuner.study.proof.finalists.SHORTLIST", 1)
        patch.setattr("smart_tuner.study.proof.finalists.REPORT_ROUNDS", 2)
        patch.setattr("smart_tuner.study.proof.confirm.SUSTAINED_BLOCK_SECONDS", 1000.0)
        result = tune(
            model,
            backend=BACKEND,
            metric="linf",
            sampler="fast",
            trials=8,
            budget=200,
            seed=1,
            study=folder / "model.study",
        )
    assert result.verdict is Verdict.WINNER
    assert result.route == "-copy_ppg=off"


@pytest.fixture(scope="session")
def origin(make_once: MakeOnce) -> Path:
    """That study, made once; nothing in it may be changed."""
    return make_once("pretended TensorRT", make_study)


@pytest.fixture
def here(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that study in the current folder."""
    place = tmp_path / "here"
    shutil.copytree(origin, place)
    settings = place / "model.study" / "study.toml"
    settings.write_text(settings.read_text().replace(str(origin), str(place)))
    monkeypatch.chdir(place)
    return place


def export(form: str, *words: str) -> Path:
    ended = call("export", form, "model.study", *words)
    assert (ended.code, ended.err) == (0, ""), ended
    return Path(f"model.{form}")


def refused(*words: str, code: int = 2) -> str:
    """The one line of a call that goes wrong and leaves nothing behind."""
    before = sorted(Path().rglob("*"))
    ended: Ended = call(*words)
    assert ended.code == code, ended
    assert ended.err.count("\n") == 1, ended.err
    assert sorted(Path().rglob("*")) == before
    return ended.err


def change(place: Path, **values: Any) -> None:
    path = place / "model.study" / "winner" / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, value in values.items():
        known = manifest.get(name)
        manifest[name] = {**known, **value} if isinstance(known, dict) else value
    path.write_text(json.dumps(manifest))


class TestTrtexec:
    def test_route_and_expressions_are_single_lines(self, here: Path) -> None:
        place = export("trtexec")
        assert (place / "route.txt").read_bytes() == b"-copy_ppg=off\n"
        assert (place / "winner_expression.txt").read_bytes() == b"-copy_ppg=[on|off]\n"
        text = (place / "expression.txt").read_text()
        assert text.count("\n") == 1
        assert "kgen:topk_algo" not in text  # open: trtexec cannot sweep it
        parsed = parse_expression(text, bundled_database())
        assert [item.knob.name for item in parsed.items] == [
            *("copy_ppg", "kgen:tiling", "mha_fusion:v1", "tactic:splitk"),
        ]

    def test_the_command_rebuilds_the_winner(self, here: Path) -> None:
        change(here, base={"refit": "on", "launch": "enqueue", "cold_l2": "on"})
        ended = call("export", "trtexec", "model.study", "--json")
        data = json.loads(ended.out)
        assert list(data["without"]) == ["cold_l2=on"]
        assert data["files"][-2:] == ["README.md", "SHA256SUMS"]
        script = Path("model.trtexec/trtexec.sh").read_text()
        words = shlex.split(script.splitlines()[-1])
        assert words == [
            *("exec", "trtexec", f"--onnx={here}/model.onnx", "--saveEngine=engine.plan"),
            *("--avgTiming=1", "--includeDataTransfers", "--noCudaGraph", "--refit"),
            *("--setBuildRoute=-copy_ppg=off", "$@"),
        ]

    def test_route_knobs_of_the_base_are_part_of_it(self, here: Path) -> None:
        change(here, base={"tactic:splitk": "off"})
        place = export("trtexec")
        assert (place / "route.txt").read_text() == "-tactic:splitk=off -copy_ppg=off\n"
        assert (place / "winner_expression.txt").read_text() == "-copy_ppg=[on|off]\n"
        found = cached_trials(read_tuning_cache(place / "tuning_cache.jsonl"))
        assert found.baseline
        assert dict(found.baseline.row.settings)["tactic:splitk"] == "off"

    def test_an_open_knob_of_the_winner_is_not_swept(self, here: Path) -> None:
        change(here, route="-copy_ppg=off -kgen:topk_algo=16")
        place = export("trtexec")
        expected = "-copy_ppg=[on|off] -kgen:topk_algo=16"
        assert (place / "winner_expression.txt").read_text() == f"{expected}\n"
        assert "-kgen:topk_algo=16 " in (place / "expression.txt").read_text()
        for name in ("winner_expression.txt", "expression.txt"):
            parse_expression((place / name).read_text(), bundled_database())

    def test_a_version_without_routes_needs_flags_only(self, here: Path) -> None:
        settings = here / "model.study" / "study.toml"
        settings.write_text(settings.read_text().replace("PretendTensorRt", "PretendOldTensorRt"))
        change(
            here,
            route="-builder:optimization_level=4",
            platform={"backend_version": "tensorrt 8.6.0"},
        )
        ended = call("export", "trtexec", "model.study", "--json")
        data = json.loads(ended.out)
        assert data["files"] == ["trtexec.sh", "README.md", "SHA256SUMS"]
        assert data["notes"] == ["tensorrt 8.6.0 has no build routes: flags say it all."]
        script = Path("model.trtexec/trtexec.sh").read_text()
        assert "--builderOptimizationLevel=4" in script
        assert "setBuildRoute" not in script

    def test_the_command_survives_a_shell(self, here: Path) -> None:
        odd = here / "it's $HOME; `x` [a]"
        odd.mkdir()
        shutil.move("model.onnx", odd)
        shutil.move("model.onnx.replay.json", odd)
        settings = here / "model.study" / "study.toml"
        settings.write_text(settings.read_text().replace(str(here), str(odd)))
        script = export("trtexec") / "trtexec.sh"
        (here / "trtexec").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (here / "trtexec").chmod(0o755)
        path = f"{here}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            ["sh", script, "--verbose"],
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        lines = ran.stdout.splitlines()
        assert lines[0] == f"--onnx={odd}/model.onnx"
        assert lines[-2:] == ["--setBuildRoute=-copy_ppg=off", "--verbose"]

    def test_the_cache_says_what_the_study_found(self, here: Path) -> None:
        cache = read_tuning_cache(export("trtexec") / "tuning_cache.jsonl")
        assert cache.dropped == {}
        assert cache.header
        assert (cache.header.metric, cache.header.model) == ("linf", f"{here}/model.onnx")
        assert cache.header.our_epsilon == pytest.approx(1e-3)
        found = cached_trials(cache)
        assert {str(trial.route): trial.outcome.value for trial in found.trials} == {
            "": "feasible",
            "-copy_ppg=off": "feasible",
            "-kgen:tiling=0": "infeasible",
            "-kgen:tiling=1": "infeasible",
            "-kgen:topk_algo=16": "feasible",
            "-mha_fusion:v1=off": "build_failed",
            "-tactic:splitk=off": "feasible",
        }
        fastest = found.fastest
        assert fastest
        assert found.changed(fastest) == "-copy_ppg=off"
        assert found.apparent_gain == pytest.approx(np.exp(0.2), rel=0.01)

    def test_the_cache_has_trtexecs_keys_in_its_order(self, here: Path) -> None:
        path = export("trtexec") / "tuning_cache.jsonl"
        golden = Path(__file__).parents[2] / "golden" / "trtexec-fast.jsonl"
        for ours, theirs in zip(
            path.read_text().splitlines(), golden.read_text().splitlines(), strict=False
        ):
            assert list(json.loads(ours)) == list(json.loads(theirs))
            assert json.dumps(json.loads(ours), separators=(",", ":")) == ours

    def test_trials_with_builder_knobs_are_left_out_and_counted(self, here: Path) -> None:
        ended = call("export", "trtexec", "model.study")
        assert "note: trials that turned builder knobs as well: 1." in ended.out

    def test_kernel_timings_go_along(self, here: Path) -> None:
        (here / "model.study" / "winner" / "timing.cache").write_bytes(b"timings")
        files = {"timing.cache": hashlib.sha256(b"timings").hexdigest()}
        change(here, files=files, engine={"timing_cache": "timing.cache"})
        place = export("trtexec")
        assert (place / "timing.cache").read_bytes() == b"timings"
        assert "--timingCacheFile=timing.cache" in (place / "trtexec.sh").read_text()

    def test_without_the_backend_the_knobs_are_those_of_the_shipped_list(self, here: Path) -> None:
        settings = here / "model.study" / "study.toml"
        settings.write_text(settings.read_text().replace(BACKEND, "gone"))
        ended = call("export", "trtexec", "model.study", "--json")
        assert ended.code == 0
        assert "backend gone does not work here" in json.loads(ended.out)["notes"][0]
        assert Path("model.trtexec/route.txt").read_text() == "-copy_ppg=off\n"


class TestTorchTensorRt:
    def test_settings_and_inputs(self, here: Path) -> None:
        route = "-builder:optimization_level=4 -copy_ppg=off"
        change(here, route=route, base={"flag:tf32": "off", "builder:workspace_mib": "64"})
        ended = call("export", "torch-tensorrt", "model.study")
        assert ended.code == 0
        names: dict[str, Any] = {}
        source = Path("model.torch-tensorrt/torch_tensorrt_settings.py").read_text()
        exec(compile(source, "settings", "exec"), names)
        assert names["SETTINGS"] == {
            "require_full_compilation": True,
            "build_route": "-copy_ppg=off",
            "disable_tf32": True,
            "workspace_size": 64 << 20,
            "optimization_level": 4,
        }
        assert names["INPUTS"] == {"x": ({"shape": (1, 16)}, "float32")}

    def test_what_it_lacks_is_listed(self, here: Path) -> None:
        change(here, base={"cold_l2": "on", "refit": "off"})
        ended = call("export", "torch-tensorrt", "model.study", "--json")
        assert list(json.loads(ended.out)["without"]) == ["cold_l2=on"]


class TestTriton:
    def test_a_repository_of_a_plan(self, here: Path) -> None:
        place = export("triton")
        shipped = next((here / "model.study" / "winner").glob("engine.*"))
        assert (place / "model" / "1" / "model.plan").read_bytes() == shipped.read_bytes()
        text = (place / "model" / "config.pbtxt").read_text()
        assert "tensorrt 11.1.0 only" in text
        assert [line for line in text.splitlines() if not line.startswith("#")] == [
            'platform: "tensorrt_plan"',
            'backend: "tensorrt"',
            'default_model_filename: "model.plan"',
            "max_batch_size: 0",
            "input [",
            '  { name: "x" data_type: TYPE_FP32 dims: [ 1, 16 ] }',
            "]",
            "output [",
            '  { name: "y" data_type: TYPE_FP32 dims: [ 1, 16 ] }',
            "]",
            "instance_group [ { count: 1 kind: KIND_GPU } ]",
        ]
        assert "--disable-auto-complete-config" in (place / "README.md").read_text()

    def test_a_profile_that_spans_a_range_has_free_sizes(self, here: Path) -> None:
        change(here, base={"max_shapes": "x:8x16", "launch": "graph"})
        text = (export("triton") / "model" / "config.pbtxt").read_text()
        assert 'name: "x" data_type: TYPE_FP32 dims: [ -1, 16 ]' in text
        assert 'name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ]' in text
        assert "optimization { cuda { graphs: true } }" in text

    def test_types_and_layouts_are_those_of_the_engine(self, here: Path) -> None:
        change(here, base={"io_formats": "x:fp16:chw y:int8:chw32"})
        text = (export("triton") / "model" / "config.pbtxt").read_text()
        assert '{ name: "x" data_type: TYPE_FP16 dims: [ 1, 16 ] }' in text
        assert "TYPE_INT8 dims: [ 1, 16 ] is_non_linear_format_io: true }" in text

    @pytest.mark.parametrize(("version", "kind"), [("8.6.0", "INT32"), ("10.3.0", "INT64")])
    def test_old_versions_narrow_integers(self, version: str, kind: str, here: Path) -> None:
        change(here, platform={"backend_version": f"tensorrt {version}"})
        winner = read_winner(Path("model.study"))
        ids = {"x": np.zeros((1, 16), np.int64)}
        for pair in winner.workload.points[0].pairs:
            save_tensors(pair.inputs, ids)
        (tensor,) = winner_tensors(winner).inputs
        assert tensor.dtype == kind.lower()


class TestLoader:
    def test_the_measured_engine_goes_along(self, here: Path) -> None:
        place = export("loader", "--for", "cuda-python")
        winner = here / "model.study" / "winner"
        for path in winner.iterdir():
            assert (place / path.name).read_bytes() == path.read_bytes()
        compile((place / "run_winner.py").read_text(), "run_winner", "exec")

    @pytest.mark.parametrize("library", ["cuda-python", "torch"])
    def test_its_source_is_python_that_names_the_sdk(self, library: str) -> None:
        source = runner_source(library, "engine.plan", "tensorrt_rtx")
        compile(source, "run_winner", "exec")
        assert "import tensorrt_rtx as trt\n" in source
        assert source.startswith(f'"""Runs engine.plan with {library}.')

    def test_it_runs_an_engine_with_cuda_python(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over the SDK and the CUDA runtime in memory that the backend's own runner is tested on."""
        cuda = FakeCuda()
        module = FakeModule(cuda)
        engine = FakeEngine(any_batch(), cuda, SimpleNamespace(log=lambda *_: None))
        loader = types.ModuleType("load_winner")
        loader.load = lambda: engine  # type: ignore[attr-defined]
        for name, fake in (
            ("tensorrt", module),
            ("load_winner", loader),
            ("cuda", types.ModuleType("cuda")),
            ("cuda.bindings", SimpleNamespace(runtime=cuda)),
        ):
            monkeypatch.setitem(sys.modules, name, fake)
        names: dict[str, Any] = {}
        source = runner_source("cuda-python", "engine.plan", "tensorrt")
        exec(compile(source, "run_winner", "exec"), names)
        winner = names["Winner"]()
        assert (winner.inputs, winner.outputs) == (["x"], ["y"])
        before = cuda.used_bytes
        for size in (1, 3):
            x = np.arange(4 * size, dtype=np.float64).reshape(size, 4)
            (y,) = winner({"x": x}).values()
            assert y.dtype == np.float32
            assert y.tolist() == (2 * x).tolist()
        with pytest.raises(ValueError, match=r"x cannot have the shape \(1, 7\)"):
            winner({"x": np.zeros((1, 7))})
        cuda.fail["cudaMalloc"] = Status.cudaErrorMemoryAllocation
        with pytest.raises(RuntimeError, match="cudaErrorMemoryAllocation"):
            winner({"x": np.zeros((1, 4))})
        assert cuda.used_bytes == before

    def test_a_winner_without_a_loader_says_so(self, here: Path) -> None:
        path = here / "model.study" / "winner" / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["files"]["load_winner.py"]
        path.write_text(json.dumps(manifest))
        assert "holds no load_winner.py" in refused("export", "loader", "model.study")


def test_a_study_of_tensorrt_rtx_has_a_loader_only(here: Path) -> None:
    change(here, platform={"backend_version": "tensorrt-rtx 1.4.0"})
    for form in ("trtexec", "torch-tensorrt", "triton"):
        assert "one of tensorrt_rtx" in refused("export", form, "model.study")
    assert (export("loader", "--for", "torch") / "run_winner.py").is_file()


class TestOnnxRuntime:
    @pytest.fixture
    def there(self, here: Path) -> Path:
        """The same study, its winner a tuned session."""
        settings = SessionSettings(
            graph_optimization_level="extended",
            execution_mode="parallel",
            intra_threads=2,
            inter_threads=3,
            switches=(("enable_cpu_mem_arena", False), ("enable_mem_pattern", True)),
            disabled_optimizers=("NchwcTransformer",),
            config_entries=(("session.intra_op.allow_spinning", "0"),),
        )
        engine = here / "model.study" / "winner" / "engine.json"
        engine.write_text(json.dumps({"settings": settings.to_json()}))
        change(
            here,
            platform={"backend_version": "onnxruntime 1.32.0"},
            files={"engine.json": hashlib.sha256(engine.read_bytes()).hexdigest()},
        )
        return here

    def test_a_repository_of_a_session(self, there: Path) -> None:
        ended = call("export", "triton", "model.study", "--json")
        assert ended.code == 0
        assert list(json.loads(ended.out)["without"]) == [
            *("optimizer NchwcTransformer off", "session.intra_op.allow_spinning=0"),
        ]
        place = Path("model.triton/model")
        assert (place / "1" / "model.onnx").read_bytes() == Path("model.onnx").read_bytes()
        text = (place / "config.pbtxt").read_text()
        assert 'backend: "onnxruntime"' in text
        assert "kind: KIND_CPU" in text
        assert "optimization { graph { level: 1 } }" in text
        found = dict(re.findall(r'key: "(\w+)" value: \{ string_value: "(\w+)" }', text))
        assert found == {
            "intra_op_thread_count": "2",
            "inter_op_thread_count": "3",
            "execution_mode": "1",
            "enable_mem_arena": "0",
            "enable_mem_pattern": "1",
        }

    def test_options_of_the_cuda_provider_go_along(self, there: Path) -> None:
        options = (("enable_cuda_graph", "1"), ("use_tf32", "0"))
        settings = SessionSettings(provider="cuda", provider_options=options)
        engine = there / "model.study" / "winner" / "engine.json"
        engine.write_text(json.dumps({"settings": settings.to_json()}))
        digest = hashlib.sha256(engine.read_bytes()).hexdigest()
        change(
            there,
            platform={"backend_version": "onnxruntime-gpu 1.31.1"},
            files={"engine.json": digest},
        )
        ended = call("export", "triton", "model.study", "--json")
        assert list(json.loads(ended.out)["without"]) == ["cuda:enable_cuda_graph=1"]
        text = Path("model.triton/model/config.pbtxt").read_text()
        assert "kind: KIND_GPU" in text
        assert 'name: "cuda" parameters { key: "use_tf32" value: "0" }' in text

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("trtexec",), "Route flags for trtexec need a study of tensorrt"),
            (("torch-tensorrt",), "need a study of tensorrt"),
            (("loader", "--for", "torch"), "Loaders for torch need"),
        ],
    )
    def test_what_makes_no_sense_is_one_sentence(
        self, there: Path, words: tuple[str, ...], what: str
    ) -> None:
        form, *rest = words
        line = refused("export", form, "model.study", *rest)
        assert what in line
        assert "one of onnxruntime" in line

    @pytest.mark.parametrize("on_gpu", [False, True])
    def test_the_loader_runs_the_session(self, tmp_path: Path, on_gpu: bool) -> None:
        """With the real runtime, in a process of its own."""
        model = write_simulated_model(tmp_path, compiler())
        source = loader_source(model, SessionSettings(intra_threads=1), "onnxruntime")
        (tmp_path / "load_winner.py").write_text(source)
        (tmp_path / "run_winner.py").write_text(session_runner("engine.json", on_gpu=on_gpu))
        code = (
            "import numpy, run_winner\nrun_winner.DEVICE = 'cpu'\nwinner = run_winner.Winner()\n"
            "for value in (5, 3):\n"
            "    x = numpy.full((1, 16), value, numpy.float32)\n"
            "    y = winner({'x': x})['y']\n"
            "print(winner.inputs, float(y.sum()))\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert ran.stdout.splitlines()[-1] == "['x'] 144.0"


class TestRefusals:
    def test_what_is_there_stays_unless_told_otherwise(self, here: Path) -> None:
        place = export("trtexec")
        (place / "mine.txt").write_text("mine")
        (place / "route.txt").write_text("old")
        assert "--force" in refused("export", "trtexec", "model.study")
        assert (place / "route.txt").read_text() == "old"
        export("trtexec", "--force")
        assert (place / "route.txt").read_text() == "-copy_ppg=off\n"
        assert (place / "mine.txt").read_text() == "mine"

    def test_a_study_that_ships_nothing_ends_with_1(self, here: Path) -> None:
        shutil.rmtree(here / "model.study" / "winner")
        assert "ships nothing" in refused("export", "triton", "model.study", code=1)
        (here / "model.study" / "result.json").unlink()
        assert "no verdict yet" in refused("export", "triton", "model.study", code=1)

    def test_another_model_is_refused(self, here: Path) -> None:
        shutil.copy(here / "model.onnx", here / "kept.onnx")
        with (here / "model.onnx").open("ab") as file:
            file.write(b"\x12\x00")
        refused("export", "triton", "model.study")

    def test_a_missing_model_is_named(self, here: Path) -> None:
        (here / "model.onnx").unlink()
        assert "model.onnx" in refused("export", "triton", "model.study")

    @pytest.mark.parametrize("route", [3, None, {}])
    def test_a_damaged_manifest_is_one_line(self, here: Path, route: object) -> None:
        change(here, platform={"backend_version": None}, gain={"route_gain": route})
        assert "ship anew" in refused("export", "triton", "model.study")
