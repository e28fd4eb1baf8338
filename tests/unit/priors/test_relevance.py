"""Which operators knobs concern: rules that match, and what they say of real networks."""

import pytest

from smart_tuner.backends.onnxruntime.passes import OPTIMIZERS, RULES
from smart_tuner.knobs.read import bundled_database
from smart_tuner.model.load import load_model
from smart_tuner.model.public import fetch_public_model
from smart_tuner.priors.relevance import relevance_rules, relevance_version, rule_of, unlikely

NAMES = [
    *(knob.name for knob in bundled_database()),
    *(f"optimizer:{name}" for name in OPTIMIZERS),
    *(f"rule:{name}" for name in RULES),
    "session:optimization.enable_gelu_approximation",
    "session:mlas.nchwc_depthwise_sliding",
]
"""Of TensorRT and of ONNX Runtime."""


def test_every_pattern_matches_a_knob() -> None:
    import fnmatch

    for rule in relevance_rules():
        for pattern in rule.names:
            assert fnmatch.filter(NAMES, pattern), pattern
    assert relevance_version() == 1


@pytest.mark.parametrize(
    ("knob", "acts_on", "not_on"),
    [
        ("mha_fusion:v2:flash", {"MatMul": 2, "Softmax": 1}, {"Conv": 1, "Softmax": 1}),
        ("mha_fusion:v1", {"com.microsoft::Attention": 1}, {"Conv": 1}),
        ("force_lower_grouped_deconv", {"ConvTranspose": 1}, {"Conv": 1}),
        ("conv_lowering", {"Conv": 1}, {"MatMul": 1}),
        ("group_norm:tma_kernel", {"GroupNormalization": 1}, {"LayerNormalization": 1}),
        ("quantize_ppg:reduce", {"QuantizeLinear": 1}, {"Conv": 1}),
        ("kgen:topk_algo", {"TopK": 1}, {"Conv": 1}),
        ("optimizer:QDQPropagationTransformer", {"DequantizeLinear": 1}, {"Conv": 1}),
    ],
)
def test_rules_say_what_the_names_say(
    knob: str, acts_on: dict[str, int], not_on: dict[str, int]
) -> None:
    assert unlikely([knob], acts_on) == {}
    assert "the network has no" in unlikely([knob], not_on)[knob]
    assert unlikely([knob], {}) == {}


def test_general_knobs_concern_every_network() -> None:
    for name in ("kgen:tiling", "tactic:global_tactics", "execution_mode", "threads:intra"):
        assert rule_of(name) is None


def test_most_of_tensorrts_knobs_remain_on_a_real_network() -> None:
    spec = load_model(fetch_public_model("squeezenet"))
    doubted = unlikely((knob.name for knob in bundled_database()), spec.operators)
    assert "mha_fusion:v2" in doubted
    assert "conv_lowering" not in doubted
    assert 40 < len(doubted) < 140
