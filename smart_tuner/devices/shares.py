"""Shares of one machine for workers that run beside each other: processors, or one GPU each."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CREW = "SMART_TUNER_CREW"
"""Environment variable of workers that another process of ours started: that process's id."""

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one worker runs.

    Attributes:
        processors: Numbers of the processors that it may use; empty for all that we may use.
        environment: Variables of its processes.
        name: What people call it.
    """

    name: str = ""
    processors: frozenset[int] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)


def processor_places(workers: int) -> tuple[Place, ...]:
    """Split the processors that this process may use into equal shares without overlap.

    Threads of one core stay in one share as far as that goes. What does not divide stays idle,
    so that all workers measure alike.

    Raises:
        UserInputError: There are fewer processors than workers.
    """
    usable = cpu_quota()
    if workers > usable:
        msg = f"--workers {workers}: this process may use {usable} processors; ask for fewer workers."
        raise UserInputError(msg)
    if workers == 1 or not hasattr(os, "sched_getaffinity"):
        return (Place(),) * workers
    mine = sorted(os.sched_getaffinity(0), key=lambda number: (_core_of(number), number))
    size = usable // workers
    shares = (mine[start : start + size] for start in range(0, workers * size, size))
    return tuple(
        Place(f"processors {' '.join(map(str, sorted(share)))}", frozenset(share))
        for share in shares
    )


def gpu_places(devices: str) -> tuple[Place, ...]:
    """One place for each GPU that is named.

    Args:
        devices: Numbers as ``nvidia-smi`` counts, separated by commas; where the environment
            shows only some GPUs, they count among those.

    Raises:
        UserInputError: A number is malformed or out of range.
    """
    shown = [item for item in os.environ.get(VISIBLE, "").split(",") if item]
    numbers = [item.strip() for item in devices.split(",")]
    for number in numbers:
        if not number.isdecimal() or (shown and int(number) >= len(shown)):
            among = f"; {VISIBLE} shows {len(shown)} of them" if shown else ""
            msg = (
                f"--devices {devices}: {number!r} is no GPU's number, as in --devices 0,1{among}."
            )
            raise UserInputError(msg)
    return tuple(
        Place(
            f"GPU {number}",
            environment={VISIBLE: shown[int(number)] if shown else number, ORDER: "PCI_BUS_ID"},
        )
        for number in numbers
    )


@contextmanager
def settled(place: Place) -> Iterator[None]:
    """Keep this process, and what it starts meanwhile, to a place."""
    before = {name: os.environ.get(name) for name in place.environment}
    processors = os.sched_getaffinity(0) if place.processors else frozenset()
    os.environ.update(place.environment)
    if place.processors:
        os.sched_setaffinity(0, place.processors)
    try:
        yield
    finally:
        if processors:
            os.sched_setaffinity(0, processors)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def crew_pids() -> tuple[int, ...]:
    """The process that started this worker, if one of ours did: what runs below it is no stranger."""
    text = os.environ.get(CREW, "")
    return (int(text),) if text.isdecimal() else ()


def processors_in_use() -> tuple[int, ...]:
    """Numbers of the processors that this process may run on, sorted; nothing if nobody says."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def _core_of(processor: int) -> int:
    """The lowest number among the threads of a processor's core."""
    path = _TOPOLOGY / f"cpu{processor}" / "topology" / "thread_siblings_list"
    try:
        first = path.read_text(encoding="ascii").replace("-", ",").split(",")[0]
        return int(first)
    except (OSError, ValueError):
        return processor
