from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.backends.onnxruntime.artefact import artefact_digest, model_digest
from smart_tuner.backends.onnxruntime.session import open_session
from smart_tuner.backends.onnxruntime.settings import SessionSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from onnx import ModelProto, NodeProto

    RunChild = Callable[..., tuple[str, str]]

OPTIMIZE = """
import sys
from pathlib import Path
from smart_tuner.backends.onnxruntime.artefact import artefact_digest
from smart_tuner.backends.onnxruntime.session import open_session
from smart_tuner.backends.onnxruntime.settings import SessionSettings
model, path = map(Path, sys.argv[1:])
open_session(model, SessionSettings(), save=path)
print(artefact_digest(path))
"""


def optimize(model: Path, path: Path, *disabled: str) -> str:
    open_session(model, SessionSettings(disabled_optimizers=disabled), save=path)
    return artefact_digest(path)


def test_equal_graphs_have_one_digest_in_every_process(
    convolution: Path, tmp_path: Path, run_child: RunChild
) -> None:
    path = tmp_path / "optimized.onnx"
    here = optimize(convolution, path)
    assert here == optimize(convolution, path)
    there, _ = run_child(OPTIMIZE, str(convolution), str(path))
    assert there.strip() == here


@pytest.mark.parametrize(
    "name", ["NchwcTransformer", "ConstantFolding", "ConvBNFusion", "Level1_RuleBasedTransformer"]
)
def test_a_pass_or_rule_that_is_off_changes_the_digest(
    convolution: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "optimized.onnx"
    assert optimize(convolution, path, name) != optimize(convolution, path)


def test_a_pass_without_work_changes_nothing(convolution: Path, tmp_path: Path) -> None:
    path = tmp_path / "optimized.onnx"
    assert optimize(convolution, path, "AttentionFusion") == optimize(convolution, path)


def test_no_model_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="not a model"):
        artefact_digest(path)


def model(nodes: list[NodeProto], weight: float = 1.0, name: str = "w") -> ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    weights = [numpy_helper.from_array(np.array(weight, np.float32), name)]
    return helper.make_model(helper.make_graph(nodes, "g", [value], [output], weights))


def sum_of(left: str, right: str, *, weight: str = "w") -> list[NodeProto]:
    return [
        helper.make_node("Abs", ["x"], [left], name=f"{left}-node"),
        helper.make_node("Mul", ["x", weight], [right]),
        helper.make_node("Sub", [left, right], ["y"]),
    ]


def test_names_inside_and_the_order_of_nodes_do_not_matter() -> None:
    nodes = sum_of("a", "b")
    plain = model_digest(model(nodes))
    assert plain == model_digest(model(sum_of("b", "a")))
    assert plain == model_digest(model([nodes[1], nodes[0], nodes[2]]))
    assert plain == model_digest(model(sum_of("a", "b", weight="v"), name="v"))


def test_weights_operators_and_wiring_matter() -> None:
    nodes = sum_of("a", "b")
    plain = model_digest(model(nodes))
    swapped = [*nodes[:2], helper.make_node("Sub", ["b", "a"], ["y"])]
    other = [helper.make_node("Neg", ["x"], ["a"]), *nodes[1:]]
    assert len({plain, *map(model_digest, (model(nodes, 2.0), model(swapped), model(other)))}) == 4


def test_subgraphs_matter() -> None:
    def branch(operator: str, name: str) -> object:
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
        node = helper.make_node(operator, ["x"], [name])
        return helper.make_graph([node], name, [], [output])

    def choice(operator: str, suffix: str) -> ModelProto:
        condition = helper.make_node("Constant", [], ["c"], value_ints=[1])
        cast = helper.make_node("Cast", ["c"], ["d"], to=TensorProto.BOOL)
        node = helper.make_node(
            "If",
            ["d"],
            ["y"],
            then_branch=branch(operator, f"t{suffix}"),
            else_branch=branch("Neg", f"e{suffix}"),
        )
        return model([condition, cast, node])

    assert model_digest(choice("Abs", "1")) == model_digest(choice("Abs", "2"))
    assert model_digest(choice("Abs", "1")) != model_digest(choice("Relu", "1"))
