"""Parts of a build that no GPU is needed for: messages, evidence, checks before a plan is loaded."""

from __future__ import annotations

import gc
import json
import os
import signal
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.backends.tensorrt.artefact import Facts, fingerprint, write_layers
from smart_tuner.backends.tensorrt.loader import loader_source
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.network import parse_model
from smart_tuner.backends.tensorrt.plan import check_fit
from smart_tuner.backends.tensorrt.platform import Target, choose_target
from smart_tuner.backends.tensorrt.progress import Cancellation, Progress
from smart_tuner.backends.tensorrt.refit import refit_engine
from smart_tuner.backends.tensorrt.sdk import TENSORRT_RTX, Sdk, load_sdk
from smart_tuner.backends.tensorrt.settings import BuildSettings
from smart_tuner.backends.tensorrt.timing_cache import cache_keys
from smart_tuner.devices.cuda import CudaDevice
from smart_tuner.errors import BuildError, EnvironmentNotFit, RunError, UserInputError
from tests.fake_tensorrt.network import ParserError as NewParserError
from tests.fake_tensorrt.scenario import Scenario
from tests.fake_tensorrt.sdk import make_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.backends.tensorrt import api

H200 = CudaDevice(0, "NVIDIA H200", "GPU-1", "0000:00:00.0", "90", 50 << 20, 140 << 30)
BUILT = Target("NVIDIA H200", "90")


@pytest.fixture
def sdk() -> Sdk:
    return make_sdk(Scenario())


def facts(sdk: Sdk | str, **changes: Any) -> Facts:
    fields: dict[str, Any] = {"sdk": str(sdk), "target": BUILT, "plugins": {}, "settings": {}}
    return Facts(**(fields | changes))


# ---------------------------------------------------------------- finding the SDK


def test_an_sdk_that_is_not_installed_is_named_with_the_command() -> None:
    names = ("tensorrt_rtx", "no_such_bindings")
    if "tensorrt_rtx" in _installed():
        pytest.skip("the full package is installed")
    with pytest.raises(EnvironmentNotFit, match="TensorRT-RTX is not installed; install it: `pip"):
        load_sdk(names)


def test_an_sdk_that_does_not_load_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_rtx.py").write_text("raise OSError('libnvinfer.so.11: not found')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EnvironmentNotFit, match=r"does not load here \(broken_rtx: libnvinfer"):
        load_sdk(("tensorrt_rtx", "broken_rtx"))


def test_the_bindings_stand_in_for_the_package() -> None:
    found = load_sdk(TENSORRT_RTX)
    assert found.name == "tensorrt-rtx"
    assert str(found) == f"tensorrt-rtx {found.version}"


def _installed() -> set[str]:
    from importlib.util import find_spec

    return {name for name in TENSORRT_RTX if find_spec(name)}


# ---------------------------------------------------------------- what the compiler says


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "IBuilder::build: Error Code 4: API Usage Error (No profile. In check at /a/b.cpp:40)",
            "API Usage Error (No profile.",
        ),
        (
            "[checkMacros.cpp::catchCudaError::203] Error Code 1: Cuda Runtime (out of memory)",
            "out of memory: Cuda Runtime (out of memory)",
        ),
        ("something else", "something else"),
    ],
)
def test_reasons_are_readable(sdk: Sdk, line: str, said: str) -> None:
    log = make_log(sdk)
    _say(log, 1, line)
    assert log.reason() == said


def test_the_missing_driver_is_a_reason_only_where_there_is_no_other(sdk: Sdk) -> None:
    log = make_log(sdk)
    _say(log, 1, "CUDA driver version is insufficient for CUDA runtime version")
    assert log.reason().startswith("CUDA driver version is insufficient")
    _say(log, 1, "the real reason")
    assert log.reason() == "the real reason"


def test_warnings_count_where_nothing_worse_was_said_and_older_lines_can_be_left_out(
    sdk: Sdk,
) -> None:
    log = make_log(sdk)
    _say(log, 1, "an old error")
    since = log.position
    _say(log, 2, "a warning")
    _say(log, 4, "chatter")
    assert log.complaints(since) == ()
    assert log.reason(since) == "a warning"


