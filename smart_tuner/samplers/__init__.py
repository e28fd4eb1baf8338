"""WHICH ROUTE NEXT: Optuna samplers, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.samplers.route_sampler.beliefs import Beliefs, ValueBelief
    from smart_tuner.samplers.route_sampler.sampler import RouteSampler

__all__ = ["Beliefs", "RouteSampler", "ValueBelief"]

# Resolved on first use (PEP 562): the names of samplers are wanted where Optuna is not.
_HOMES = {
    "Beliefs": "smart_tuner.samplers.route_sampler.beliefs",
    "RouteSampler": "smart_tuner.samplers.route_sampler.sampler",
    "ValueBelief": "smart_tuner.samplers.route_sampler.beliefs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES[name]), name)
