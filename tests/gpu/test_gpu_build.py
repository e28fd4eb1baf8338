from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.plan import open_engine as open_plan
from smart_tuner.backends.tensorrt.refit import refit_engine
from smart_tuner.errors import RunError, UserInputError
from tests.gpu.comparing import assert_close, run_on_processor
from tests.gpu.gpu_models import NETWORKS, write_conv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.backends.tensorrt.backend import TensorRtBackend
    from smart_tuner.backends.tensorrt.runner import TensorRtRunner
    from tests.gpu.conftest import Build

    Expected = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.gpu


def outputs(installed: TensorRtBackend, build: Build, name: str, **settings: str) -> Any:
    runner: TensorRtRunner = installed.load(build(name, **settings))
    with runner:
        return runner.infer(NETWORKS[name].inputs[0])


def test_the_inspector_lists_the_layers(build: Build) -> None:
    text = (build("conv").path.parent / "layers.json").read_text()
    assert "Layers" in json.loads(text)


def test_an_engine_that_can_be_refitted_takes_other_weights(
    installed: TensorRtBackend, build: Build, expected: Expected, tmp_path: Path
) -> None:
    other = tmp_path / "other.onnx"
    write_conv(other, seed=40)
    inputs = NETWORKS["conv"].inputs[0]
    with installed.load(build("conv", refit="on", launch="enqueue")) as runner:
        assert_close(runner.infer(inputs), expected("conv"))
        loaded = runner._lanes[0]._loaded
        assert loaded.engine.refittable
        refit_engine(installed._find_sdk(), loaded.engine, other, loaded.log)
        assert_close(runner.infer(inputs), run_on_processor(other, inputs))


def test_an_engine_that_cannot_be_refitted_says_so(
    installed: TensorRtBackend, build: Build
) -> None:
    sdk = installed._find_sdk()
    log = make_log(sdk)
    _, loaded = open_plan(sdk, build("conv"), log)
    with pytest.raises(RunError, match="refit = on"):
        refit_engine(sdk, loaded, build("conv").request.model, log)


def test_a_stripped_plan_gets_its_weights_back(
    installed: TensorRtBackend, build: Build, expected: Expected
) -> None:
    if api.member(installed._find_sdk().module.BuilderFlag, "STRIP_PLAN") is None:
        with pytest.raises(UserInputError, match="no such builder flag"):
            build("conv", strip_plan="on")
        return
    assert (build("conv", strip_plan="on").size_bytes or 0) > 0
    assert_close(outputs(installed, build, "conv", strip_plan="on"), expected("conv"))


def test_an_input_in_another_order_is_read_right(
    installed: TensorRtBackend, build: Build, expected: Expected
) -> None:
    try:
        found = outputs(installed, build, "conv", io_formats="x:fp32:hwc")
    except UserInputError as error:
        pytest.skip(str(error))
    assert_close(found, expected("conv"))


def test_a_profile_for_each_point_runs_every_point(
    installed: TensorRtBackend, build: Build, expected: Expected
) -> None:
    with installed.load(build("mlp", profiles="per_point")) as runner:
        for index, inputs in enumerate(NETWORKS["mlp"].inputs):
            assert_close(runner.infer(inputs), expected("mlp", index))


def test_an_engine_of_another_gpu_is_refused(installed: TensorRtBackend, build: Build) -> None:
    engine = build("cache")
    facts = engine.path.with_name("engine.json")
    kept = facts.read_text()
    document = json.loads(kept)
    document["target"] |= {"name": "NVIDIA Other", "compute_capability": "50"}
    facts.write_text(json.dumps(document))
    try:
        with pytest.raises(RunError, match=r"built for NVIDIA Other.*build it again"):
            installed.load(engine)
    finally:
        facts.write_text(kept)