def test_a_later_log_hears_what_goes_to_the_first_logger_of_the_process(sdk: Sdk) -> None:
    first = make_log(sdk).native
    second = make_log(sdk)
    gc.collect()
    first.log(1, "said to whoever came first")  # type: ignore[attr-defined]  # the SDK's class

    assert second.reason() == "said to whoever came first"


def _say(log: Any, severity: int, text: str) -> None:
    log.native.log(severity, text)


# ---------------------------------------------------------------- versions that tell less


@dataclass
class OldParserError:
    """A complaint of TensorRT 8.6: a number, but neither name nor operator."""

    number: int
    text: str

    def code(self) -> NewParserError:
        return NewParserError("UNSUPPORTED_NODE", "")

    def desc(self) -> str:
        return self.text

    def node(self) -> int:
        return self.number


def test_the_model_itself_names_a_node_that_the_parser_only_counts(
    sdk: Sdk, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Det", ["a"], ["y"], name="second"),
    ]
    path = _save(tmp_path, nodes)

    class OldParser:
        num_errors = 1

        def __init__(self, *_: object) -> None:
            """Takes any network."""

        def parse_from_file(self, model: str) -> bool:
            return model != str(path)

        def get_error(self, _index: int) -> OldParserError:
            return OldParserError(1, "Assertion failed: no importer")

    module = cast("Any", ModuleType("old"))
    vars(module).update(vars(sdk.module))
    module.OnnxParser = OldParser
    old = replace(sdk, module=module)
    log = make_log(old)
    with pytest.raises(BuildError) as caught:
        parse_model(old, old.module.Builder(log.native), log, path)
    assert "operator Det (node 'second'): no importer" in str(caught.value)


def _save(folder: Path, nodes: list[Any], *weights: Any) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        list(weights),
    )
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


# ---------------------------------------------------------------- engines of elsewhere


def test_an_engine_of_this_gpu_and_version_fits(sdk: Sdk) -> None:
    check_fit(sdk, H200, facts(sdk), BuildSettings())


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target("NVIDIA L4", "89"), "built for NVIDIA L4 (compute capability 89), here is NVIDIA"),
        (Target("NVIDIA H100", "90"), "built for NVIDIA H100 (compute capability 90), here is"),
        (Target("", "80", is_at_hand=False), "built for a GPU of compute capability 80, here is"),
    ],
)
def test_an_engine_of_another_gpu_is_refused_with_both_named(
    sdk: Sdk, target: Target, said: str
) -> None:
    with pytest.raises(RunError) as caught:
        check_fit(sdk, H200, facts(sdk, target=target), BuildSettings())
    assert said in str(caught.value)
    assert "NVIDIA H200 (compute capability 90)" in str(caught.value)


@pytest.mark.parametrize(
    ("level", "target"),
    [
        ("ampere_plus", Target("NVIDIA L4", "89")),
        ("same_compute_capability", Target("NVIDIA H100", "90")),
    ],
)
def test_compatible_engines_run_on_other_gpus(sdk: Sdk, level: str, target: Target) -> None:
    settings = BuildSettings(hardware_compatibility=level)
    check_fit(sdk, H200, facts(sdk, target=target), settings)


def test_an_engine_of_another_version_is_refused_unless_it_is_compatible(sdk: Sdk) -> None:
    other = facts("tensorrt 10.13.3.9")
    with pytest.raises(
        RunError, match=r"built with tensorrt 10\.13\.3\.9, tensorrt 11\.1\.0\.106"
    ):
        check_fit(sdk, H200, other, BuildSettings())
    check_fit(sdk, H200, other, BuildSettings(version_compatible=True))


def test_facts_come_back_from_disk_and_damage_is_said(sdk: Sdk, tmp_path: Path) -> None:
    plan = tmp_path / "engine.plan"
    written = facts(sdk, plugins={"/a.so": "12"}, settings={"launch": "graph"}, weights="34")
    assert Facts.read(plan) is None
    written.write(plan)
    assert Facts.read(plan) == written

    (tmp_path / "engine.json").write_text('{"schema": 1}')
    with pytest.raises(RunError, match=r"engine\.json does not describe an engine"):
        Facts.read(plan)


def test_a_compiler_that_builds_for_the_gpu_at_hand_only_says_so(sdk: Sdk) -> None:
    config = sdk.module.Builder(make_log(sdk).native).create_builder_config()
    with pytest.raises(UserInputError, match=r"compute_capability = 80: tensorrt 11\.1.* at hand"):
        choose_target(sdk, config, BuildSettings(compute_capability="80"))


# ---------------------------------------------------------------- evidence


def test_a_fingerprint_covers_the_plan_and_what_acts_beside_it(sdk: Sdk) -> None:
    plain = fingerprint("plan", facts(sdk))
    for settings in ({"flag:tf32": "off"}, {"launch": "graph"}):
        assert fingerprint("plan", facts(sdk, settings=settings)) == plain
    others = [
        fingerprint("other", facts(sdk)),
        fingerprint("plan", facts(sdk, settings={"weight_streaming_budget": "0"})),
        fingerprint("plan", facts(sdk, settings={"io": "device"})),
        fingerprint("plan", facts(sdk, plugins={"/a.so": "12"})),
        fingerprint("plan", facts(sdk, weights="34")),
        fingerprint("plan", facts("tensorrt 8.6.0")),
    ]
    assert len({plain, *others}) == len(others) + 1


