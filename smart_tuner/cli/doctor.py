"""``smart-tuner doctor``: what this machine can tune, and what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import psutil
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smart_tuner import __version__
from smart_tuner.cli.errors import guarded
from smart_tuner.cli.finding import Finding
from smart_tuner.cli.gpu_findings import COMPILERS, CompilerFacts, GpuFacts, gpu_findings
from smart_tuner.cli.gpus import nvidia_gpus
from smart_tuner.cli.output import print_json
from smart_tuner.devices.cpu import cpu_quota, processor_name
from smart_tuner.devices.gpu import read_gpus
from smart_tuner.engine.backend import installed_backends, load_backend
from smart_tuner.errors import SmartTunerError
from smart_tuner.study.setup.plan import query_platform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HELP = "Say what this machine can tune, what is missing, and how to get it."
EXAMPLE = "smart-tuner doctor"
NEEDS_ARGUMENTS = False

PRETENDERS = {"replay": "answers from simulated or recorded compilers: for tests, no real network"}
"""Backends that build nothing: they are named, but do not make a machine fit."""

ON_A_GPU = "onnxruntime-cuda"
"""A backend that another build of an installed package brings: missing, it is no fault."""

STYLES = {"ok": "green", "note": "yellow", "missing": "red"}
ROUTE_SOURCE = "build route"
LEAST_FREE_BYTES = 1 << 30
BUSY_SHARE = 0.5


@guarded
def command(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False
) -> int:
    """Look at everything; 3 if no backend can work here."""
    findings = [*_machine(), *_backends()]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    works = any(item.subject.startswith("backend") and item.state == "ok" for item in findings)
    return 0 if works else 3


def _print(findings: Sequence[Finding]) -> None:
    console = Console()
    if not console.is_terminal:
        for finding in findings:
            print(f"{finding.state:>7}  {finding.subject}: {finding.text}")
        return
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        state = Text(finding.state, style=STYLES[finding.state])
        table.add_row(state, Text(finding.subject), Text(finding.text))
    console.print(table)


def _machine() -> Iterator[Finding]:
    version = platform.python_version()
    yield Finding("smart-tuner", "ok", f"{__version__} on Python {version}, {sys.executable}")
    yield _processors()
    memory = psutil.virtual_memory()
    yield Finding(
        "memory", "ok", f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"
    )
    yield _load()
    yield _governor()
    free = shutil.disk_usage(tempfile.gettempdir()).free
    state = "ok" if free > LEAST_FREE_BYTES else "note"
    yield Finding("temporary space", state, f"{free / 1e9:.1f} GB free in {tempfile.gettempdir()}")


def _processors() -> Finding:
    quota, total = cpu_quota(), os.cpu_count() or 1
    text = f"{processor_name()}, {quota} of {total} processors allowed"
    if quota == total:
        return Finding("processor", "ok", text)
    hint = "thread knobs stay within that; production should have the same quota"
    return Finding("processor", "note", f"{text}: {hint}")


def _load() -> Finding:
    busy = os.getloadavg()[0]
    if busy < BUSY_SHARE * cpu_quota():
        return Finding("load", "ok", f"{busy:.1f} processors busy over the last minute")
    text = (
        f"{busy:.1f} processors busy over the last minute: intervals will be wide; stop other work"
    )
    return Finding("load", "note", text)


def _governor() -> Finding:
    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not path.exists():
        return Finding("clock", "ok", "no frequency scaling visible here")
    governor = path.read_text(encoding="ascii").strip()
    if governor == "performance":
        return Finding("clock", "ok", "governor performance")
    remedy = "`sudo cpupower frequency-set -g performance` steadies figures"
    return Finding("clock", "note", f"governor {governor}: {remedy}")


def _backends() -> Iterator[Finding]:
    providers = ""
    for name in installed_backends():
        subject = f"backend {name}"
        if name in COMPILERS or (name == ON_A_GPU and "CUDA" not in providers):
            continue
        if name in PRETENDERS:
            yield Finding(subject, "note", PRETENDERS[name])
            continue
        try:
            found = query_platform(name)
            knobs = len(load_backend(name).knobs(None))
        except SmartTunerError as error:
            yield Finding(subject, "missing", str(error))
            continue
        providers += found.details.get("providers", "")
        yield Finding(subject, "ok", f"{found.backend_version}, {knobs} knobs")
    facts = GpuFacts(
        names=nvidia_gpus(),
        states=read_gpus(),
        compilers=tuple(map(_compiler, COMPILERS)),
        has_cuda_runtime="CUDA" in providers,
    )
    yield from gpu_findings(facts)


def _compiler(name: str) -> CompilerFacts:
    """Look at a compiler for GPUs: knobs can be had without a GPU, a platform cannot."""
    if not any(find_spec(module) for module in COMPILERS[name]):
        return CompilerFacts(name)
    try:
        knobs = load_backend(name).knobs(None)
    except SmartTunerError as error:
        return CompilerFacts(name, is_installed=True, problem=str(error))
    routes = sum(knob.source == ROUTE_SOURCE for knob in knobs)
    version, problem = knobs.tuner_version, ""
    try:
        version = query_platform(name).backend_version
    except SmartTunerError as error:
        problem = str(error)
    return CompilerFacts(name, True, version, len(knobs), routes, problem)  # noqa: FBT003
