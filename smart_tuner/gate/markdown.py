"""The outcome of the gate as Markdown, for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.gate.outcome import Answer
from smart_tuner.report.markdown import code, plain, table
from smart_tuner.report.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.gate.outcome import GateOutcome

_MARKS = {
    Answer.PASSED: "\N{WHITE HEAVY CHECK MARK}",
    Answer.UNCLEAR: "\N{WARNING SIGN}",
    Answer.NOT_COMPARED: "\N{WHITE HEAVY CHECK MARK}",
    Answer.SLOWER: "\N{CROSS MARK}",
    Answer.BROKEN: "\N{CROSS MARK}",
    Answer.DRY: "\N{INFORMATION SOURCE}",
}


def markdown(outcome: GateOutcome) -> str:
    """The page, ready to be posted."""
    return "".join(f"{line}\n" for line in _lines(outcome))


def _lines(outcome: GateOutcome) -> Iterator[str]:
    yield f"### smart-tuner: {plain(outcome.name)}"
    yield ""
    yield f"{_MARKS[outcome.answer]} **{plain(outcome.sentence)}**"
    yield ""
    comparison = outcome.comparison
    if comparison is not None:
        yield plain(comparison.sentence)
        yield ""
    rows = [(name, value) for name, value in _facts(outcome) if value]
    if rows:
        yield from table(("what", "value"), rows)
        yield ""
    if outcome.due:
        yield "Retuning was due:" if outcome.answer is not Answer.DRY else "Retuning is due:"
        yield ""
        yield from (f"- {plain(line)}" for line in outcome.due)
        yield ""
    yield from (f"- note: {plain(note)}" for note in outcome.notes)
    yield from what_next(outcome)


def _facts(outcome: GateOutcome) -> Iterator[tuple[str, str]]:
    yield "latency now", "" if outcome.candidate_ms is None else f"{outcome.candidate_ms:.4g} ms"
    gain = outcome.over_default
    yield "gain over the default", "" if gain is None else f"{gain:.3f}x"
    if outcome.comparison is not None and outcome.comparison.slowdown is not None:
        yield "latency now / before", plain(outcome.comparison.slowdown)
        yield "slow-down that passes", f"{100 * outcome.tolerance:g} %"
    if outcome.answer is not Answer.DRY:
        yield "route", code(outcome.route) if outcome.route else "(default)"
    yield "study", plain(outcome.tuned)
    yield "entry", code(outcome.entry) if outcome.entry else ""
    if outcome.entry:
        yield "later runs compare with it", "yes" if outcome.accepted else "no"
    yield "SHA-256 of its manifest", code(outcome.manifest_sha256) if outcome.entry else ""
    yield "this run took", duration(outcome.seconds) if outcome.seconds else ""


def what_next(outcome: GateOutcome) -> Iterator[str]:
    """What to do about an answer that is no; nothing to do about one that is good."""
    if outcome.answer is Answer.SLOWER and not outcome.accepted:
        yield (
            "If the slow-down is the price of a wanted change, run the same command with "
            "`--accept`: later runs are compared with the new engine then."
        )
    elif outcome.answer is Answer.BROKEN:
        yield "Nothing was archived. Look at the model's change, or give a looser `--epsilon`."
    elif outcome.is_open and outcome.comparison:
        yield f"To be sure, {outcome.comparison.advice}."
