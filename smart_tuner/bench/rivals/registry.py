"""Rivals by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optuna.samplers import BaseSampler

    MakeRival = Callable[[Mapping[str, tuple[str, ...]], int], BaseSampler]

_RIVALS = {
    "boca": "boca:BocaSampler",
    "gp": "optuna_gp:CentredGp",
    "mixed-as-shipped": "trtexec:MixedAsShipped",
    "random-3": "flips:three_flips",
    "random-8": "flips:eight_flips",
    "smac": "smac_forest:SmacSampler",
    "tpe-centred": "optuna_tpe:centred",
    "tpe-multivariate": "optuna_tpe:multivariate",
    "tpe-univariate": "optuna_tpe:univariate",
}
"""Module and factory by name; a module is imported when its rival runs."""


def rival_names() -> tuple[str, ...]:
    """Names of all rivals, sorted."""
    return tuple(sorted(_RIVALS))


def make_rival(name: str, choices: Mapping[str, tuple[str, ...]], seed: int) -> BaseSampler:
    """Make a rival; the default route is every study's first trial, so it need not propose it.

    Args:
        name: One of ``rival_names()``.
        choices: Choices by knob name, the default first.
        seed: Any whole number.

    Raises:
        EnvironmentNotFit: The package that it comes from is not installed.
    """
    module, _, factory = _RIVALS[name].partition(":")
    try:
        make: MakeRival = getattr(import_module(f"{__package__}.{module}"), factory)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("smart_tuner"):
            raise  # our own fault, not the user's
        extra = "bench-gp" if name == "gp" else "bench"
        msg = f"{name} needs the package {error.name}: pip install 'smart-tuner[{extra}]'."
        raise EnvironmentNotFit(msg) from error
    return make(choices, seed)
