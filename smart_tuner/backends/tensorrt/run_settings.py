"""Settings of a base that act on the run: how work is launched, what is timed, what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCHES = ("auto", "graph", "enqueue")
OBJECTIVES = ("end_to_end", "compute", "throughput")
PLACES = ("host", "device", "zero_copy")
MOST_STREAMS = 64


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a base says about the run.

    Attributes:
        launch: ``graph`` launches a captured CUDA graph, ``enqueue`` launches kernel by kernel,
            ``auto`` finds out which is faster.
        objective: ``end_to_end`` times from host inputs to host outputs, ``compute`` the engine
            alone (comparable with trtexec's GPU Compute Time), ``throughput`` the rate of
            several streams together.
        io: Where inputs and outputs lie: on the ``host`` and copied, on the ``device``, or on the
            host without copies (``zero_copy``, for GPUs that share the host's memory).
        streams: Streams of ``throughput``, each with a context of its own.
        cold_l2: Whether the level 2 cache is overwritten before each run.
        states: Pairs of an input and the output that replaces it in the next run (KV caches).
    """

    launch: str = "auto"
    objective: str = "end_to_end"
    io: str = "host"
    streams: int = 1
    cold_l2: bool = False
    states: tuple[tuple[str, str], ...] = ()


def read_run_settings(base: Mapping[str, str]) -> RunSettings:
    """Read what a base says about the run; other settings are not looked at.

    Raises:
        UserInputError: A value is not one that its setting takes, or two do not go together.
    """
    settings = RunSettings(
        launch=_one_of(base, "launch", LAUNCHES),
        objective=_one_of(base, "objective", OBJECTIVES),
        io=_one_of(base, "io", PLACES),
        streams=_streams(base.get("streams", "")),
        cold_l2=_one_of(base, "cold_l2", ("off", "on")) == "on",
        states=_states(base.get("states", "")),
    )
    if settings.streams > 1 and settings.objective != "throughput":
        msg = f"streams = {settings.streams}: only objective = throughput uses several."
        raise UserInputError(msg)
    if settings.cold_l2 and settings.objective == "throughput":
        msg = "cold_l2 = on: streams that run at once have no cold cache; leave it out."
        raise UserInputError(msg)
    return settings


def _one_of(base: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    value = base.get(name, values[0])
    if value not in values:
        msg = f"{name} = {value}: not one of {', '.join(values)}."
        raise UserInputError(msg)
    return value


def _streams(text: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not 1 <= int(text) <= MOST_STREAMS:
        msg = f"streams = {text}: give a whole number from 1 to {MOST_STREAMS}."
        raise UserInputError(msg)
    return int(text)


def _states(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``past:present past2:present2``; names of tensors may hold slashes and dots."""
    pairs = []
    for item in text.split():
        past, colon, present = item.partition(":")
        if not (past and colon and present) or ":" in present:
            msg = f"states: {item!r} is not of the form past:present (an input and an output)."
            raise UserInputError(msg)
        pairs.append((past, present))
    for place, names in enumerate(zip(*pairs, strict=True)):
        if len(set(names)) < len(names):
            what = ("input", "output")[place]
            msg = f"states: an {what} stands in two pairs; each belongs into one."
            raise UserInputError(msg)
    return tuple(pairs)
