"""What ``doctor`` says of GPUs and of the compilers for them, from the facts of a machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.cli.finding import Finding
from smart_tuner.devices.gpu import GpuState, lock_clocks_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GPU = "NVIDIA GPU"

COMPILERS: Mapping[str, tuple[str, ...]] = {
    "tensorrt": ("tensorrt", "tensorrt_bindings"),
    "tensorrt-rtx": ("tensorrt_rtx", "tensorrt_rtx_bindings"),
}
"""Backends that need an NVIDIA GPU, and the modules of which one has to be installed."""

TITLES = {"tensorrt": "TensorRT", "tensorrt-rtx": "TensorRT-RTX"}


@dataclass(frozen=True, slots=True)
class CompilerFacts:
    """What was found of one compiler for GPUs.

    Attributes:
        backend: Name of its backend.
        is_installed: Whether its Python module is there.
        version: Name and version, if it loads.
        knobs: How many knobs it has.
        routes: How many of them are build routes.
        problem: Why it cannot be tuned here; empty if it can.
    """

    backend: str
    is_installed: bool = False
    version: str = ""
    knobs: int = 0
    routes: int = 0
    problem: str = ""

    @property
    def is_fit(self) -> bool:
        """Whether it can be tuned here."""
        return bool(self.version) and not self.problem


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What was found of GPUs on this machine.

    Attributes:
        names: GPUs that the driver lists.
        states: What NVML tells of each; empty without NVML.
        compilers: Compilers for them.
        has_cuda_runtime: Whether the installed ONNX Runtime can use them.
    """

    names: tuple[str, ...] = ()
    states: tuple[GpuState, ...] = ()
    compilers: tuple[CompilerFacts, ...] = ()
    has_cuda_runtime: bool = False

    @property
    def has_gpu(self) -> bool:
        """Whether there is a GPU with its driver."""
        return bool(self.names or self.states)


def gpu_findings(facts: GpuFacts) -> Iterator[Finding]:
    """Say what is there, what is missing, and the next step."""
    for compiler in facts.compilers:
        yield _compiler(compiler, facts)
    if not facts.has_gpu:
        text = "none here, or no NVIDIA driver (`nvidia-smi` lists it; a container needs `--gpus all`)"
        yield Finding(GPU, "note", f"{text}; the CPU is tuned")
        return
    for number, state in enumerate(facts.states):
        yield from _state(state, f"{GPU} {number}" if len(facts.states) > 1 else GPU)
    if not facts.states:
        hint = "clocks and load cannot be seen: `pip install 'smart-tuner[gpu]'`"
        yield Finding(GPU, "ok", f"{', '.join(facts.names)}; {hint}")
    yield _runtime(facts)


def _compiler(found: CompilerFacts, facts: GpuFacts) -> Finding:
    subject, title = f"backend {found.backend}", TITLES.get(found.backend, found.backend)
    install = f"`pip install 'smart-tuner[{found.backend}]'`"
    if found.is_fit:
        return Finding(subject, "ok", f"{found.version}, {_knobs(found)}")
    if found.version and not facts.has_gpu:
        text = (
            f"{found.version}, {_knobs(found)}: builds only, since there is no NVIDIA GPU with its "
            "driver here; tune on a machine that has one"
        )
        return Finding(subject, "note", text)
    if found.is_installed:
        return Finding(subject, "missing", found.problem)
    if not facts.has_gpu:
        text = (
            f"{title} is not installed, and there is no GPU to run it on; its knobs can be looked "
            "at with `smart-tuner knobs --database tensorrt-2.19.45`"
        )
        return Finding(subject, "note", text)
    is_alone = not any(other.is_fit for other in facts.compilers)
    why = "to tune it on this GPU" if is_alone else "to tune it as well"
    return Finding(
        subject, "missing" if is_alone else "note", f"{title} is not installed; {why}: {install}"
    )


def _knobs(found: CompilerFacts) -> str:
    if found.routes:
        return f"{found.knobs} knobs, {found.routes} of them build routes"
    text = f"{found.knobs} knobs of its builder"
    if found.backend != "tensorrt":
        return f"{text}, as it has no build routes"
    return (
        f"{text}; build routes come with TensorRT 11.1 on Linux: "
        "`pip install -U 'smart-tuner[tensorrt]'`"
    )


def _state(state: GpuState, subject: str) -> Iterator[Finding]:
    parts = [state.name or "of unknown name"]
    if state.driver:
        parts.append(f"driver {state.driver}")
    if state.cuda_version:
        parts.append(f"CUDA up to {state.cuda_version}")
    if state.memory_total_bytes:
        parts.append(f"{state.memory_total_bytes / (1 << 30):.0f} GiB")
    yield Finding(subject, "ok", ", ".join(parts))
    if state.is_mig:
        text = (
            "cut into slices (MIG): others in the next slice share its power and clocks; name a "
            "slice with CUDA_VISIBLE_DEVICES"
        )
        yield Finding(f"{subject}, slices", "note", text)
    if state.is_mps:
        text = "shared through the multi-process service (MPS): intervals will be wide"
        yield Finding(f"{subject}, sharing", "note", text)
    if others := state.foreign((os.getpid(),)):
        text = (
            f"busy with {len(others)} other processes ({', '.join(map(str, others[:5]))}): "
            "measuring waits for them a while, then goes on; stop them"
        )
        yield Finding(f"{subject}, load", "note", text)
    if command := lock_clocks_command(state):
        text = (
            f"up to {state.max_sm_clock_mhz} MHz; an administrator can hold them still: {command}"
        )
        yield Finding(f"{subject}, clocks", "note", text)


def _runtime(facts: GpuFacts) -> Finding:
    subject = "ONNX Runtime on the GPU"
    if facts.has_cuda_runtime:
        hint = "`--backend onnxruntime-cuda` tunes it"
        return Finding(subject, "ok", hint)
    hint = "to tune it, replace onnxruntime: `pip uninstall onnxruntime`, then `pip install onnxruntime-gpu`"
    return Finding(subject, "note", hint)
