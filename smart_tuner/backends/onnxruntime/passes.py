"""What the runtime's graph optimizers and rewrite rules do, in one sentence each.

Which optimizers exist is read from the runtime itself; this table only explains them. Rewrite
rules are not named in the runtime's log, so the rules below are offered if their name occurs in
the installed binary.
"""

from __future__ import annotations

OPTIMIZERS = {
    "Level1_RuleBasedTransformer": "Run all rewrite rules of level 1.",
    "Level2_RuleBasedTransformer": "Run all rewrite rules of level 2.",
    "DoubleQDQPairsRemover": "Remove doubled quantize/dequantize pairs.",
    "ConstantSharing": "Keep equal scalar constants once.",
    "CommonSubexpressionElimination": "Compute equal subexpressions once.",
    "ConstantFolding": "Compute nodes with constant inputs while loading.",
    "MatMulAddFusion": "Fuse MatMul and Add into Gemm.",
    "ReshapeFusion": "Turn shape computations before Reshape into a constant.",
    "FreeDimensionOverrideTransformer": "Fix free dimensions to the sizes that were given.",
    "SliceConcatToSpaceToDepthFusion": "Turn strided slices and Concat into SpaceToDepth.",
    "GeluFusionL1": "Fuse the nodes of Gelu into the ONNX operator.",
    "GeluFusionL2": "Fuse the nodes of Gelu into the runtime's own operator.",
    "LayerNormFusionL1": "Fuse the nodes of LayerNormalization into the ONNX operator.",
    "LayerNormFusionL2": "Fuse the nodes of LayerNormalization into the runtime's operator.",
    "QDQPropagationTransformer": "Move quantization across nodes that only move data.",
    "WeightBiasQuantization": "Quantize constant weights and biases of quantized nodes.",
    "EnsureUniqueDQForNodeUnit": "Give every consumer its own DequantizeLinear.",
    "WhereDummyDq": "Complete half-quantized Where nodes.",
    "TransposeOptimizer": "Push transposes through the graph until they cancel.",
    "TransposeOptimizer_CPUExecutionProvider": "Push transposes through the CPU's own operators.",
    "QDQS8ToU8Transformer": "Turn signed into unsigned 8-bit quantization.",
    "QDQSelectorActionTransformer": "Replace quantize/dequantize groups by integer kernels.",
    "GemmActivationFusion": "Fuse Gemm with the activation after it.",
    "MatMulIntegerToFloatFusion": "Fuse an integer MatMul with its scaling to float.",
    "DynamicQuantizeMatMulFusion": "Fuse dynamic quantization with its MatMul.",
    "ConvActivationFusion": "Fuse Conv with the activation after it.",
    "SimplifiedLayerNormFusion": "Fuse the nodes of RMS normalization.",
    "AttentionFusion": "Fuse the nodes of self-attention.",
    "EmbedLayerNormFusion": "Fuse embedding look-ups with the normalization after them.",
    "GatherSliceToSplitFusion": "Turn several Gathers or Slices of one tensor into Split.",
    "GatherToSliceFusion": "Turn Gather of a range into Slice.",
    "MatmulTransposeFusion": "Take Transpose into MatMul.",
    "BiasGeluFusion": "Fuse the addition of a bias with Gelu.",
    "GroupQueryAttentionFusion": "Fuse rotary embeddings into grouped-query attention.",
    "GroupQueryAttentionPreNormFusion": "Fuse query and key norms into grouped-query attention.",
    "SkipLayerNormFusion": "Fuse a residual addition with the normalization after it.",
    "BiasSkipLayerNormFusion": "Fuse bias, residual addition and normalization.",
    "FastGeluFusion": "Fuse the nodes of the tanh form of Gelu.",
    "QuickGeluFusion": "Fuse the nodes of the sigmoid form of Gelu.",
    "SwiGluFusion": "Fuse the nodes of a gated activation.",
    "GeluApproximation": "Replace Gelu by its tanh approximation.",
    "BiasSoftmaxFusion": "Fuse the addition of a mask with Softmax.",
    "BiasDropoutFusion": "Fuse the addition of a bias with Dropout.",
    "MatMulScaleFusion": "Take scaling by a constant into MatMul.",
    "MatMulActivationFusion": "Fuse MatMul with the activation after it.",
    "MatMulNBitsFusion": "Fuse what stands round a low-bit MatMul.",
    "DQMatMulToMatMulNBitsFusion": "Turn dequantized low-bit weights and MatMul into one node.",
    "QDQFinalCleanupTransformer": "Remove quantize/dequantize pairs left at the end.",
    "NchwcTransformer": "Run convolutions in a channel-blocked layout.",
    "NhwcTransformer": "Run convolutions with channels last.",
    "ConvAddActivationFusion": "Fuse Conv, residual addition and activation.",
    "Avx2WeightS8ToU8Transformer": "Turn signed into unsigned 8-bit weights for AVX2 kernels.",
    "FuseFp16InitializerToFp32NodeTransformer": "Convert float16 weights of float32 nodes early.",
}

RULES = {
    "CastElimination": "Remove casts that change nothing.",
    "ClipQuantRewrite": "Remove a Clip that the quantization after it repeats.",
    "ConvAddFusion": "Take the addition of a constant into Conv.",
    "ConvBNFusion": "Take BatchNormalization into Conv.",
    "ConvMulFusion": "Take multiplication by a constant into Conv.",
    "DivMulFusion": "Turn a reciprocal and its product into a division.",
    "EliminateDropout": "Remove Dropout, which does nothing in inference.",
    "EliminateIdentity": "Remove Identity nodes.",
    "EliminateSlice": "Remove slices that take everything.",
    "ExpandElimination": "Remove expansions to the same shape.",
    "FuseReluClip": "Fuse Relu and Clip.",
    "GemmSumFusion": "Take the addition after Gemm into its bias.",
    "GemmTransposeFusion": "Take Transpose into Gemm.",
    "LabelEncoderFusion": "Fuse two label encoders.",
    "MatMul_BatchNormalization_Fusion": "Take BatchNormalization into MatMul.",
    "NoopElimination": "Remove additions of zero and products with one.",
    "NotWhereFusion": "Turn Not before Where into swapped branches.",
    "Pad_Fusion": "Take Pad into the convolution or pooling after it.",
    "PreShapeNodeElimination": "Remove nodes before Shape that keep the shape.",
    "ReluQuantRewrite": "Remove a Relu that the quantization after it repeats.",
    "UnsqueezeElimination": "Turn Unsqueeze of a constant into a constant.",
}

RULE_GROUPS = ("Level1_RuleBasedTransformer", "Level2_RuleBasedTransformer")

# Run whether or not they are switched off: the runtime needs them for a correct graph.
REQUIRED = frozenset(
    {
        "CastFloat16Transformer",
        "InsertCastTransformer",
        "MemcpyTransformer",
        "RemoveDuplicateCastTransformer",
    }
)


def optimizer_help(name: str, level: int) -> str:
    """One sentence on a graph optimizer, known or new; level 0 is an unknown level."""
    of_level = f" of level {level}" if level else ""
    return OPTIMIZERS.get(name, f"Graph optimizer {name}{of_level}.")
