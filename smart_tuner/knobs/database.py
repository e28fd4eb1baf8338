"""All knobs of one backend version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.knobs.knob import Knob


@dataclass(frozen=True, slots=True)
class KnobDatabase:
    """The knobs that a backend lists, in its order, with the tuner version they belong to.

    Attributes:
        knobs: Names are unique.
        tuner_version: E.g. ``2.19.45`` (TensorRT) or ``onnxruntime 1.32.0``.
    """

    knobs: tuple[Knob, ...]
    tuner_version: str

    def __getitem__(self, name: str) -> Knob:
        for knob in self.knobs:
            if knob.name == name:
                return knob
        msg = f"Unknown knob: {name} (tuner {self.tuner_version}); `smart-tuner knobs` lists them."
        raise UserInputError(msg)

    def __contains__(self, name: object) -> bool:
        return any(knob.name == name for knob in self.knobs)

    def __iter__(self) -> Iterator[Knob]:
        return iter(self.knobs)

    def __len__(self) -> int:
        return len(self.knobs)
