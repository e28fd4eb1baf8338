"""The knobs of the compiler that is described beside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.knobs.database import KnobDatabase

if TYPE_CHECKING:
    from smart_tuner.simulate.description import Description


def described_knobs(description: Description) -> KnobDatabase:
    """Return the knobs; the version names the description, so that a changed one is noticed."""
    compiler = description.compiler
    return KnobDatabase(compiler.knobs, tuner_version=f"simulated {compiler.digest()[:12]}")
