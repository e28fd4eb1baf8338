"""Options of the CUDA execution provider as knobs; a small table of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.backends.onnxruntime.option import Acts
from smart_tuner.backends.onnxruntime.options import OPTION_BY_NAME
from smart_tuner.knobs.knob import Knob

if TYPE_CHECKING:
    from collections.abc import Collection

PROVIDER = "CUDAExecutionProvider"
PREFIX = "cuda:"
_SWITCH = ("0", "1")
_CONVOLUTIONS = ("Conv", "ConvTranspose", "FusedConv", "QLinearConv")
_ATTENTION = ("Attention", "com.microsoft::Attention", "com.microsoft::MultiHeadAttention")
_NORMALIZATIONS = ("LayerNormalization", "SkipLayerNormalization", "ReduceMean")


@dataclass(frozen=True, slots=True)
class CudaOption:
    """One provider option; values go to the provider as they stand.

    Attributes:
        key: Its name.
        values: Values in search order.
        default: What the provider does by itself.
        help: One sentence.
        needs: Operators of which the model must have one, else the knob is idle.
    """

    key: str
    values: tuple[str, ...]
    default: str
    help: str
    needs: tuple[str, ...] = ()


CUDA_OPTIONS: tuple[CudaOption, ...] = (
    CudaOption("enable_cuda_graph", _SWITCH, "0", "Replay a run as one CUDA graph."),
    CudaOption("prefer_nhwc", _SWITCH, "0", "Run convolutions with channels last.", _CONVOLUTIONS),
    CudaOption("use_tf32", _SWITCH, "1", "Multiply float32 in TF32 on tensor cores."),
    CudaOption(
        "cudnn_conv_algo_search",
        ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
        "EXHAUSTIVE",
        "How a convolution algorithm is chosen.",
        _CONVOLUTIONS,
    ),
    CudaOption(
        "cudnn_conv_use_max_workspace",
        _SWITCH,
        "1",
        "Allow algorithms that need much workspace.",
        _CONVOLUTIONS,
    ),
    CudaOption(
        "cudnn_conv1d_pad_to_nc1d",
        _SWITCH,
        "0",
        "Pad 1-D convolutions at the other dimension.",
        _CONVOLUTIONS,
    ),
    CudaOption("fuse_conv_bias", _SWITCH, "0", "Fuse Conv with its bias in cuDNN.", _CONVOLUTIONS),
    CudaOption("tunable_op_enable", _SWITCH, "0", "Use operators that come in several kernels."),
    CudaOption("tunable_op_tuning_enable", _SWITCH, "0", "Time those kernels and keep the best."),
    CudaOption("do_copy_in_default_stream", _SWITCH, "1", "Copy in the stream that computes."),
    CudaOption(
        "arena_extend_strategy",
        ("kNextPowerOfTwo", "kSameAsRequested"),
        "kNextPowerOfTwo",
        "How the memory arena grows.",
    ),
    CudaOption(
        "enable_skip_layer_norm_strict_mode",
        _SWITCH,
        "0",
        "Add up residual normalizations in float32.",
        _NORMALIZATIONS,
    ),
    CudaOption(
        "sdpa_kernel",
        ("0", "1", "2", "4", "8", "16"),
        "0",
        "Attention kernel: 1 flash, 2 efficient, 4 TensorRT, 8 cuDNN, 16 plain; 0 leaves it open.",
        _ATTENTION,
    ),
    CudaOption(
        "use_ep_level_unified_stream", _SWITCH, "0", "Run all of a session in one CUDA stream."
    ),
)

CUDA_OPTION_BY_NAME = {f"{PREFIX}{option.key}": option for option in CUDA_OPTIONS}


_PROCESSOR_ONLY = frozenset(
    (
        *("threads:intra", "threads:inter", "run:memory_arena_shrinkage"),
        *("session:enable_cpu_mem_arena", "session:set_denormal_as_zero"),
        *("session:dynamic_block_base", "session:x64quantprecision", "session:qdqisint8allowed"),
    )
)


def idle_with_cuda(name: str) -> str:
    """Why a session, run or thread knob cannot act on a GPU, or nothing."""
    option = OPTION_BY_NAME.get(name)
    of_threads = option is not None and option.acts in {Acts.WORKERS, Acts.PARALLEL}
    of_kernels = option is not None and option.target.startswith("mlas.")
    if name in _PROCESSOR_ONLY or of_threads or of_kernels:
        return "acts on the processor, not on a GPU"
    return ""


def cuda_knobs(operators: Collection[str] | None = None) -> tuple[Knob, ...]:
    """All CUDA options as knobs.

    Args:
        operators: Those of the model; options that need others are idle. None without a model.
    """
    return tuple(
        Knob(
            name,
            option.values,
            option.default,
            option.help,
            "provider option",
            idle=_missing(option, operators),
        )
        for name, option in CUDA_OPTION_BY_NAME.items()
    )


def _missing(option: CudaOption, operators: Collection[str] | None) -> str:
    if operators is None or not option.needs or set(operators) & set(option.needs):
        return ""
    return f"no {' or '.join(option.needs[:2])} in this model"
