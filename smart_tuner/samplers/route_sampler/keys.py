"""The words under which the sampler reads and writes a trial.

They are those of :mod:`smart_tuner.storages.keys`; the sampler keeps its own list, so that it can be
used without the rest of the package.
"""

from __future__ import annotations

BUILT, RAN, APPLIED, ACCURACY = "built", "ran", "applied", "accuracy"

FAILURE_KEYS = (BUILT, RAN, APPLIED)
"""Constraints that are either kept or broken: above zero, the route gave no engine that runs.

``accuracy`` is log10(loss / epsilon). Every other key is a continuous constraint, kept up to zero.
"""

PROPOSAL = "smart_tuner:proposal"
"""System attribute in which a sampler publishes ``{"route": {knob: value}, "reason": text}``."""

UNCHANGED = "unchanged"
"""User attribute: the engine is the default route's, so that the route has no effect at all."""

MEASURED = "measured"
"""User attribute: false where the value stands in for a latency that was never measured."""
