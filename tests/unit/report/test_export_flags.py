"""Settings and shapes as flags of trtexec, by version."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.workload import Workload, WorkloadPoint
from smart_tuner.report.export.flags import Flags, trtexec_flags
from smart_tuner.report.export.shape_flags import profile_shapes, shape_flags
from smart_tuner.report.export.winner import Winner
from smart_tuner.study.files.folder import StudyFolder
from tests.fake_tensorrt.backend import FakeTensorRtBackend
from tests.fake_tensorrt.scenario import VARIABLE, Scenario

STATIC = (TensorSpec("x", "float32", (1, 3, 8, 8)),)
FREE = (TensorSpec("x", "float32", ("n", 3, None, None)), TensorSpec("ids:0", "int64", (2,)))


def workload(inputs: tuple[TensorSpec, ...], *points: dict[str, tuple[int, ...]]) -> Workload:
    spec = ModelSpec(
        path=Path("/m.onnx"),
        sha256="",
        size_bytes=1,
        inputs=inputs,
        outputs=(TensorSpec("y", "float32", ("n", 5)), TensorSpec("z", "float16", (1,))),
        ir_version=8,
        opsets={},
        operators={},
    )
    return Workload(
        spec,
        tuple(
            WorkloadPoint(f"p{index}", 1.0, shapes, (), synthetic=True)
            for index, shapes in enumerate(points)
        ),
    )


def winner(version: str = "tensorrt 11.1.0", shapes: Workload | None = None) -> Winner:
    manifest = {"platform": {"backend_version": version}, "base": {}, "route": ""}
    default = workload(STATIC, {"x": (1, 3, 8, 8)})
    return Winner(StudyFolder(Path("/s")), {}, manifest, shapes or default)


def flags(version: str = "tensorrt 11.1.0", **settings: str) -> Flags:
    named = {name.replace("__", ":"): value for name, value in settings.items()}
    return trtexec_flags(winner(version), named)


ALWAYS_11 = ("--avgTiming=1", "--includeDataTransfers")


def test_what_trtexec_does_otherwise_by_default_is_always_said() -> None:
    assert flags().words == ALWAYS_11
    assert flags("tensorrt 10.3.0").words == ("--avgTiming=1", "--stronglyTyped")
    assert flags("tensorrt 8.6.0").words == ("--avgTiming=1",)
    assert flags(builder__avg_timing_iterations="4", io="device").words == ("--avgTiming=4",)
    assert "--noDataTransfers" in flags("tensorrt 8.6.0", io="device").words


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("builder:optimization_level", "5", "--builderOptimizationLevel=5"),
        ("builder:max_aux_streams", "2", "--maxAuxStreams=2"),
        ("builder:max_num_tactics", "8", "--maxTactics=8"),
        ("builder:l2_limit_for_tiling", "1048576", "--l2LimitForTiling=1048576"),
        ("builder:tiling_optimization_level", "moderate", "--tilingOptimizationLevel=2"),
        ("builder:workspace_mib", "256", "--memPoolSize=workspace:256"),
        ("flag:tf32", "off", "--noTF32"),
        ("flag:sparse_weights", "on", "--sparsity=enable"),
        ("flag:direct_io", "on", "--directIO"),
        ("flag:distributive_independence", "on", "--distributiveIndependence"),
        ("refit", "on", "--refit"),
        ("strip_plan", "on", "--stripWeights"),
        ("version_compatible", "on", "--versionCompatible"),
        ("hardware_compatibility", "ampere_plus", "--hardwareCompatibilityLevel=ampere+"),
        ("plugins", "/a.so", "--staticPlugins=/a.so"),
        ("streams", "4", "--infStreams=4"),
        ("launch", "enqueue", "--noCudaGraph"),
        ("tactic_source:jit_convolutions", "off", "--tacticSources=-JIT_CONVOLUTIONS"),
        ("preview:runtime_activation_resize_10_10", "on", "--preview=+runtimeActivationResize"),
    ],
)
def test_a_setting_with_a_flag(name: str, value: str, word: str) -> None:
    found = trtexec_flags(winner(), {name: value})
    assert found.without == {}
    assert [item for item in found.words if item not in ALWAYS_11] == [word]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("builder:max_aux_streams", "auto"), ("builder:workspace_mib", "auto")),
        *(("flag:tf32", "on"), ("flag:sparse_weights", "off"), ("flag:strict_nans", "off")),
        *(("refit", "off"), ("hardware_compatibility", "none"), ("streams", "1")),
        *(("weight_streaming_budget", "off"), ("launch", "graph"), ("io", "host")),
    ],
)
def test_a_setting_that_asks_for_the_default_needs_none(name: str, value: str) -> None:
    assert trtexec_flags(winner(), {name: value}) == Flags(ALWAYS_11, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("flag:strict_nans", "on"), ("flag:fp16", "on"), ("cold_l2", "on")),
        *(("tactic_source:cublas", "on"), ("preview:profile_sharing_0806", "on")),
        *(("compute_capability", "80"), ("states", "a:b"), ("something:new", "1")),
    ],
)
def test_a_setting_without_a_flag_is_listed(name: str, value: str) -> None:
    found = trtexec_flags(winner(), {name: value})
    assert found.words == ALWAYS_11
    assert list(found.without) == [f"{name}={value}"]


def test_older_versions_have_precision_flags_and_library_tactics() -> None:
    found = flags(
        "tensorrt 8.6.0",
        flag__fp16="on",
        flag__enable_tactic_heuristic="on",
        tactic_source__cublas="off",
        tactic_source__cudnn="on",
        preview__profile_sharing_0806="on",
        launch="graph",
    )
    assert found.without == {}
    assert set(found.words) == {
        *("--avgTiming=1", "--fp16", "--heuristic", "--useCudaGraph"),
        *("--tacticSources=-CUBLAS,+CUDNN", "--preview=+profileSharing0806"),
    }


def test_every_builder_knob_of_the_backend_has_its_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(Scenario().write(tmp_path / "scenario.json")))
    knobs = [knob for knob in FakeTensorRtBackend().knobs() if knob.source == "builder"]
    assert len(knobs) > 10
    for knob in knobs:
        for value in knob.choices[1:]:
            found = trtexec_flags(winner(), {knob.name: value})
            assert found.without == {}
            assert set(found.words) - set(ALWAYS_11), f"{knob.name}={value}"


def test_weakly_typed_networks_of_version_10() -> None:
    assert "--stronglyTyped" not in flags("tensorrt 10.3.0", flag__fp16="on").words


def test_weight_streaming() -> None:
    words = flags(weight_streaming_budget="auto").words
    assert words[-2:] == ("--allowWeightStreaming", "--weightStreamingBudget=-1")


def test_formats_are_listed_for_every_tensor() -> None:
    text = "x:fp16:hwc8 z:fp16:chw"
    new, old = flags(io_formats=text), flags("tensorrt 10.3.0", io_formats=text)
    assert {"--inputIOFormats=hwc8", "--outputIOFormats=chw,chw"} <= set(new.words)
    assert list(new.without) == ["types in io_formats"]
    assert {"--inputIOFormats=fp16:hwc8", "--outputIOFormats=fp32:chw,fp16:chw"} <= set(old.words)
    assert list(flags(io_formats="gone:fp16:chw").without) == ["io_formats=gone:fp16:chw"]


class TestShapes:
    A, B = {"x": (1, 3, 8, 8), "ids:0": (2,)}, {"x": (4, 3, 4, 16), "ids:0": (2,)}

    def test_static_models_take_none(self) -> None:
        assert shape_flags(workload(STATIC, {"x": (1, 3, 8, 8)}), {}) == ([], "")

    def test_one_point_needs_one_flag(self) -> None:
        assert shape_flags(workload(FREE, self.A), {}) == (["--shapes=x:1x3x8x8"], "")

    def test_several_points_span_a_profile(self) -> None:
        found, _ = shape_flags(workload(FREE, self.A, self.B), {})
        assert found == [
            *("--minShapes=x:1x3x4x8", "--optShapes=x:1x3x8x8", "--maxShapes=x:4x3x8x16"),
            "--shapes=x:1x3x8x8",
        ]

    def test_the_base_may_widen_it(self) -> None:
        found, _ = shape_flags(workload(FREE, self.A), {"max_shapes": "x:8x3x8x8 ids:0:2"})
        assert "--maxShapes=x:8x3x8x8" in found
        widened = profile_shapes(workload(FREE, self.A), {"max_shapes": "x:8x3x8x8 ids:0:2"})
        assert widened["max"] == {"x": (8, 3, 8, 8), "ids:0": (2,)}

    def test_a_profile_for_each_point(self) -> None:
        found, _ = shape_flags(workload(FREE, self.A, self.B), {"profiles": "per_point"})
        assert found[:2] == ["--profile=0", "--minShapes=x:1x3x8x8"]
        assert "--profile=1" in found
        assert found[-2:] == ["--useProfile=0", "--shapes=x:1x3x8x8"]

    def test_a_name_that_trtexec_cannot_hold_is_said(self) -> None:
        odd = (TensorSpec("a,b", "float32", (None,)),)
        assert shape_flags(workload(odd, {"a,b": (1,)}), {}) == (
            [],
            "trtexec cannot name the input 'a,b'",
        )
