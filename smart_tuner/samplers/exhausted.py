"""The signal that nothing is left to propose."""

from __future__ import annotations

from smart_tuner.errors import SmartTunerError


class SearchExhausted(SmartTunerError):  # noqa: N818
    """Every route that this sampler would propose has been tried or is being tried."""
