from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.check import check_knobs
from smart_tuner.precision.knobs import chosen_values, precision_knobs
from smart_tuner.precision.regions import AUTO_REGIONS, regions
from smart_tuner.precision.support import PrecisionSupport, Scheme
from smart_tuner.precision.view import view_of
from tests.unit.precision.conftest import SUPPORT
from tests.unit.precision.networks import FLOAT, mixed_network, node, saved

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = ("stem/conv", "body/conv", "body/conv2", "head/mix", "head/gemm")


def chain(length: int, name: str = "layer{}", kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Matrix products one after the other."""
    array = np.eye(4).astype(helper.tensor_dtype_to_np_dtype(kind))
    nodes = [
        node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"], name.format(i)) for i in range(length)
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "chain",
            [helper.make_tensor_value_info("t0", kind, [1, 4])],
            [helper.make_tensor_value_info(f"t{length}", kind, [1, 4])],
            [numpy_helper.from_array(array, f"w{i}") for i in range(length)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )


def test_each_layer_is_a_region_that_bears_its_name(network: Path) -> None:
    found = regions(network, ["per-layer"])
    assert tuple(region.name for region in found) == LAYERS
    assert {"c0", "b0", "r0"} <= found[0].members
    assert "1 Conv" in found[0].about


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_number_cuts_the_network_into_so_many_parts_in_order(network: Path, count: int) -> None:
    layers = {region.name: region.members for region in regions(network, ["per-layer"])}
    parts = regions(network, [str(count)])
    assert len(parts) == count
    assert [region.name for region in parts] == sorted(
        (region.name for region in parts), key=LAYERS.index
    )
    together = [member for region in parts for member in region.members]
    assert sorted(together) == sorted(m for members in layers.values() for m in members)


def test_auto_makes_few_regions_of_a_long_network(tmp_path: Path) -> None:
    found = regions(saved(chain(40), tmp_path / "chain.onnx"), ["auto"])
    sizes = [len(region.members) for region in found]
    assert len(found) == AUTO_REGIONS
    assert max(sizes) - min(sizes) <= 1


def test_patterns_name_regions_and_the_first_match_counts(network: Path) -> None:
    found = regions(network, ["stem/*", "tail=head/*", "body/conv2"])
    assert [region.name for region in found] == ["stem", "tail", "body/conv2"]
    assert "c0" in found[0].members
    assert found[2].members == {"c2"}
    assert len(regions(network, ["body/conv2", "body/*"])[1].members) == 5


def test_names_can_be_written_in_routes_whatever_the_network_calls_its_nodes(
    tmp_path: Path,
) -> None:
    model = saved(chain(3, name="a [b|c]=*? d\n{}"), tmp_path / "odd.onnx")
    found = regions(model, ["per-layer"])
    view = view_of(onnx.load(model))
    knobs = precision_knobs(view, found, ("int8",), SUPPORT)
    check_knobs((knob.name, knob) for knob in knobs)
    assert len({knob.name for knob in knobs}) == 3


def test_nodes_without_order_and_names_have_regions_too(tmp_path: Path) -> None:
    model = chain(3, name="")
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    found = regions(saved(model, tmp_path / "unsorted.onnx"), ["per-layer"])
    assert [region.name for region in found] == ["t1", "t2", "t3"]


def quantized() -> onnx.ModelProto:
    model = mixed_network()
    model.graph.node.append(node("QuantizeLinear", ["r0", "tiny"], ["q"]))
    return model


def written_out() -> onnx.ModelProto:
    """Half precision with weights as constants of nodes, as PaddlePaddle's converter leaves them."""
    model = chain(2, kind=TensorProto.FLOAT16)
    weights = list(model.graph.initializer)
    del model.graph.initializer[:]
    for weight in weights:
        model.graph.node.insert(0, node("Constant", [], [weight.name], value=weight))
    return model


def plain() -> onnx.ModelProto:
    tensors = [helper.make_tensor_value_info(name, FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    return helper.make_model(graph)


def branched() -> onnx.ModelProto:
    """A matrix product in both branches of an If, as voice detectors for two sample rates have."""
    branches = {}
    for branch in ("then_branch", "else_branch"):
        output = helper.make_tensor_value_info(f"{branch}/y", FLOAT, [1, 4])
        product = node("MatMul", ["t0", "w0"], [f"{branch}/y"])
        branches[branch] = helper.make_graph([product], branch, [], [output])
    model = chain(1)
    del model.graph.node[:]
    model.graph.node.append(node("If", ["which"], ["t1"], **branches))
    model.graph.input.append(helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    return model


@pytest.mark.parametrize(
    ("model", "wanted", "said"),
    [
        (mixed_network(), "nothing*", "matches nothing in .* called like 'stem/conv'"),
        (mixed_network(), "norm/*", "matches nothing that can be lowered"),
        (mixed_network(), "6", "has 5 layers; give a number from 1 to 5"),
        (mixed_network(), "0", "give a number from 1 to 5"),
        (quantized(), "auto", "is quantized already .1 QuantizeLinear"),
        (chain(2, kind=TensorProto.FLOAT16), "auto", "is in float16 already"),
        (chain(2, kind=TensorProto.BFLOAT16), "auto", "is in bfloat16 already"),
        (written_out(), "auto", "is in float16 already"),
        (plain(), "auto", "nothing to lower; leave out --regions"),
        (branched(), "auto", "all lie inside If, .*; give the branch that you use"),
    ],
    ids=[
        *("pattern", "no layer", "many", "none", "quantized", "half", "bfloat16"),
        *("half, constants", "no anchor", "inside If"),
    ],
)
def test_what_has_no_regions_is_refused_in_one_line(
    tmp_path: Path, model: onnx.ModelProto, wanted: str, said: str
) -> None:
    with pytest.raises(UserInputError, match=said) as caught:
        regions(saved(model, tmp_path / "model.onnx"), [wanted])
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_region_offers_what_something_in_it_can_be(network: Path) -> None:
    view = view_of(onnx.load(network))
    found = regions(network, ["per-layer"])
    values = ("fp16", "bf16", "int8", "int8_dynamic")
    knobs = {knob.name: knob for knob in precision_knobs(view, found, values, SUPPORT)}
    assert knobs["precision.stem/conv"].choices == ("keep", "fp16", "int8")
    assert knobs["precision.head/gemm"].choices == ("keep", *values)
    assert {knob.source for knob in knobs.values()} == {"precision"}


def test_slow_types_are_offered_only_when_asked_for() -> None:
    support = PrecisionSupport({"int8": "", "fp16": "it is slow"}, Scheme(), "this one")
    assert chosen_values(support, ()) == ("int8",)
    assert chosen_values(support, ("int8", "fp16")) == ("fp16", "int8")


@pytest.mark.parametrize(
    ("asked", "said"),
    [("fp8", "this one does not take it; it takes fp16, int8"), ("int3", "knows no such")],
)
def test_a_type_that_the_backend_does_not_take_is_refused(asked: str, said: str) -> None:
    support = PrecisionSupport({"int8": "", "fp16": ""}, Scheme(), "this one")
    with pytest.raises(UserInputError, match=said):
        chosen_values(support, (asked,))


def test_a_backend_without_types_is_refused() -> None:
    with pytest.raises(UserInputError, match="leave out --regions"):
        chosen_values(PrecisionSupport(where="this one"), ())


def test_regions_without_anything_to_lower_are_refused(network: Path) -> None:
    view = view_of(onnx.load(network))
    with pytest.raises(UserInputError, match="No region can be lowered to int8_dynamic"):
        precision_knobs(view, regions(network, ["stem/*"]), ("int8_dynamic",), SUPPORT)
