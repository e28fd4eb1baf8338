"""What a session or run option is, as a knob."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SWITCH = ("off", "on")


class Kind(str, Enum):
    """Where a value goes."""

    ATTRIBUTE = "attribute"
    CONFIG = "config"
    RUN = "run"


class Acts(str, Enum):
    """What a value can change."""

    GRAPH = "graph"  # only the optimized graph, so the compiled artefact shows it
    RUN = "run"  # how the graph runs
    WORKERS = "workers"  # how the intra-op threads wait for work; nothing without such threads
    PARALLEL = "parallel"  # how the inter-op threads wait; nothing in sequential mode
    LOADING = "loading"  # how fast the session loads, not how fast it runs


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: Knob name.
        target: Attribute of ``SessionOptions``, or configuration key.
        kind: Where the value goes.
        values: Values in search order.
        default: What the runtime does by itself; ``auto`` where it decides by platform.
        help: One sentence.
        acts: What it can change.
        is_open: Whether any integer >= 0 is legal.
        needs: Operators of which the model must have one, else the knob is idle.
        machines: Processor families on which it acts; empty for all.
    """

    name: str
    target: str
    kind: Kind
    values: tuple[str, ...]
    default: str
    help: str
    acts: Acts = Acts.RUN
    is_open: bool = False
    needs: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()


def attribute(target: str, default: str, text: str) -> Option:
    """An on/off attribute of ``SessionOptions``."""
    return Option(f"session:{target}", target, Kind.ATTRIBUTE, SWITCH, default, text)


def switch(
    key: str, default: str, text: str, acts: Acts = Acts.RUN, needs: tuple[str, ...] = ()
) -> Option:
    """An on/off configuration entry; ``auto`` as the default leaves it to the platform."""
    name = f"session:{key.removeprefix('session.')}"
    values = ("auto", *SWITCH) if default == "auto" else SWITCH
    return Option(name, key, Kind.CONFIG, values, default, text, acts, needs=needs)


def number(
    key: str,
    values: tuple[str, ...],
    text: str,
    acts: Acts = Acts.RUN,
    needs: tuple[str, ...] = (),
) -> Option:
    """A configuration entry with an integer; the first value is the default."""
    name = f"session:{key.removeprefix('session.')}"
    return Option(name, key, Kind.CONFIG, values, values[0], text, acts, is_open=True, needs=needs)
