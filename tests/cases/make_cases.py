"""Writes small ONNX models that mimic publicly reported trouble, and a manifest.json of them.

usage: make_cases.py FOLDER [--big]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt
    from onnx import ModelProto, NodeProto, ValueInfoProto

    Array = npt.NDArray[Any]
    Shape = Sequence[int | str | None] | None

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
STRING = TensorProto.STRING
BIG_ROWS, BIG_COLUMNS = 9_000_000, 64

node = helper.make_node


class Folder:
    """Collects the files of the cases and what is expected of each."""

    def __init__(self, root: Path, *, big: bool = False) -> None:
        self.root = root
        self.big = big
        self.rows: list[dict[str, Any]] = []
        self.kind = ""
        self.reports: tuple[str, ...] = ()

    def path(self, file: str) -> Path:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def add(self, case_id: str, file: str, expect: str, **extra: Any) -> None:
        """Note a case; ``inputs`` and ``reference`` go into npz files beside the model."""
        row: dict[str, Any] = {"id": case_id, "file": file, "kind": self.kind}
        row.update(refs=list(self.reports), expect=expect)
        for role in ("inputs", "reference"):
            arrays = extra.pop(role, None)
            if arrays:
                row[role] = str(Path(file).with_suffix(f".{role}.npz"))
                np.savez(self.path(row[role]), **arrays)
        self.rows.append({**row, **extra})

    def save(self, proto: ModelProto, case_id: str, file: str, expect: str, **extra: Any) -> None:
        self.path(file).write_bytes(proto.SerializeToString())
        self.add(case_id, file, expect, **extra)


CASES: list[Callable[[Folder], None]] = []


def case(
    kind: str, *reports: str
) -> Callable[[Callable[[Folder], None]], Callable[[Folder], None]]:
    """Register a generator with the public threads that it comes from."""

    def register(generate: Callable[[Folder], None]) -> Callable[[Folder], None]:
        def run(out: Folder) -> None:
            out.kind, out.reports = kind, reports
            generate(out)

        CASES.append(run)
        return run

    return register


def value(name: str, kind: int, shape: Shape) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def floats(name: str, *shape: int | str | None) -> ValueInfoProto:
    return value(name, FLOAT, list(shape))


def model(
    nodes: Iterable[NodeProto],
    inputs: Iterable[ValueInfoProto],
    outputs: Iterable[ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
    **versions: Any,
) -> ModelProto:
    """A model of IR 10 and opset 17, unless ``ir``, ``opset`` or ``domains`` say otherwise."""
    arrays = [numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), arrays)
    opsets = [helper.make_opsetid("", versions.get("opset", 17)), *versions.get("domains", ())]
    proto = helper.make_model(graph, opset_imports=opsets, producer_name="make_cases")
    proto.ir_version = versions.get("ir", 10)
    return proto


def gemm_model(**versions: Any) -> ModelProto:
    w = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    nodes = [node("MatMul", ["x", "w"], ["m"], name="mm"), node("Relu", ["m"], ["y"], name="r")]
    return model(nodes, [floats("x", 2, 4)], [floats("y", 2, 3)], {"w": w}, **versions)


# ---------------------------------------------------------------- files and graph structure
@case(
    "model-load",
    "onnx/onnx#3273",
    "onnx/onnx#3275",
    "onnx/onnx-tensorrt#818",
    "onnx/onnx-tensorrt#542",
)
def o01_external_data(out: Folder) -> None:
    for name in ("rel", "missing", "short"):
        onnx.save_model(
            gemm_model(),
            out.path(f"O01/{name}/model.onnx"),
            save_as_external_data=True,
            location="weights.bin",
            size_threshold=0,
        )
    out.path("O01/missing/weights.bin").unlink()
    with out.path("O01/short/weights.bin").open("r+b") as file:
        file.truncate(7)
    text = "works from any current directory; data found beside the model"
    out.add("O01a", "O01/rel/model.onnx", text)
    text = "one clear error that names the missing data file"
    out.add("O01b", "O01/missing/model.onnx", text, bad=True)
    text = "clear error: data file shorter than declared"
    out.add("O01c", "O01/short/model.onnx", text, bad=True)
    if out.big:
        big_table(out)


def big_table(out: Folder) -> None:
    """2.3 GB of weights, written as a sparse file: next to no disk."""
    size = BIG_ROWS * BIG_COLUMNS * 4
    table = TensorProto(name="table", data_type=FLOAT, dims=[BIG_ROWS, BIG_COLUMNS])
    table.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "table.bin"), ("offset", "0"), ("length", str(size))):
        table.external_data.add(key=key, value=text)
    gather = node("Gather", ["table", "ids"], ["y"])
    proto = model([gather], [value("ids", INT64, [4])], [floats("y", 4, BIG_COLUMNS)])
    proto.graph.initializer.append(table)
    with out.path("O01/big/table.bin").open("wb") as file:
        file.truncate(size)
    out.save(
        proto,
        "O01d",
        "O01/big/model.onnx",
        "never serialised whole, never copied per trial; checked by path",
        inputs={"ids": np.array([0, 5, BIG_ROWS - 1, 77], np.int64)},
    )


@case("model-load", "microsoft/onnxruntime#4507")
def o02_weights_as_inputs(out: Folder) -> None:
    w = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    proto = model(
        [node("Gemm", ["x", "w", "b"], ["y"])],
        [floats("x", 2, 4), floats("w", 4, 3), floats("b", 3)],
        [floats("y", 2, 3)],
        {"w": w, "b": np.zeros(3, np.float32)},
        ir=3,
        opset=9,
    )
    text = "w and b are not asked for, not randomised and get no profile; only x is an input"
    out.save(proto, "O02", "O02/init_as_input.onnx", text)


@case("graph", "onnx/onnx#1920", "onnx/onnx#3865", "NVIDIA/Model-Optimizer#507")
def o03_unsorted(out: Folder) -> None:
    proto = gemm_model()
    backwards = [onnx.NodeProto.FromString(n.SerializeToString()) for n in proto.graph.node][::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(backwards)
    text = "accepted as the runtime accepts it; if refused, one line saying nodes are unsorted"
    out.save(proto, "O03", "O03/unsorted.onnx", text)


@case("graph", "microsoft/onnxruntime#15849", "microsoft/onnxruntime#10706")
def o04_doubled_names(out: Folder) -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="n"),
        node("Neg", ["a"], ["b"], name="n"),
        node("Abs", ["b"], ["y"], name=""),
    ]
    text = "passes onnx.checker, the CPU runtime refuses it: say which name is doubled"
    proto = model(nodes, [floats("x", 4)], [floats("y", 4)])
    out.save(proto, "O04a", "O04/dup_node_names.onnx", text, ort_refuses=True)
    nodes = [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["a"]), node("Abs", ["a"], ["y"])]
    text = "refused with the doubled tensor name, exit code not 0"
    proto = model(nodes, [floats("x", 4)], [floats("y", 4)])
    out.save(proto, "O04b", "O04/dup_tensor_names.onnx", text, bad=True)


@case(
    "model-load",
    "microsoft/onnxruntime#14932",
    "microsoft/onnxruntime#23602",
    "microsoft/onnxruntime#8796",
)
def o05_too_new(out: Folder) -> None:
    text = "error names found and supported IR version"
    out.save(gemm_model(ir=99), "O05a", "O05/ir_too_new.onnx", text, bad=True)
    text = "error names opset and the runtime's limit"
    out.save(gemm_model(opset=999), "O05b", "O05/opset_too_new.onnx", text, bad=True)
    newest = gemm_model(opset=onnx.defs.onnx_opset_version(), ir=onnx.IR_VERSION)
    text = "either works, or the error says that the runtime is older than the model"
    out.save(newest, "O05c", "O05/newest_of_onnx_package.onnx", text)


@case("graph", "microsoft/onnxruntime#23566", "microsoft/onnxruntime#12896")
def o06_custom_op(out: Folder) -> None:
    foo = node("Foo", ["x"], ["y"], domain="my.ops")
    domains = [helper.make_opsetid("my.ops", 1)]
    proto = model([foo], [floats("x", 4)], [floats("y", 4)], domains=domains)
    text = "fails before any trial starts; names my.ops::Foo and how to give its library"
    out.save(proto, "O06", "O06/custom_op.onnx", text, bad=True)


@case("model-load", "onnx/onnx-tensorrt#1032")
def o07_not_a_model(out: Folder) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
    blobs = {
        "a_dummy": b"dummy\n",
        "b_empty": b"",
        "c_truncated": gemm_model().SerializeToString()[:-40],
        "d_lfs_pointer": pointer + b"\nsize 123\n",
        "e_zip": b"PK\x03\x04" + bytes(60),
    }
    text = "not an ONNX model: one-line error in the parent, no crash, no study left behind"
    for name, blob in blobs.items():
        out.path(f"O07/{name}.onnx").write_bytes(blob)
        out.add("O07" + name[0], f"O07/{name}.onnx", text, bad=True)


@case("graph", "NVIDIA-AI-IOT/torch2trt#365", "pytorch/TensorRT#812", "NVIDIA/TensorRT#183")
def o08_degenerate(out: Folder) -> None:
    x, y = floats("x", 2, 3), floats("y", 2, 3)
    relu = node("Relu", ["x"], ["y"])
    text = "both outputs compared; the pass-through one must be equal to the input"
    out.save(model([relu], [x], [x, y]), "O08a", "O08/a_input_is_output.onnx", text)
    text = "says there is nothing to tune (or tunes it); no division by zero on ~0 latency"
    out.save(model([], [x], [x]), "O08b", "O08/b_no_nodes.onnx", text)
    text = "refused: no outputs; accuracy must not pass vacuously"
    out.save(model([relu], [x], []), "O08c", "O08/c_no_outputs.onnx", text, bad=True)
    text = "no inputs is legal: runs with an empty feed"
    constant = model([], [], [floats("c", 3)], {"c": np.arange(3, dtype=np.float32)})
    out.save(constant, "O08d", "O08/d_constant_output_no_inputs.onnx", text)
    nodes = [
        node("RandomNormal", [], ["n"], shape=[3], seed=1.0),
        node("Mul", ["n", "z"], ["y"]),
    ]
    proto = model(nodes, [], [floats("y", 3)], {"z": np.zeros(3, np.float32)})
    out.save(proto, "O08e", "O08/e_no_inputs.onnx", text)


@case("control-flow", "NVIDIA/TensorRT#2846", "NVIDIA/TensorRT#1731", "NVIDIA/TensorRT#4603")
def o09_branches(out: Folder) -> None:
    then = node("Relu", ["x"], ["t"])
    other = node("Unsqueeze", ["x", "ax"], ["e"])
    branch = node(
        "If",
        ["c"],
        ["y"],
        then_branch=helper.make_graph([then], "then", [], [value("t", FLOAT, None)]),
        else_branch=helper.make_graph([other], "else", [], [value("e", FLOAT, None)]),
        name="if",
    )
    inputs = [value("c", BOOL, []), floats("x", 2, 3)]
    proto = model([branch], inputs, [value("y", FLOAT, None)], {"ax": np.array([1], np.int64)})
    text = (
        "TensorRT: 'model not supported', not N failed routes; CPU: an output without declared "
        "shape is handled, both branches can be given as inputs"
    )
    feed = {"c": np.array(True), "x": np.ones((2, 3), np.float32)}
    out.save(proto, "O09", "O09/if_two_ranks.onnx", text, inputs=feed)


@case("shapes", "NVIDIA/TensorRT#763", "NVIDIA/TensorRT#549", "NVIDIA/TensorRT#4472")
def o10_zero_sizes(out: Folder) -> None:
    nodes = [
        node("Slice", ["x", "z", "z", "ax"], ["s"]),
        node("Concat", ["x", "s"], ["y"], axis=1),
    ]
    weights = {"z": np.array([0], np.int64), "ax": np.array([1], np.int64)}
    outputs = [floats("y", 1, 5, 4), floats("s", 1, 0, 4)]
    text = "empty output compares equal; mean/max of an empty array is no crash, no NaN"
    proto = model(nodes, [floats("x", 1, 5, 4)], outputs, weights)
    out.save(proto, "O10a", "O10/a_empty_slice.onnx", text)
    proto = model([node("Relu", ["x"], ["y"])], [floats("x", 0, 4)], [floats("y", 0, 4)])
    text = "0 is a size here, not 'dynamic'; not replaced by 1"
    out.save(proto, "O10b", "O10/b_static_zero_dim.onnx", text)
    nodes = [node("ReduceSum", ["x"], ["t"], keepdims=0), node("Mul", ["t", "s"], ["y"])]
    proto = model(nodes, [floats("x", 3), floats("s")], [floats("y")])
    text = "0-d input and 0-d output kept 0-d in files, cache and comparison"
    out.save(proto, "O10c", "O10/c_scalars.onnx", text)
    nonzero = node("NonZero", ["x"], ["y"])
    proto = model([nonzero], [floats("x", 4)], [value("y", INT64, [1, "nz"])])
    text = "output size known only after the run; zero rows possible"
    feed = {"x": np.zeros(4, np.float32)}
    out.save(proto, "O10d", "O10/d_data_dependent_shape.onnx", text, inputs=feed)


HOSTILE_NAMES = (
    "images:0",
    "/model/layer.0/MatMul",
    "my input",
    "\u5165\u529b",
    "x[0|1]",
    "a'b\"c",
    "-x",
    "arr_0",
    "file",
    "a,b=c;d",
)


@case(
    "names",
    "NVIDIA/TensorRT#2324",
    "NVIDIA/TensorRT#163",
    "NVIDIA/TensorRT#1194",
    "microsoft/onnxruntime#5418",
    "microsoft/onnxruntime#27724",
)
def o11_names(out: Folder) -> None:
    nodes, last = [], HOSTILE_NAMES[0]
    for number, name in enumerate(HOSTILE_NAMES[1:]):
        nodes.append(node("Add", [last, name], [f"s:{number}/out"]))
        last = f"s:{number}/out"
    proto = model(nodes, [floats(name, "N", 2) for name in HOSTILE_NAMES], [floats(last, "N", 2)])
    text = "shapes can be given for each name; npz in and out keeps each name; logs stay parsable"
    shapes = {name: [3, 2] for name in HOSTILE_NAMES}
    out.save(proto, "O11a", "O11/names.onnx", text, shapes=shapes)
    file = "O11/dir with space/\u30e2\u30c7\u30eb [a|b] $HOME 'q' %20.onnx"
    text = "path reaches the child process and the printed command unchanged"
    out.save(gemm_model(), "O11b", file, text)


@case(
    "shapes",
    "NVIDIA/TensorRT#1116",
    "NVIDIA/TensorRT#1167",
    "NVIDIA/TensorRT#532",
    "NVIDIA/TensorRT#1111",
)
def o12_dynamic(out: Folder) -> None:
    pool = node("GlobalAveragePool", ["x"], ["y"])
    inputs = [floats("x", "batch", 3, "h", "w")]
    text = "asks for shapes or says loudly which sizes it took; never a silent 1x3x1x1"
    proto = model([pool], inputs, [floats("y", "batch", 3, 1, 1)])
    out.save(proto, "O12a", "O12/a_dynamic.onnx", text)
    inputs = [floats("a", "N", 8), floats("b", "N", 8)]
    proto = model([node("Add", ["a", "b"], ["y"])], inputs, [floats("y", "N", 8)])
    text = "same symbol gets the same size in both inputs"
    out.save(proto, "O12b", "O12/b_shared_symbol.onnx", text)
    reshape = node("Reshape", ["x", "s"], ["y"])
    weights = {"s": np.array([-1, 12], np.int64)}
    proto = model([reshape], [floats("x", "n")], [floats("y", None, 12)], weights)
    text = "default size 1 cannot run: message tells user to give shapes"
    out.save(proto, "O12c", "O12/c_multiple_of_12.onnx", text, shapes={"x": [24]})
    relu = node("Relu", ["x"], ["y"])
    proto = model([relu], [value("x", FLOAT, None)], [value("y", FLOAT, None)])
    out.save(proto, "O12d", "O12/d_unknown_rank.onnx", "unknown rank: asks for the shape")
    proto = model([relu], [floats("x", -1, 4)], [floats("y", -1, 4)])
    text = "dim_value -1 treated as dynamic, no negative allocation"
    out.save(proto, "O12e", "O12/e_minus_one_dim.onnx", text)


# ---------------------------------------------------------------- types
@case(
    "types",
    "microsoft/onnxruntime#20578",
    "microsoft/onnxruntime#13262",
    "microsoft/onnxruntime#13001",
)
def o13_types(out: Folder) -> None:
    text = "runs (bit-exact in files), or says that this input type is not supported"
    for name, kind, opset in (
        ("a_bf16", TensorProto.BFLOAT16, 17),
        ("b_fp8e4m3", TensorProto.FLOAT8E4M3FN, 19),
        ("c_fp8e5m2", TensorProto.FLOAT8E5M2, 19),
        ("d_fp16", TensorProto.FLOAT16, 17),
        ("e_int4", TensorProto.INT4, 21),
        ("f_uint8", TensorProto.UINT8, 17),
        ("g_double", TensorProto.DOUBLE, 17),
    ):
        nodes = [
            node("Cast", ["x"], ["f"], to=FLOAT),
            node("Mul", ["f", "two"], ["g"]),
            node("Cast", ["g"], ["y"], to=kind),
        ]
        outputs = [value("y", kind, [2, 4]), floats("f", 2, 4)]
        weights = {"two": np.float32(2)}
        proto = model(nodes, [value("x", kind, [2, 4])], outputs, weights, opset=opset)
        out.save(proto, "O13" + name[0], f"O13/{name}.onnx", text)


@case(
    "types",
    "triton-inference-server/model_analyzer#764",
    "onnx/onnx#1831",
    "onnx/onnx-mlir#2164",
)
def o14_strings(out: Folder) -> None:
    identity = node("Identity", ["x"], ["y"])
    proto = model([identity], [value("x", STRING, [3])], [value("y", STRING, [3])])
    text = "no hang; TensorRT: 'strings unsupported'; CPU: exact match is the metric"
    feed = {"x": np.array(["a", "\u00e9", ""], dtype=str)}
    out.save(proto, "O14a", "O14/a_string_io.onnx", text, inputs=feed)
    nodes = [node("Cast", ["x"], ["s"], to=STRING), node("Relu", ["x"], ["y"])]
    proto = model(nodes, [floats("x", 3)], [value("s", STRING, [3]), floats("y", 3)])
    text = "numeric output still checked; string one compared exactly or named as skipped"
    out.save(proto, "O14b", "O14/b_string_output.onnx", text)


@case(
    "types",
    "NVIDIA/TensorRT#3616",
    "NVIDIA/trt-samples-for-hackathon-cn#35",
    "pytorch/TensorRT#1004",
)
def o15_order(out: Folder) -> None:
    nodes = [
        node("Mul", ["b", "k2"], ["b2"]),
        node("Mul", ["c", "k3"], ["c3"]),
        node("Sub", ["a", "b2"], ["t"]),
        node("Add", ["t", "c3"], ["y"]),
        node("Neg", ["t"], ["x1"]),
    ]
    mask = value("unused_mask", INT64, [1, 128])
    inputs = [floats("c", 5), mask, floats("a", 5), floats("b", 5)]
    weights = {"k2": np.float32(2), "k3": np.float32(3)}
    proto = model(nodes, inputs, [floats("y", 5), floats("x1", 5)], weights)
    text = "bound by name, never by index; an input the engine drops is no error"
    feed = {name: np.full(5, size, np.float32) for name, size in (("c", 3), ("a", 1), ("b", 2))}
    feed["unused_mask"] = np.zeros((1, 128), np.int64)
    out.save(proto, "O15", "O15/order_and_unused_input.onnx", text, inputs=feed)


@case("types", "NVIDIA/TensorRT#620", "onnx/tensorflow-onnx#883")
def o16_int64(out: Folder) -> None:
    nodes = [node("Add", ["x", "k"], ["y"]), node("Slice", ["x", "z", "e", "z"], ["s"])]
    weights = {"k": [2**40], "z": [0], "e": [2**63 - 1]}
    outputs = [value("y", INT64, [4]), value("s", INT64, [4])]
    text = "INT64_MAX as a slice end is harmless; 2**40 survives, differences do not overflow"
    out.save(
        model(nodes, [value("x", INT64, [4])], outputs, weights),
        "O16",
        "O16/int64_range.onnx",
        text,
        inputs={"x": np.array([0, -1, 2**53 + 1, -(2**62)], np.int64)},
    )


# ---------------------------------------------------------------- accuracy
@case(
    "accuracy",
    "NVIDIA/TensorRT#4507",
    "NVIDIA/TensorRT#4533",
    "dataplayer12/SAM3-TensorRT#7",
)
def o17_zero_reference(out: Folder) -> None:
    nodes = [
        node("Sub", ["x", "x"], ["zero"]),
        node("Mul", ["x", "tiny"], ["small"]),
        node("Relu", ["x"], ["half_zero"]),
    ]
    outputs = [floats("zero", 64), floats("small", 64), floats("half_zero", 64)]
    proto = model(nodes, [floats("x", 64)], outputs, {"tiny": np.float32(1e-9)})
    text = "an identical all-zero output passes every metric; zero vs 1e-9 gives a finite figure"
    x = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    out.save(proto, "O17", "O17/zero_reference.onnx", text, inputs={"x": x})


@case("accuracy", "NVIDIA/TensorRT#3451", "NVIDIA/TensorRT#3850")
def o18_ids(out: Folder) -> None:
    nodes = [
        node("TopK", ["x", "k"], ["val", "idx"], axis=-1),
        node("ArgMax", ["x"], ["cls"], axis=-1, keepdims=0),
    ]
    outputs = [floats("val", 4, 3), value("idx", INT64, [4, 3]), value("cls", INT64, [4])]
    proto = model(nodes, [floats("x", 4, 10)], outputs, {"k": np.array([3], np.int64)})
    x = np.zeros((4, 10), np.float32)
    x[:, ::2] = 1.0  # many ties
    x[0] = np.arange(10)
    text = "ids are labels: integer outputs are judged by agreement"
    out.save(proto, "O18", "O18/topk_argmax.onnx", text, inputs={"x": x})


@case(
    "accuracy",
    "GridTools/serialbox#148",
    "NVIDIA/TensorRT#1787",
    "microsoft/onnxruntime#11384",
)
def o19_not_finite(out: Folder) -> None:
    nodes = [
        node("Log", ["x"], ["y"]),
        node("Where", ["mask", "x", "ninf"], ["att"]),
        node("Softmax", ["att"], ["p"], axis=-1),
    ]
    outputs = [floats("y", 2, 4), floats("att", 2, 4), floats("p", 2, 4)]
    inputs = [floats("x", 2, 4), value("mask", BOOL, [2, 4])]
    text = "NaN where the reference has NaN and the same infinity count as equal"
    out.save(
        model(nodes, inputs, outputs, {"ninf": np.float32(-np.inf)}),
        "O19",
        "O19/nan_inf_reference.onnx",
        text,
        inputs={
            "x": np.array([[1, -1, 0, 2], [3, 4, 5, 6]], np.float32),
            "mask": np.array([[1, 1, 0, 1], [0, 0, 0, 0]], bool),
        },
    )


@case(
    "accuracy",
    "onnx/onnx#4855",
    "microsoft/onnxruntime#5600",
    "microsoft/onnxruntime#9704",
    "onnx/onnx#8161",
)
def o20_random(out: Folder) -> None:
    inputs, outputs = [floats("x", 1, 256)], [floats("y", 1, 256)]
    add = node("Add", ["x", "n"], ["y"])
    proto = model([node("RandomNormalLike", ["x"], ["n"]), add], inputs, outputs)
    text = "run the default twice in each way, tell the user before tuning"
    out.save(proto, "O20a", "O20/a_random_like.onnx", text)
    weights = {"r": np.float32(0.5), "t": np.array(True)}
    proto = model([node("Dropout", ["x", "r", "t"], ["y"])], inputs, outputs, weights)
    text = "differs between runs and between sessions; as O20a"
    out.save(proto, "O20b", "O20/b_dropout_training.onnx", text)
    proto = model([node("RandomNormalLike", ["x"], ["n"], seed=7.0), add], inputs, outputs)
    text = "a seed repeats per session start but not per run: compare first runs, or warn"
    out.save(proto, "O20c", "O20/c_seeded.onnx", text)


@case("accuracy", "ultralytics/ultralytics#18333", "ultralytics/ultralytics#20231")
def o21_two_scales(out: Folder) -> None:
    nodes = [node("Mul", ["x", "big"], ["boxes"]), node("Mul", ["x", "small"], ["scores"])]
    outputs = [floats("boxes", 1, 100), floats("scores", 1, 100)]
    weights = {"big": np.float32(640), "small": np.float32(1e-3)}
    proto = model(nodes, [floats("x", 1, 100)], outputs, weights)
    x = np.abs(np.random.default_rng(4).standard_normal((1, 100))).astype(np.float32)
    text = "each output judged by itself, the worst one named"
    trusted = {"boxes": x * np.float32(640), "scores": np.zeros_like(x)}
    out.save(proto, "O21", "O21/two_scales.onnx", text, inputs={"x": x}, reference=trusted)


@case(
    "accuracy",
    "microsoft/onnxruntime#20321",
    "microsoft/onnxruntime#20540",
    "microsoft/onnxruntime#18959",
)
def o22_options(out: Folder) -> None:
    scale = node("Mul", ["x", "k"], ["y"])
    proto = model([scale], [floats("x", 16)], [floats("y", 16)], {"k": np.float32(1e-20)})
    text = "denormal-as-zero is decided by the first session of a process: one process per trial"
    x = np.linspace(1e-20, 9e-20, 16).astype(np.float32)
    out.save(proto, "O22a", "O22/a_denormal.onnx", text, inputs={"x": x})
    quantized(out)
    nodes = [
        node("Div", ["x", "s2"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["p"]),
        node("Mul", ["x", "p"], ["q"]),
        node("Mul", ["q", "half"], ["y"]),
    ]
    weights = {"s2": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    proto = model(nodes, [floats("x", 1, 256)], [floats("y", 1, 256)], weights)
    text = "gelu approximation, where it works, is a knob with an accuracy cost"
    x = np.linspace(-6, 6, 256).astype(np.float32)[None]
    out.save(proto, "O22c", "O22/c_gelu.onnx", text, inputs={"x": x})


def quantized(out: Folder) -> None:
    random = np.random.default_rng(5)
    weights = {
        "w": random.integers(-127, 127, (32, 32)).astype(np.int8),
        "sx": np.float32(0.02),
        "zx": np.uint8(128),
        "sw": np.float32(0.01),
        "zw": np.int8(0),
        "sm": np.float32(0.05),
        "zm": np.uint8(128),
    }
    nodes = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"]),
        node("MatMul", ["xd", "wd"], ["m"]),
        node("QuantizeLinear", ["m", "sm", "zm"], ["mq"]),
        node("DequantizeLinear", ["mq", "sm", "zm"], ["y"]),
    ]
    proto = model(nodes, [floats("x", 4, 32)], [floats("y", 4, 32)], weights)
    text = "optimisation level may move results by a quantisation step: judged against epsilon"
    x = random.standard_normal((4, 32)).astype(np.float32)
    out.save(proto, "O22b", "O22/b_qdq.onnx", text, inputs={"x": x})


# ---------------------------------------------------------------- timing and resources
@case(
    "timing",
    "NVIDIA/TensorRT#2042",
    "NVIDIA/TensorRT#4382",
    "microsoft/onnxruntime#10676",
    "microsoft/onnxruntime#13198",
    "onnx/onnx#5870",
)
def o23_timing(out: Folder) -> None:
    proto = model([node("Add", ["x", "x"], ["y"])], [floats("x", 4)], [floats("y", 4)])
    text = "a few microseconds: enough repeats per sample, no 0.000 ms, no 'inf speed-up'"
    out.save(proto, "O23a", "O23/a_microseconds.onnx", text)
    random = np.random.default_rng(6)
    nodes: list[NodeProto] = []
    weights: dict[str, Array] = {}
    last = "x"
    for i in range(8):
        weights[f"w{i}"] = (random.standard_normal((32, 32, 3, 3)) * 0.05).astype(np.float32)
        nodes.append(node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", [f"c{i}"], [f"r{i}"]))
        last = f"r{i}"
    outputs = [floats(last, 1, 32, 64, 64)]
    text = "warm-up dropped; the same route first and last agrees within the stated noise"
    proto = model(nodes, [floats("x", 1, 32, 64, 64)], outputs, weights)
    out.save(proto, "O23b", "O23/b_conv_stack.onnx", text)


@case(
    "resources",
    "NVIDIA/TensorRT#2643",
    "NVIDIA/TensorRT-LLM#436",
    "NVIDIA/TensorRT#2815",
)
def o27_memory(out: Folder) -> None:
    weights = {"s": np.array([1 << 20, 1 << 20], np.int64)}
    nodes = [
        node("ConstantOfShape", ["s"], ["t"]),
        node("ReduceMax", ["t"], ["u"], keepdims=0),
        node("Add", ["x", "u"], ["y"]),
    ]
    proto = model(nodes, [floats("x", 4)], [floats("y", 4)], weights)
    text = "4 TB constant: the trial fails with 'out of memory', parent and machine live"
    out.save(proto, "O27a", "O27/a_oom_at_build.onnx", text, bad=True)
    nodes = [node("Expand", ["x", "s"], ["t"]), node("ReduceMax", ["t"], ["y"], keepdims=0)]
    proto = model(nodes, [floats("x", 1, 1)], [floats("y")], weights)
    text = "the default route fails too, so the study stops early with that reason"
    out.save(proto, "O27b", "O27/b_oom_at_run.onnx", text, bad=True)


def mutate_cache(path: Path, folder: Path) -> list[str]:
    """Write damaged copies (O29) of a line-based file that the product wrote; return their names."""
    raw = path.read_bytes()
    lines = raw.splitlines(keepends=True)
    last = lines[-1] if lines else b""
    copies = {
        "cut_last_line": raw[: -max(1, len(last) // 2)],
        "no_final_newline": raw.rstrip(b"\n"),
        "doubled_line": raw + last,
        "two_records_joined": raw.rstrip(b"\n") + last,
        "zero_bytes": b"",
        "nul_tail": raw + bytes(512),
        "only_first_line": lines[0] if lines else b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in copies.items():
        (folder / f"{name}.cache").write_bytes(data)
    return sorted(copies)


def make_cases(root: Path, *, big: bool = False) -> Path:
    """Write every case below ``root`` and return the manifest's path."""
    out = Folder(root, big=big)
    for generate in CASES:
        generate(out)
    manifest = out.path("manifest.json")
    manifest.write_text(json.dumps(out.rows, indent=1, ensure_ascii=False), encoding="utf-8")
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--big", action="store_true", help="also the 2.3 GB (sparse) model")
    asked = parser.parse_args()
    sys.stdout.write(f"{make_cases(asked.folder, big=asked.big)}\n")


if __name__ == "__main__":
    main()
