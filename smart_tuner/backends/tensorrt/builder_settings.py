"""The builder's settings that trade speed for something else, in words.

Which of them a version has is probed (``builder_knobs``); here stands what each does. Left out:

* what decides how an engine may be used, not how fast it is: REFIT, STRIP_PLAN,
  VERSION_COMPATIBLE and the like are settings of the base, the safety and DLA flags are not
  supported;
* what only the build feels: the timing-cache flags, DISABLE_COMPILATION_CACHE, DEBUG,
  MONITOR_MEMORY, REJECT_EMPTY_ALGORITHMS, and the profiling verbosity, which the inspector needs;
* STRICT_TYPES, another name of OBEY_PRECISION_CONSTRAINTS.
"""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"
SWITCH = ("off", "on")

_ONNX_HAS_NONE = "acts on layers that are given a precision, and a parsed ONNX file gives none"
_NOT_SPEED = "asks for the same results everywhere at the price of speed"


@dataclass(frozen=True, slots=True)
class Number:
    """An integer attribute of the configuration; a negative reading is ``auto``.

    Attributes:
        attribute: Its name in the SDK.
        values: Values to try; those that do not read back as set are dropped.
        help: One sentence.
    """

    attribute: str
    values: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A member of one of the SDK's enums that can be on or off.

    Attributes:
        help: One sentence.
        opt_in: Why it is off unless asked for.
        idle: Why it cannot act on any network that this backend builds.
        needs: Operators of which a network must have one for it to act.
    """

    help: str
    opt_in: str = ""
    idle: str = ""
    needs: tuple[str, ...] = ()


NUMBERS = (
    Number(
        "builder_optimization_level",
        tuple(map(str, range(10))),
        "How long the compiler looks for faster kernels; higher is slower to build, not always "
        "faster to run.",
    ),
    Number(
        "max_aux_streams",
        ("0", "1", "2", "4"),
        "Most extra CUDA streams on which layers run side by side; auto lets the compiler choose.",
    ),
    Number(
        "avg_timing_iterations",
        ("1", "2", "4", "8"),
        "How many runs of a kernel are averaged while kernels are chosen; more build time, less "
        "luck.",
    ),
    Number(
        "max_num_tactics",
        ("1", "8", "32", "128"),
        "Most kernels that are timed for one layer; auto lets the compiler choose.",
    ),
    Number(
        "l2_limit_for_tiling",
        (),
        "Bytes of L2 cache that tiling may plan with; 0 lets the compiler choose, acts with tiling "
        "only.",
    ),
)

TILING_HELP = "How hard the compiler looks for ways to run layers tile by tile in cache."

WORKSPACE_VALUES = ("32", "256", "2048")
WORKSPACE_HELP = (
    "MiB of scratch memory that kernels may use; auto is the compiler's own limit, often all of "
    "the GPU's memory."
)

_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")

FLAGS = {
    "TF32": Switch("Let float32 products round their inputs to 10 bits, for tensor cores."),
    "FP16": Switch("Let layers run in float16 where that is faster."),
    "BF16": Switch("Let layers run in bfloat16 where that is faster."),
    "INT8": Switch(
        "Let layers run in int8; needs the scales that quantize/dequantize operators bring.",
        needs=_QUANTIZED,
    ),
    "FP8": Switch(
        "Let layers run in float8; needs the scales that quantize/dequantize operators bring.",
        needs=_QUANTIZED,
    ),
    "INT4": Switch("Let weights stay in packed 4-bit integers.", needs=_QUANTIZED),
    "FP4": Switch("Let layers run in 4-bit floats.", needs=_QUANTIZED),
    "SPARSE_WEIGHTS": Switch("Try kernels for weights of which two in four are zero."),
    "ENABLE_TACTIC_HEURISTIC": Switch("Guess good kernels instead of timing all of them."),
    "OBEY_PRECISION_CONSTRAINTS": Switch(
        "Fail where a layer cannot run in the precision that it is given.", idle=_ONNX_HAS_NONE
    ),
    "PREFER_PRECISION_CONSTRAINTS": Switch(
        "Run layers in the precision that they are given where possible.", idle=_ONNX_HAS_NONE
    ),
    "DIRECT_IO": Switch(
        "Insert no reformatting at inputs and outputs.",
        idle="acts on inputs and outputs with a format, which only io_formats in a base gives them",
    ),
    "STRICT_NANS": Switch("Compute 0*x and x-x as they are, NaN included.", opt_in=_NOT_SPEED),
    "DISTRIBUTIVE_INDEPENDENCE": Switch(
        "Give the same result along an axis that could be split up.", opt_in=_NOT_SPEED
    ),
}

PRECISION_FLAGS = ("FP16", "BF16", "INT8", "FP8", "INT4", "FP4")
"""Flags that a strongly typed network refuses: its types stand in the network."""

TACTIC_SOURCES = {
    "CUBLAS": "Try cuBLAS for matrix products.",
    "CUBLAS_LT": "Try cuBLASLt for matrix products.",
    "CUDNN": "Try cuDNN, mostly for convolutions.",
    "EDGE_MASK_CONVOLUTIONS": "Try convolutions that mask the edges of a tile.",
    "JIT_CONVOLUTIONS": "Try convolutions that are compiled for the layer at hand.",
}

LIBRARIES = {"CUBLAS": "libcublas", "CUBLAS_LT": "libcublasLt", "CUDNN": "libcudnn"}
"""The shared library that a tactic source calls."""

EXTERNAL_SOURCES = ("DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805",)
"""Preview features that only matter where one of these libraries is there."""

PREVIEW_FEATURES = {
    "FASTER_DYNAMIC_SHAPES_0805": Switch("Use the newer compiler for dynamic shapes."),
    "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": Switch(
        "Keep cuBLAS, cuBLASLt and cuDNN out of the compiler's own layers."
    ),
    "PROFILE_SHARING_0806": Switch(
        "Let execution contexts share an optimization profile.",
        idle="says what contexts may share, not how fast they run",
    ),
    "ALIASED_PLUGIN_IO_10_03": Switch(
        "Let plugins write into their inputs.",
        idle="says what plugins may do, not how fast they run",
    ),
    "RUNTIME_ACTIVATION_RESIZE_10_10": Switch(
        "Resize the memory for activations when shapes change."
    ),
}
