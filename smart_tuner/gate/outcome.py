"""What a run of the gate decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from smart_tuner.gate.judge import LARGE, Compared

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.gate.judge import Slowdown


class Answer(str, Enum):
    """The answer of the gate. Values are stored: add, never rename."""

    PASSED = "passed"
    UNCLEAR = "unclear"
    NOT_COMPARED = "not compared"
    SLOWER = "slower"
    BROKEN = "broken"
    DRY = "dry run"


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What a user decides about the gate, beside the study's settings.

    Attributes:
        store: Folder of the store.
        name: What is tuned, the same over all versions of a model; empty for the file's name.
        rounds: Rounds of a comparison, at least two; doubled once when they leave it open.
        tolerance: A slow-down up to this share passes.
        init: Start a store if there is none.
        archive: Write what was found into the store.
        candidate: Archive, but let no later run be compared with it: for branches not merged.
        accept: Let later runs be compared with it, though it is slower.
        retune: Tune although nothing changed.
        dry_run: Only say whether retuning is due.
        previous_python: Interpreter of an environment with the runtime of before.
    """

    store: Path
    name: str = ""
    rounds: int = 8
    tolerance: float = 0.03
    init: bool = False
    archive: bool = True
    candidate: bool = False
    accept: bool = False
    retune: bool = False
    dry_run: bool = False
    previous_python: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Today's candidate against the stored baseline.

    Attributes:
        kind: What was compared.
        with_entry: Id of the entry that holds the baseline; empty if there is none.
        sentence: What was compared with what, in one sentence.
        slowdown: The figure; ``None`` if nothing could be compared.
        ratios: ln(now / before) of each round; empty for a latency.
        advice: What to do where it leaves open whether it is slower.
        doubt: What may have made it slower beside the engine itself; empty if nothing was seen.
    """

    kind: Compared
    with_entry: str
    sentence: str
    slowdown: Slowdown | None = None
    ratios: tuple[float, ...] = ()
    advice: str = "take a quieter machine, or more `--rounds`"
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """What the gate found.

    Attributes:
        answer: Whether the pipeline goes on.
        name: What is tuned.
        entry: Id of the entry of what ships; empty if it was not archived.
        due: Why retuning was due, one line a fact that changed; empty if it was not.
        tuned: The study's verdict in one sentence; empty if nothing was tuned.
        route: Route of what ships; empty for the default.
        comparison: Against the stored baseline; ``None`` before anything was measured.
        candidate_ms: Latency of what ships, in milliseconds; ``None`` if it was not measured.
        over_default: Gain of what ships over the default, here and now; ``None`` likewise.
        broken: Why what ships must not; empty if it runs and is accurate enough.
        tolerance: Slow-down that passes.
        accepted: Whether later runs are compared with it.
        manifest_sha256: Digest of ``entry.json``, to be pinned by who deploys; empty without one.
        seconds: Wall-clock seconds of this run.
        notes: What a user should hear.
    """

    answer: Answer
    name: str
    due: tuple[str, ...]
    tolerance: float
    entry: str = ""
    tuned: str = ""
    route: str = ""
    comparison: Comparison | None = None
    candidate_ms: float | None = None
    over_default: float | None = None
    broken: str = ""
    accepted: bool = False
    manifest_sha256: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the pipeline goes on; it does after a slow-down that was accepted."""
        if self.answer is Answer.SLOWER:
            return self.accepted
        return self.answer is not Answer.BROKEN

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.answer is Answer.DRY:
            return "Retuning is due." if self.due else "Nothing changed: retuning is not due."
        if self.answer is Answer.BROKEN:
            return f"Stopped: {self.broken}."
        slowdown = self.comparison.slowdown if self.comparison else None
        if self.answer is Answer.NOT_COMPARED or slowdown is None:
            return self._not_compared()
        return self._compared(slowdown)

    def _not_compared(self) -> str:
        comparison = self.comparison
        is_same = comparison is not None and comparison.with_entry == self.entry
        nothing = "there was nothing that it could be compared with"
        if comparison is not None and comparison.slowdown is not None:
            nothing = "nothing was judged"
        said = f"Passed: {'nothing changed' if self.entry and is_same else nothing}"
        return f"{said}; {self.cannot_tell}." if self.cannot_tell else f"{said}."

    @property
    def cannot_tell(self) -> str:
        """That a large slow-down would often be missed, and what to do; empty if it is told."""
        found = self.comparison.slowdown if self.comparison else None
        is_asked = self.answer in (Answer.UNCLEAR, Answer.NOT_COMPARED) and self.tolerance < LARGE
        if self.comparison is None or found is None or not is_asked:
            return ""
        if not found.misses_large(self.tolerance):
            return ""
        when = "yet" if math.isinf(found.error) else "at this noise"
        return f"cannot tell {100 * LARGE:.0f} % {when}: {self.comparison.advice}"

    @property
    def is_doubted(self) -> bool:
        """Whether it looks slower, but something else may have made it so."""
        found = self.comparison.slowdown if self.comparison else None
        is_slower = found is not None and found.is_regression(self.tolerance)
        return self.answer is Answer.UNCLEAR and is_slower

    @property
    def is_open(self) -> bool:
        """Whether it is unclear, and the sentence does not say yet what to do about it."""
        return self.answer is Answer.UNCLEAR and not (self.cannot_tell or self.is_doubted)

    def _compared(self, slowdown: Slowdown) -> str:
        found = f"latency is {slowdown} of what it was"
        if self.answer is Answer.SLOWER:
            return f"{'Slower, and accepted' if self.accepted else 'Slower'}: {found}."
        if self.is_doubted and self.comparison:
            doubt = f"but {self.comparison.doubt}; repeat it on a quiet machine"
            return f"Passed, but unclear: {found}, {doubt}."
        if self.answer is Answer.UNCLEAR:
            share = f"{100 * (slowdown.high - 1):.0f} %"
            unclear = f"Passed, but unclear: {found}, so a slow-down of {share} cannot be excluded"
            return f"{unclear}; {self.cannot_tell}." if self.cannot_tell else f"{unclear}."
        return f"Passed: {found}."

    def to_json(self) -> dict[str, Any]:
        """Plain types."""
        comparison = self.comparison
        slowdown = comparison.slowdown if comparison else None
        return {
            "answer": self.answer.value,
            "sentence": self.sentence,
            "name": self.name,
            "entry": self.entry,
            "due": list(self.due),
            "tuned": self.tuned,
            "route": self.route,
            "compared": comparison.kind.value if comparison else Compared.NOTHING.value,
            "compared_with": comparison.with_entry if comparison else "",
            "comparison": comparison.sentence if comparison else "",
            "slowdown": None
            if slowdown is None
            else {
                "value": slowdown.value,
                "low": slowdown.low,
                "high": slowdown.high if math.isfinite(slowdown.high) else "inf",
                "samples": slowdown.samples,
            },
            "ratios": list(comparison.ratios) if comparison else [],
            "tolerance": self.tolerance,
            "candidate_ms": self.candidate_ms,
            "over_default": self.over_default,
            "accepted": self.accepted,
            "manifest_sha256": self.manifest_sha256,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }
