"""What is done once for all routes of a study: the copy that is rewritten, and the ranges."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import file_digest
from smart_tuner.precision.calibrate import measure_ranges
from smart_tuner.precision.prepare import prepared_model
from smart_tuner.precision.ranges import write_ranges
from smart_tuner.precision.store import (
    PREPARED,
    RANGES,
    SCHEMA_VERSION,
    Recipe,
    read_recipe,
    write_recipe,
)
from smart_tuner.precision.support import CALIBRATED, Scheme

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.precision.regions import Region


@dataclass(frozen=True, slots=True)
class Job:
    """What is prepared once for all routes of a study.

    Attributes:
        model: Absolute path of the user's model.
        sha256: Its digest.
        size_bytes: Its size with its external data.
        regions: Its regions.
        values: Every value that any region may get.
        scheme: How integers are written.
        calibration: How ranges are found: ``minmax``, ``entropy`` or ``percentile``.
        inputs: Tensor files with reference inputs; needed by values with scales.
        deadline_seconds: Time that measuring the ranges may take.
    """

    model: Path
    sha256: str
    size_bytes: int
    regions: tuple[Region, ...]
    values: frozenset[str]
    scheme: Scheme = field(default_factory=Scheme)
    calibration: str = "minmax"
    inputs: tuple[Path, ...] = ()
    deadline_seconds: float = 600.0

    @property
    def is_calibrated(self) -> bool:
        """Whether any value needs ranges."""
        return not self.values.isdisjoint(CALIBRATED)

    @property
    def digest(self) -> str:
        """What the prepared folder depends on."""
        facts = {
            "schema": SCHEMA_VERSION,
            "model": [self.sha256, str(self.model)],
            "regions": {region.name: sorted(region.members) for region in self.regions},
            "values": sorted(self.values),
            "scheme": self.scheme.to_json(),
            "calibration": self.calibration if self.is_calibrated else "",
            "inputs": [file_digest(path) for path in self.inputs] if self.is_calibrated else [],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def prepare(folder: Path, job: Job) -> Recipe:
    """Make the folder that routes are rewritten from, unless it holds just that already.

    Args:
        folder: Made if missing; what an earlier job left there is replaced.
        job: What is prepared.

    Raises:
        UserInputError: The model cannot be prepared.
        ModelError: It does not run on the reference inputs.
        EnvironmentNotFit: onnxruntime's quantization tool is missing.
    """
    digest = job.digest
    with suppress(UserInputError):
        kept = read_recipe(folder)
        if kept.digest == digest:
            return kept
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recipe = Recipe(
        source=job.model,
        regions={region.name: tuple(sorted(region.members)) for region in job.regions},
        scheme=job.scheme,
        calibration=job.calibration if job.is_calibrated else "",
        digest=digest,
    )
    model = prepared_model(job.model, job.size_bytes, job.regions, job.values)
    (folder / PREPARED).write_bytes(model.SerializeToString())
    if job.is_calibrated:
        found = measure_ranges(
            folder / PREPARED, job.model, job.inputs, job.calibration, job.deadline_seconds
        )
        write_ranges(folder / RANGES, found)
    write_recipe(folder, recipe)
    return recipe
