"""Every kind of knob really takes effect, proven on the runtime itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.onnxruntime.artefact import artefact_digest
from smart_tuner.backends.onnxruntime.resolve import resolve_settings
from smart_tuner.backends.onnxruntime.session import open_session
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue

    RunChild = Callable[..., tuple[str, str]]
    SaveModel = Callable[..., Path]

# Runs the model three times with the base in argv[2] and prints what `report` says.
CHILD = """
import json, os, resource, sys, time
import numpy as np
from smart_tuner.backends.onnxruntime.catalogue import load_catalogue
from smart_tuner.backends.onnxruntime.resolve import resolve_settings
from smart_tuner.backends.onnxruntime.session import run_options, session_options
from smart_tuner.route.build_route import BuildRoute
import onnxruntime
settings = resolve_settings(json.loads(sys.argv[2]), BuildRoute(), load_catalogue())
options = session_options(settings)
options.log_severity_level = int(sys.argv[3])
before = len(os.listdir("/proc/self/task"))
session = onnxruntime.InferenceSession(
    sys.argv[1],
    options,
    providers=["CPUExecutionProvider"],
    disabled_optimizers=list(settings.disabled_optimizers),
)
feeds = {i.name: np.full(i.shape, 3e-20, np.float32) for i in session.get_inputs()}
for _ in range(3):
    # An output that is kept would hold its piece of the arena.
    first = float(session.run(None, feeds, run_options(settings))[0].flat[0])
