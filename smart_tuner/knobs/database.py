"""All knobs of one backend version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import did_you_mean, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    _by_name: Mapping[str, Knob] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {knob.name: knob for knob in self.knobs}
        if len(by_name) < len(self.knobs):
            names = [knob.name for knob in self.knobs]
            twice = next(name for name in names if names.count(name) > 1)
            msg = (
                f"Knob {shown(twice)} is listed twice by tuner {self.tuner_version}; list it once."
            )
            raise UserInputError(msg)
        object.__setattr__(self, "_by_name", by_name)

    def __getitem__(self, name: str) -> Knob:
        knob = self._by_name.get(name)
        if knob is None:
            msg = (
                f"Unknown knob: {shown(name)} (tuner {self.tuner_version}). "
                f"{did_you_mean(name, self._by_name)}"
            )
            raise UserInputError(msg)
        return knob

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Knob]:
        return iter(self.knobs)

    def __len__(self) -> int:
        return len(self.knobs)
