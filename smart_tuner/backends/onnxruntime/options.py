"""Session and run options that are knobs, beside the graph optimizers.

A configuration entry that the runtime does not know is accepted in silence, so an option of kind
``config`` or ``run`` is offered only if its key occurs in the installed binary
(``catalogue.py``). An entry at its default is never written: the runtime's own default rules.
"""

from __future__ import annotations

from smart_tuner.backends.onnxruntime.option import (
    SWITCH,
    Acts,
    Kind,
    Option,
    attribute,
    number,
    switch,
)

_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")
_FOUR_BIT = (*_QUANTIZED, "com.microsoft::MatMulNBits")

LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}
ORDERS = {"default": "DEFAULT", "priority": "PRIORITY_BASED"}
"""The third, ``MEMORY_EFFICIENT``, needs a build for training; released packages refuse it."""

OPTIONS: tuple[Option, ...] = (
    Option(
        "graph_optimization_level",
        "graph_optimization_level",
        Kind.ATTRIBUTE,
        tuple(LEVELS),
        "all",
        "How many levels of graph optimizers run.",
        Acts.GRAPH,
    ),
    Option(
        "execution_mode",
        "execution_mode",
        Kind.ATTRIBUTE,
        tuple(MODES),
        "sequential",
        "Whether independent nodes run side by side on the inter-op threads.",
    ),
    Option(
        "execution_order",
        "execution_order",
        Kind.ATTRIBUTE,
        tuple(ORDERS),
        "default",
        "Order in which nodes run that could run in any order.",
    ),
    attribute("enable_cpu_mem_arena", "on", "Keep freed memory in an arena for the next run."),
    attribute(
        "enable_mem_pattern", "on", "Allocate a run's memory as one block once shapes are known."
    ),
    attribute("enable_mem_reuse", "on", "Let nodes reuse buffers that are no longer needed."),
    attribute(
        "use_deterministic_compute", "off", "Take only kernels that give the same result each run."
    ),
    switch("session.disable_prepacking", "off", "Leave weights in the layout of the model file."),
    switch(
        "session.set_denormal_as_zero",
        "off",
        "Treat denormal numbers as zero; the first session of a process decides for all.",
    ),
    switch(
        "session.intra_op.allow_spinning",
        "on",
        "Let idle intra-op threads spin before they sleep.",
        Acts.WORKERS,
    ),
    number(
        "session.intra_op.spin_duration_us",
        ("auto", "100", "1000", "10000"),
        "Microseconds that an idle intra-op thread spins before it sleeps.",
        Acts.WORKERS,
    ),
    number(
        "session.intra_op.spin_backoff_max",
        ("auto", "4", "16", "64"),
        "Most pauses between two looks for work of a spinning intra-op thread.",
        Acts.WORKERS,
    ),
    switch(
        "session.inter_op.allow_spinning",
        "on",
        "Let idle inter-op threads spin before they sleep; acts in parallel mode only.",
        Acts.PARALLEL,
    ),
    number(
        "session.inter_op.spin_duration_us",
        ("auto", "100", "1000", "10000"),
        "Microseconds that an idle inter-op thread spins; acts in parallel mode only.",
        Acts.PARALLEL,
    ),
    number(
        "session.inter_op.spin_backoff_max",
        ("auto", "4", "16", "64"),
        "Most pauses of a spinning inter-op thread; acts in parallel mode only.",
        Acts.PARALLEL,
    ),
    switch(
        "session.force_spinning_stop",
        "off",
        "Stop all spinning as soon as the last run has returned.",
        Acts.WORKERS,
    ),
    number(
        "session.dynamic_block_base",
        ("auto", "1", "2", "4", "8"),
        "Split parallel loops into blocks that shrink towards the end; auto splits evenly.",
        Acts.WORKERS,
    ),
    switch(
        "session.use_device_allocator_for_initializers",
        "off",
        "Allocate weights outside the memory arena.",
    ),
    switch(
        "session.prepack.enable_parallel",
        "off",
        "Prepack weights on several threads.",
        Acts.LOADING,
    ),
    switch(
        "session.disable_aot_function_inlining",
        "off",
        "Do not inline the model's local functions before optimizing.",
        Acts.GRAPH,
    ),
    Option(
        "session:graph_optimizations_loop_level",
        "session.graph_optimizations_loop_level",
        Kind.CONFIG,
        ("0", "1", "2"),
        "1",
        "Repeat the optimizers: 0 never, 1 after changes on level 4, 2 after any from level 2 on.",
        Acts.GRAPH,
    ),
    switch(
        "session.disable_quant_qdq",
        "off",
        "Run quantize/dequantize pairs as they stand, without integer kernels.",
        Acts.GRAPH,
        _QUANTIZED,
    ),
    switch(
        "session.enable_quant_qdq_cleanup",
        "off",
        "Remove quantize/dequantize pairs that are left at the end.",
        Acts.GRAPH,
        _QUANTIZED,
    ),
    switch(
        "session.disable_double_qdq_remover",
        "off",
        "Keep doubled quantize/dequantize pairs.",
        Acts.GRAPH,
        _QUANTIZED,
    ),
    switch(
        "session.disable_qdq_constant_folding",
        "off",
        "Do not fold the dequantization of constant weights.",
        Acts.GRAPH,
        _QUANTIZED,
    ),
    switch(
        "session.qdqisint8allowed",
        "auto",
        "Allow signed 8-bit activations in integer kernels.",
        Acts.RUN,
        _QUANTIZED,
    ),
    switch(
        "session.x64quantprecision",
        "off",
        "Use unsigned weights in integer products, which cannot overflow 16 bits.",
        Acts.RUN,
        _QUANTIZED,
    ),
    switch(
        "session.enable_dq_matmulnbits_fusion",
        "off",
        "Turn a dequantized low-bit weight and its MatMul into one low-bit MatMul.",
        Acts.RUN,
        _QUANTIZED,
    ),
    Option(
        "session:qdq_matmulnbits_accuracy_level",
        "session.qdq_matmulnbits_accuracy_level",
        Kind.CONFIG,
        ("auto", "0", "1", "2", "3", "4"),
        "auto",
        "Type that a fused low-bit MatMul computes in: 1 float32, 2 float16, 3 bfloat16, 4 int8.",
        Acts.RUN,
        needs=_FOUR_BIT,
    ),
    number(
        "session.qdq_matmulnbits_block_size",
        ("auto", "16", "32", "64", "128"),
        "Block size of low-bit MatMuls that are made from whole dequantized weights.",
        Acts.RUN,
        _QUANTIZED,
    ),
    switch(
        "optimization.enable_gelu_approximation",
        "off",
        "Replace Gelu by a faster tanh approximation.",
        Acts.GRAPH,
        ("Erf", "Gelu", "Tanh", "com.microsoft::Gelu", "com.microsoft::FastGelu"),
    ),
    switch(
        "optimization.enable_cast_chain_elimination",
        "off",
        "Shorten chains of casts, which may change rounding.",
        Acts.GRAPH,
        ("Cast",),
    ),
    number(
        "optimization.constant_folding_max_output_size_in_bytes",
        ("auto", "1024", "65536", "1048576"),
        "Fold a node into a constant only if the constant has at most this many bytes.",
        Acts.GRAPH,
    ),
    switch(
        "mlas.nchwc_depthwise_sliding",
        "auto",
        "Run depthwise convolutions in blocked layout with a sliding window.",
        Acts.RUN,
        ("Conv",),
    ),
    number(
        "mlas.nchwc_pointwise_conv_max_input_channel_batch",
        ("auto", "32", "64", "128", "256"),
        "Input channels that a 1x1 convolution in blocked layout takes at a time.",
        Acts.RUN,
        ("Conv",),
    ),
    switch(
        "mlas.use_lut_gemm",
        "off",
        "Multiply low-bit weights by table look-up.",
        Acts.RUN,
        _FOUR_BIT,
    ),
    switch(
        "mlas.qnbit.force_fp32",
        "off",
        "Compute low-bit MatMuls in float32 instead of int8.",
        Acts.RUN,
        _FOUR_BIT,
    ),
    Option(
        "session:mlas.disable_kleidiai",
        "mlas.disable_kleidiai",
        Kind.CONFIG,
        SWITCH,
        "off",
        "Do not use Arm's KleidiAI kernels.",
        machines=("aarch64", "arm64"),
    ),
    Option(
        "session:mlas.enable_gemm_fastmath_arm64_bfloat16",
        "mlas.enable_gemm_fastmath_arm64_bfloat16",
        Kind.CONFIG,
        SWITCH,
        "off",
        "Multiply float32 matrices in bfloat16.",
        machines=("aarch64", "arm64"),
    ),
    Option(
        "run:memory_arena_shrinkage",
        "memory.enable_memory_arena_shrinkage",
        Kind.RUN,
        SWITCH,
        "off",
        "Give unused arena memory back after every run.",
    ),
)

OPTION_BY_NAME = {option.name: option for option in OPTIONS}
