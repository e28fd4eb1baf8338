"""A backend that replays a compiler and says that it is TensorRT, with route and builder knobs."""

import dataclasses
from pathlib import Path

from smart_tuner.backends.replay import ReplayBackend
from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.model.spec import ModelSpec
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect

ROUTE_KNOBS = (
    Knob("copy_ppg", ("on", "off"), "on"),
    Knob("kgen:tiling", ("2", "0", "1"), "2"),
    Knob("kgen:topk_algo", ("0", "16"), "0"),
    Knob("mha_fusion:v1", ("on", "off"), "on"),
    Knob("tactic:splitk", ("on", "off"), "on"),
)
BUILDER_KNOBS = (Knob("builder:optimization_level", ("3", "4"), "3"),)
EFFECTS = (
    ValueEffect("copy_ppg", "off", log_latency=-0.2),
    ValueEffect("kgen:topk_algo", "16", log_latency=-0.1),
    ValueEffect("builder:optimization_level", "4", log_latency=-0.15),
    ValueEffect("kgen:tiling", "0", log_latency=-0.3, loss=1.0),
    ValueEffect("kgen:tiling", "1", log_latency=-0.3, failure=Failure.NAN),
    ValueEffect("mha_fusion:v1", "off", failure=Failure.BUILD_ERROR),
    ValueEffect("tactic:splitk", "off", log_latency=0.1),
)


def compiler() -> SimulatedCompiler:
    """Every kind of outcome, one knob at a time."""
    noise = Noise(build=0.0005, measurement=0.001, spike_rate=0)
    return SimulatedCompiler((*ROUTE_KNOBS, *BUILDER_KNOBS), effects=EFFECTS, noise=noise)


class PretendTensorRt(ReplayBackend):
    """TensorRT 11.1 on a GPU."""

    name = "pretend"

    def platform(self) -> Platform:
        return Platform("NVIDIA H200", "driver 580", "tensorrt 11.1.0", "2.19.45")

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        names = {knob.name for knob in ROUTE_KNOBS}
        knobs = tuple(
            dataclasses.replace(
                knob,
                source="build route" if knob.name in names else "builder",
                is_open=knob.name == "kgen:topk_algo",
            )
            for knob in super().knobs(model)
        )
        return KnobDatabase(knobs, "2.19.45")

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        engine = super().build(request, workdir)
        return dataclasses.replace(engine, loader="import tensorrt as trt\n\n\ndef load(): ...\n")


class PretendOldTensorRt(PretendTensorRt):
    """A version without build routes: every knob is the builder's."""

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        knobs = (dataclasses.replace(knob, source="builder") for knob in super().knobs(model))
        return KnobDatabase(tuple(knobs), "tensorrt 8.6.0")
