"""What a comparison found, as the JSON file that tables and plots are made from."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003, pydantic reads the annotations
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from smart_tuner.bench.compare import Difference  # noqa: TC001, as above
from smart_tuner.bench.score import Curve, Score  # noqa: TC001, as above
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from pathlib import Path

SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a comparison found.

    Attributes:
        plan: What was compared, by the names of ``Plan``.
        scores: Pooled and by generator.
        differences: From the rival; empty with one sampler.
        curves: Mean gain fraction after each trial, pooled and by generator.
    """

    plan: Mapping[str, Any]
    scores: tuple[Score, ...]
    differences: tuple[Difference, ...]
    curves: tuple[Curve, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; ``read_summary`` gives an equal one back."""
        return asdict(self)


_ADAPTER = TypeAdapter(Summary)


def read_summary(folder: Path) -> Summary:
    """Read the summary that a comparison left in its folder.

    Raises:
        UserInputError: There is none, or it is of another version.
    """
    path = folder / SUMMARY_FILE
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        msg = f"Cannot read {path}: {error.strerror}; run smart-tuner bench --out {folder} first."
        raise UserInputError(msg) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        msg = f"{path} is no summary of this version at {place}: {first['msg']}."
        raise UserInputError(msg) from None