class Inspected:
    """An engine whose inspector says a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def create_engine_inspector(self) -> Inspected:
        return self

    def get_engine_information(self, _form: object) -> str:
        return self._text


def test_layers_with_control_characters_are_read_all_the_same(sdk: Sdk, tmp_path: Path) -> None:
    plan = tmp_path / "engine.plan"
    text = '{"Layers": [{"Name": "a\x01b"}],\n "Bindings": ["x"]}'
    digest = write_layers(sdk, cast("api.CudaEngine", Inspected(text)), plan)
    same = write_layers(
        sdk,
        cast("api.CudaEngine", Inspected('{"Bindings": ["x"], "Layers": [{"Name": "a\x01b"}]}')),
        plan,
    )
    other = write_layers(sdk, cast("api.CudaEngine", Inspected('{"Layers": []}')), plan)

    assert digest == same != other
    write_layers(sdk, cast("api.CudaEngine", Inspected(text)), plan)
    layers = json.loads((tmp_path / "layers.json").read_text())
    assert layers == {"Layers": [{"Name": "a\x01b"}], "Bindings": ["x"]}


def test_layers_that_are_no_json_are_kept_as_they_are(sdk: Sdk, tmp_path: Path) -> None:
    plan = tmp_path / "engine.plan"
    assert write_layers(sdk, cast("api.CudaEngine", Inspected("Layer 1: conv")), plan)
    assert (tmp_path / "layers.json").read_text() == "Layer 1: conv"


# ---------------------------------------------------------------- timings


def test_the_keys_of_a_timing_cache_can_be_compared(sdk: Sdk, tmp_path: Path) -> None:
    cache = tmp_path / "timing.cache"
    cache.write_text(f"{sdk.version}\nconv 3x3\nrelu")
    assert cache_keys(sdk, cache) == frozenset({"conv 3x3", "relu"})


def test_what_is_no_timing_cache_of_this_version_has_no_keys(sdk: Sdk, tmp_path: Path) -> None:
    cache = tmp_path / "timing.cache"
    with pytest.raises(RunError, match=r"timing\.cache cannot be read: No such file"):
        cache_keys(sdk, cache)
    cache.write_text("8.6.0\nconv 3x3")
    with pytest.raises(
        RunError, match=r"timing\.cache is not one of tensorrt 11\.1\.0\.106: it is"
    ):
        cache_keys(sdk, cache)


def test_a_compiler_that_keeps_no_timings_tells_no_keys(tmp_path: Path) -> None:
    cache = tmp_path / "timing.cache"
    cache.write_bytes(b"anything")
    assert cache_keys(load_sdk(TENSORRT_RTX), cache) is None


# ---------------------------------------------------------------- weights that are put back


class Weights:
    """A refitter that takes weights of two names."""

    def __init__(self, *_: object, missing: tuple[str, ...] = ()) -> None:
        self.given: dict[str, Any] = {}
        self._missing = missing

    def get_all_weights(self) -> list[str]:
        return ["w", "b"]

    def set_named_weights(self, name: str, weights: Any) -> bool:
        self.given[name] = weights
        return True

    def get_missing_weights(self) -> list[str]:
        return sorted({"w", "b"} - self.given.keys())

    def refit_cuda_engine(self) -> bool:
        return not self.get_missing_weights()


@dataclass
class Refittable:
    """An engine that takes weights, or not."""

    refittable: bool = True


def _refitting(sdk: Sdk, refitter: Weights) -> Sdk:
    module = cast("Any", ModuleType("refitting"))
    vars(module).update(vars(sdk.module))
    module.Refitter = lambda *_: refitter
    return replace(sdk, module=module)


@pytest.mark.parametrize("names", [("w", "b"), ("w",)])
def test_a_refit_takes_every_weight_from_the_model(
    sdk: Sdk, tmp_path: Path, names: tuple[str, ...]
) -> None:
    weights = [numpy_helper.from_array(np.ones((4, 4), np.float32), name) for name in names]
    path = _save(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], *weights)
    refitter = Weights()
    old, engine = _refitting(sdk, refitter), cast("api.CudaEngine", Refittable())
    if len(names) == 2:
        refit_engine(old, engine, path, make_log(old))
        assert refitter.given.keys() == {"w", "b"}
    else:
        with pytest.raises(RunError, match=r"does not take the weights of .*, 1 weights are miss"):
            refit_engine(old, engine, path, make_log(old))


def test_an_engine_that_takes_no_weights_says_how_to_build_one(sdk: Sdk, tmp_path: Path) -> None:
    engine = cast("api.CudaEngine", Refittable(refittable=False))
    with pytest.raises(RunError, match="build it with refit = on or strip_plan = on"):
        refit_engine(sdk, engine, tmp_path / "model.onnx", make_log(sdk))


# ---------------------------------------------------------------- the end of a build


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_build_at_its_next_step(number: signal.Signals) -> None:
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with Cancellation() as cancellation:
            progress = Progress(cancellation)
            progress.phase_start("Building", None, 2)
            assert progress.step_complete("Building", 0)
            os.kill(os.getpid(), number)
            assert not progress.step_complete("Building", 1)
            progress.phase_finish("Building")
        assert cancellation.is_requested
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


# ---------------------------------------------------------------- what ships


@pytest.mark.parametrize(
    ("settings", "wanted", "unwanted"),
    [
        (BuildSettings(), ["trt.__version__ != VERSION", "!= CAPABILITY"], ["Refitter", "host_c"]),
        (
            BuildSettings(version_compatible=True, hardware_compatibility="ampere_plus"),
            ["engine_host_code_allowed = True", "int(capability()) < 80"],
            ["trt.__version__ != VERSION"],
        ),
        (BuildSettings(strip_plan=True), ["refit_from_file('/m.onnx')"], []),
    ],
)
def test_a_loader_checks_what_the_plan_depends_on(
    sdk: Sdk, tmp_path: Path, settings: BuildSettings, wanted: list[str], unwanted: list[str]
) -> None:
    source = loader_source(sdk, facts(sdk, plugins={"/p.so": "1"}), settings, tmp_path / "/m.onnx")

    compile(source, "load_winner.py", "exec")
    assert "smart_tuner." not in source
    assert "PLUGINS = ['/p.so']" in source
    assert [text for text in wanted if text not in source] == []
    assert [text for text in unwanted if text in source] == []
