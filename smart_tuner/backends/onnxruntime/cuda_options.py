"""Options of the CUDA execution provider as knobs; a small table of its own.

They act only where the base says ``provider = cuda``, so they are opt-in.
"""

from __future__ import annotations

from dataclasses import dataclass

from smart_tuner.knobs.knob import Knob

PROVIDER = "CUDAExecutionProvider"
PREFIX = "cuda:"
_OPT_IN = "needs `provider = cuda` in the base"
_SWITCH = ("0", "1")


@dataclass(frozen=True, slots=True)
class CudaOption:
    """One provider option; values go to the provider as they stand."""

    key: str
    values: tuple[str, ...]
    default: str
    help: str


CUDA_OPTIONS: tuple[CudaOption, ...] = (
    CudaOption("enable_cuda_graph", _SWITCH, "0", "Replay a run as one CUDA graph."),
    CudaOption("prefer_nhwc", _SWITCH, "0", "Run convolutions with channels last."),
    CudaOption("use_tf32", _SWITCH, "1", "Multiply float32 in TF32 on tensor cores."),
    CudaOption(
        "cudnn_conv_algo_search",
        ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
        "EXHAUSTIVE",
        "How a convolution algorithm is chosen.",
    ),
    CudaOption(
        "cudnn_conv_use_max_workspace", _SWITCH, "1", "Allow algorithms that need much workspace."
    ),
    CudaOption(
        "cudnn_conv1d_pad_to_nc1d", _SWITCH, "0", "Pad 1-D convolutions at the other dimension."
    ),
    CudaOption("fuse_conv_bias", _SWITCH, "0", "Fuse Conv with its bias in cuDNN."),
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
    ),
)

CUDA_OPTION_BY_NAME = {f"{PREFIX}{option.key}": option for option in CUDA_OPTIONS}


def cuda_knobs() -> tuple[Knob, ...]:
    """All CUDA options as knobs."""
    return tuple(
        Knob(name, option.values, option.default, option.help, "provider option", opt_in=_OPT_IN)
        for name, option in CUDA_OPTION_BY_NAME.items()
    )
