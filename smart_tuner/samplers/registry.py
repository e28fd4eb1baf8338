"""Samplers by name: ours, and those that other packages install.

Another package offers a sampler as an entry point of the group ``smart_tuner.samplers`` whose
object is called as ``factory(choices, defaults, seed)``, returns an
``optuna.samplers.BaseSampler`` and has an attribute ``api_version``;
``smart_tuner.testing.sampler_contract`` is the suite that it should pass.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from optuna.distributions import CategoricalDistribution

from smart_tuner.errors import UserInputError
from smart_tuner.samplers.evolution import EvolutionSampler
from smart_tuner.samplers.route_sampler.sampler import RouteSampler
from smart_tuner.samplers.sweep import FastSampler, MixedSampler
from smart_tuner.samplers.tpe import DefaultCentredTpeSampler
from smart_tuner.samplers.uniform import UniformSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optuna.samplers import BaseSampler

    from smart_tuner.samplers.route_sampler.beliefs import Beliefs

    Factory = Callable[[Mapping[str, tuple[str, ...]], Mapping[str, str], int], BaseSampler]

ENTRY_POINT_GROUP = "smart_tuner.samplers"
API_VERSION = 1
DEFAULT = "default"


def _route_sampler(
    choices: Mapping[str, tuple[str, ...]],
    defaults: Mapping[str, str],
    seed: int,
    beliefs: Beliefs | None = None,
) -> BaseSampler:
    space = {name: CategoricalDistribution(values) for name, values in choices.items()}
    return RouteSampler(space, defaults, seed=seed, beliefs=beliefs)


_OURS: dict[str, Factory] = {
    DEFAULT: _route_sampler,
    "evolution": EvolutionSampler,
    "fast": FastSampler,
    "mixed": MixedSampler,
    "random": UniformSampler,
    "tpe": DefaultCentredTpeSampler,
}


def sampler_names() -> tuple[str, ...]:
    """Names of all samplers, sorted; ours come before others of the same name."""
    others = (entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))
    return tuple(sorted({*_OURS, *others}))


def make_sampler(
    name: str,
    choices: Mapping[str, tuple[str, ...]],
    defaults: Mapping[str, str],
    seed: int,
    beliefs: Beliefs | None = None,
) -> BaseSampler:
    """Make a sampler.

    Args:
        name: One of :func:`sampler_names`.
        choices: Choices by knob name, the default first.
        defaults: Default by knob name.
        seed: Any whole number; the same one proposes the same routes.
        beliefs: What is held already; only ``DEFAULT`` can begin from it.

    Raises:
        UserInputError: No such sampler, it speaks another version, the space is malformed, or it
            cannot begin from beliefs.
    """
    if beliefs is not None:
        if name != DEFAULT:
            msg = f"Sampler {name!r} cannot begin from a prior; use {DEFAULT!r}, or --no-prior."
            raise UserInputError(msg)
        return _route_sampler(choices, defaults, seed, beliefs)
    factory = _OURS[name] if name in _OURS else _installed(name)
    return factory(choices, defaults, seed)


def _installed(name: str) -> Factory:
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in found:
        msg = f"No sampler {name!r}; choose one of: {', '.join(sampler_names())}."
        raise UserInputError(msg)
    factory: Factory = found[name].load()
    version = getattr(factory, "api_version", None)
    if version != API_VERSION:
        msg = f"Sampler {name!r} speaks API {version}, this version speaks {API_VERSION}."
        raise UserInputError(msg)
    return factory
