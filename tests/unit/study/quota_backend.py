"""The replay backend on a machine whose CPU quota an environment variable tells."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from smart_tuner.backends.replay.backend import ReplayBackend
from smart_tuner.knobs.database import KnobDatabase

if TYPE_CHECKING:
    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.spec import ModelSpec

QUOTA = "SMART_TUNER_TEST_QUOTA"
DRIVER = "SMART_TUNER_TEST_DRIVER"


class QuotaBackend(ReplayBackend):
    """Offers as many values of the knob ``threads`` as there are processors."""

    def platform(self) -> Platform:
        """Return the replay platform with a quota."""
        return dataclasses.replace(
            super().platform(),
            driver=os.environ.get(DRIVER, "kernel 1"),
            details={"cpu_quota": os.environ[QUOTA]},
        )

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return the described knobs, those over the quota left out."""
        quota = int(os.environ[QUOTA])
        knobs = tuple(
            dataclasses.replace(knob, values=knob.values[: quota + 1])
            if knob.name == "threads"
            else knob
            for knob in super().knobs(model)
        )
        return KnobDatabase(knobs, "simulated")