threads = len(os.listdir("/proc/self/task")) - before
started = time.process_time()
time.sleep(0.2)
spun = time.process_time() - started
resident = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
print(json.dumps({
    "threads": threads, "spun": spun, "resident": resident, "first": first,
}))
"""


class Observe:
    def __init__(self, run_child: RunChild) -> None:
        self._run_child = run_child

    def figures(self, model: Path, **base: str) -> dict[str, Any]:
        out, _ = self._run_child(CHILD, str(model), self._base(base), "3")
        figures: dict[str, Any] = json.loads(out)
        return figures

    def log(self, model: Path, **base: str) -> str:
        return self._run_child(CHILD, str(model), self._base(base), "0")[1]

    @staticmethod
    def _base(base: dict[str, str]) -> str:
        return json.dumps({name.replace("__", ":"): value for name, value in base.items()})


@pytest.fixture
def observe(run_child: RunChild) -> Observe:
    return Observe(run_child)


@pytest.fixture
def parallel_products(save_model: SaveModel) -> Path:
    """Two independent products that are large enough for several threads."""
    return save_model(
        [
            helper.make_node("MatMul", ["x", "x"], ["a"]),
            helper.make_node("MatMul", ["a", "x"], ["y"]),
            helper.make_node("MatMul", ["x", "x"], ["b"]),
            helper.make_node("MatMul", ["b", "b"], ["z"]),
        ],
        [("x", TensorProto.FLOAT, [256, 256])],
        [("y", TensorProto.FLOAT, [256, 256]), ("z", TensorProto.FLOAT, [256, 256])],
    )


@pytest.fixture
def large_intermediate(save_model: SaveModel) -> Path:
    """4 MiB and 64 MiB between a small input and small outputs."""
    sizes = {"few": 1 << 20, "many": 1 << 24}
    expand = [helper.make_node("Expand", ["x", name], [f"{name}-x"]) for name in sizes]
    reduce = [
        helper.make_node("ReduceMax", [f"{name}-x"], [f"{name}-y"], keepdims=0) for name in sizes
    ]
    return save_model(
        [*expand, *reduce],
        [("x", TensorProto.FLOAT, [1])],
        [(f"{name}-y", TensorProto.FLOAT, []) for name in sizes],
        {name: np.array([size], np.int64) for name, size in sizes.items()},
    )


def digest(model: Path, catalogue: Catalogue, **base: str) -> str:
    path = model.with_name("optimized.onnx")
    values = {name.replace("__", ":"): value for name, value in base.items()}
    open_session(model, resolve_settings(values, BuildRoute(), catalogue), save=path)
    return artefact_digest(path)


def test_switched_off_optimizers_do_not_run(convolution: Path, observe: Observe) -> None:
    line = "GraphTransformer ConvActivationFusion modified"
    assert line in observe.log(convolution)
    assert line not in observe.log(convolution, optimizer__ConvActivationFusion="off")


def test_switched_off_rules_do_not_rewrite(convolution: Path, catalogue: Catalogue) -> None:
    assert digest(convolution, catalogue, rule__ConvBNFusion="off") != digest(
        convolution, catalogue
    )


def test_every_graph_level_gives_its_own_graph(convolution: Path, catalogue: Catalogue) -> None:
    graphs = [
        digest(convolution, catalogue, graph_optimization_level=level)
        for level in ("disable", "basic", "extended", "all")
    ]
    assert len(set(graphs)) == len(graphs)


def test_graph_entries_change_the_graph(gelu: Path, catalogue: Catalogue) -> None:
    entry = "session:optimization.enable_gelu_approximation"
    assert digest(gelu, catalogue, **{entry: "on"}) != digest(gelu, catalogue)


def test_quantization_entries_change_the_graph(
    save_model: SaveModel, catalogue: Catalogue
) -> None:
    scale = {"s": np.float32(0.02), "z": np.uint8(128)}
    weights = {"w": np.eye(32, dtype=np.int8), "sw": np.float32(0.01), "zw": np.int8(0)}
    model = save_model(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"]),
            helper.make_node("MatMul", ["d", "v"], ["m"]),
            helper.make_node("QuantizeLinear", ["m", "s", "z"], ["n"]),
            helper.make_node("DequantizeLinear", ["n", "s", "z"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, [4, 32])],
        [("y", TensorProto.FLOAT, [4, 32])],
        {**scale, **weights},
    )
    entry = "session:disable_quant_qdq"
    assert digest(model, catalogue, **{entry: "on"}) != digest(model, catalogue)


def test_the_runtime_says_what_it_took(
    convolution: Path, observe: Observe, catalogue: Catalogue
) -> None:
    if catalogue.version != "onnxruntime 1.32.0":
        pytest.skip("the log is worded otherwise in other versions")
    said = {
        ("session:enable_cpu_mem_arena", "off"): "enable_cpu_mem_arena:0",
        ("session:enable_mem_pattern", "off"): "enable_mem_pattern:0",
        ("session:enable_mem_reuse", "off"): "enable_mem_reuse:0",
        ("session:use_deterministic_compute", "on"): "use_deterministic_compute:1",
        ("execution_mode", "parallel"): "execution_mode:1",
        ("execution_order", "priority"): "execution_order:PRIORITY_BASED",
        ("session:disable_prepacking", "on"): "session.disable_prepacking: 1",
        ("session:dynamic_block_base", "4"): "Dynamic block base set to 4",
        ("session:set_denormal_as_zero", "on"): "denormal-as-zero are on",
        ("session:graph_optimizations_loop_level", "2"): "Loop Level : 2",
    }
    plain = observe.log(convolution)
    tuned = observe.log(convolution, **dict(list(said)))
    for native in said.values():
        assert native in tuned
        assert native not in plain


def test_thread_counts_are_the_number_of_threads(
    parallel_products: Path, observe: Observe
) -> None:
    one = observe.figures(parallel_products, threads__intra="1")
    assert one["threads"] == 0
    if cpu_quota() >= 2:
        two = observe.figures(parallel_products, threads__intra="2")
        both = observe.figures(
            parallel_products, threads__intra="2", threads__inter="2", execution_mode="parallel"
        )
        assert two["threads"] == 1
        assert both["threads"] >= 2


def test_idle_threads_spin_only_when_allowed(
    parallel_products: Path, observe: Observe, catalogue: Catalogue
) -> None:
    if cpu_quota() < 2 or catalogue.option("session:intra_op.spin_duration_us") is None:
        pytest.skip("needs two CPUs, and a version where the time to spin can be set")
    base = {"threads:intra": "2", "session:intra_op.spin_duration_us": "5000000"}
    spinning = observe.figures(parallel_products, **base)
    asleep = observe.figures(
        parallel_products, **base, **{"session:intra_op.allow_spinning": "off"}
    )
    stopped = observe.figures(parallel_products, **base, **{"session:force_spinning_stop": "on"})
    assert spinning["spun"] > 0.04
    assert asleep["spun"] < 0.02
    assert stopped["spun"] < 0.02


def test_the_arena_keeps_memory_unless_told_otherwise(
    large_intermediate: Path, observe: Observe
) -> None:
    # Without a pattern the arena grows in two regions; it never gives the first one back.
    base = {"session:enable_mem_pattern": "off"}
    kept = observe.figures(large_intermediate, **base)["resident"]
    for name, value in (
        ("session:enable_cpu_mem_arena", "off"),
        ("run:memory_arena_shrinkage", "on"),
    ):
        freed = observe.figures(large_intermediate, **base, **{name: value})["resident"]
        assert kept - freed > 32 << 20, name


def test_denormals_become_zero_in_a_process_of_their_own(
    save_model: SaveModel, observe: Observe
) -> None:
    model = save_model(
        [helper.make_node("Mul", ["x", "k"], ["y"])],
        [("x", TensorProto.FLOAT, [16])],
        [("y", TensorProto.FLOAT, [16])],
        {"k": np.float32(1e-20)},
    )
    assert observe.figures(model)["first"] > 0
    assert observe.figures(model, session__set_denormal_as_zero="on")["first"] == 0
