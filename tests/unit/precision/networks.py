"""Small networks with everything that a rewriter has to leave alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]

FLOAT = TensorProto.FLOAT
node = helper.make_node


def weights(generator: np.random.Generator, name: str, *shape: int) -> onnx.TensorProto:
    array = generator.normal(0, 1 / np.sqrt(np.prod(shape[1:] or (1,))), shape)
    return numpy_helper.from_array(array.astype(np.float32), name)


def mixed_network(opset: int = 17) -> onnx.ModelProto:
    """Convolutions with norm and residual, a layer norm spelt out, a head, and a subgraph.

    Its batch is open; ``features`` is read by both branches of an ``If``; ``label`` is an index.
    """
    rng = np.random.default_rng(3)
    scale = numpy_helper.from_array(rng.uniform(0.5, 2, 8).astype(np.float32), "bn.variance")
    stored = [
        *(weights(rng, f"conv{i}.weight", 8, 3 if i == 0 else 8, 3, 3) for i in range(3)),
        *(weights(rng, f"bn.{name}", 8) for name in ("gamma", "beta", "mean")),
        *(weights(rng, f"conv{i}.bias", 8) for i in range(3)),
        weights(rng, "head.weight", 10, 8),
        weights(rng, "head.bias", 10),
        weights(rng, "mix.weight", 8, 8),
        scale,
        numpy_helper.from_array(np.array(1e-12, np.float32), "tiny"),
        numpy_helper.from_array(np.array(0, np.int64), "zero"),
    ]
    pads: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["x", "conv0.weight", "conv0.bias"], ["c0"], "stem/conv", **pads),
        node("BatchNormalization", ["c0", *(f"bn.{n}" for n in _NORM)], ["b0"], "stem/norm"),
        node("Relu", ["b0"], ["r0"], "stem/relu"),
        node("Conv", ["r0", "conv1.weight", "conv1.bias"], ["c1"], "body/conv", **pads),
        node("Relu", ["c1"], ["r1"], "body/relu"),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "body/conv2", **pads),
        node("Add", ["c2", "r0"], ["sum"], "body/add"),
        node("GlobalAveragePool", ["sum"], ["pooled"], "body/pool"),
        node("Flatten", ["pooled"], ["features"], "body/flatten"),
        node("ReduceMean", ["features"], ["mean"], "norm/mean", axes=[1], keepdims=1),
        node("Sub", ["features", "mean"], ["centred"], "norm/sub"),
        node("Mul", ["centred", "centred"], ["squared"], "norm/square"),
        node("ReduceMean", ["squared"], ["variance"], "norm/variance", axes=[1], keepdims=1),
        node("Add", ["variance", "tiny"], ["safe"], "norm/add"),
        node("Sqrt", ["safe"], ["deviation"], "norm/sqrt"),
        node("Div", ["centred", "deviation"], ["normed"], "norm/div"),
        node("MatMul", ["normed", "mix.weight"], ["mixed"], "head/mix"),
        node("Gemm", ["mixed", "head.weight", "head.bias"], ["logits"], "head/gemm", transB=1),
        node("Softmax", ["logits"], ["probabilities"], "head/softmax", axis=1),
        node("ArgMax", ["logits"], ["label"], "head/argmax", axis=1, keepdims=0),
        _branching(),
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "mixed",
            [
                helper.make_tensor_value_info("x", FLOAT, ["batch", 3, 8, 8]),
                helper.make_tensor_value_info("deep", TensorProto.BOOL, []),
            ],
            [
                helper.make_tensor_value_info("probabilities", FLOAT, ["batch", 10]),
                helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"]),
                helper.make_tensor_value_info("branch", FLOAT, ["batch", None]),
                helper.make_tensor_value_info("r0", FLOAT, ["batch", 8, 8, 8]),
            ],
            stored,
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
        producer_name="a test",
    )


_NORM = ("gamma", "beta", "mean", "variance")


def _branching() -> onnx.NodeProto:
    """Both branches read ``features`` and ``centred`` from around them."""
    branches = {
        name: helper.make_graph(
            [node(kind, ["features", "centred"], [f"{name}.out"], f"{name}/op")],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}.out", FLOAT, None)],
        )
        for name, kind in (("then_branch", "Add"), ("else_branch", "Sub"))
    }
    return node("If", ["deep"], ["branch"], "branch", **branches)


def inputs_of(seed: int, batch: int = 2) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    image = generator.normal(size=(batch, 3, 8, 8)).astype(np.float32)
    return {"x": image, "deep": np.array(seed % 2 == 0)}


def outputs_of(path: Path, inputs: dict[str, Array]) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def saved(model: onnx.ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path
