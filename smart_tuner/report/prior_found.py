"""What the prior said of each knob, and what the study found."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from smart_tuner.report.markdown import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.priors.found import SaidAndFound

ROWS = 15
FIRST = 5
"""Values that are listed in any case: what the prior promised most of."""

WORTH_SAYING = 0.2
SMALL = 0.002


def prior_lines(rows: Sequence[SaidAndFound]) -> Iterator[str]:
    """The section of the page; nothing without a prior.

    Values of which the prior expected something, or which the study found to matter, stand there.
    """
    if not rows:
        return
    yield "## What the prior said, and what was found"
    yield ""
    yield prior_sentence(rows)
    yield ""
    said = [row for place, row in enumerate(rows) if place < FIRST or _is_worth_saying(row)]
    yield from table(
        ("knob and value", "the prior said", "found here", "routes", "so"),
        (
            (code(f"{row.knob}={row.value}"), _said(row), _found(row), str(row.tried), row.verdict)
            for row in said[:ROWS]
        ),
    )
    if len(said) > ROWS:
        yield ""
        yield f"And {len(said) - ROWS} more values."
    yield ""


def prior_sentence(rows: Sequence[SaidAndFound]) -> str:
    """Counts of what became of what the prior expected to matter or to break."""
    counts = Counter(row.verdict for row in rows if _is_worth_saying(row))
    if not counts:
        return "It expected of no value that it matters or breaks, and none did."
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"Of {sum(counts.values())} values that count: {told}."


def _is_worth_saying(row: SaidAndFound) -> bool:
    expected = max(row.said_active, row.said_failure) >= WORTH_SAYING
    return expected or (row.found_active or 0.0) >= WORTH_SAYING


def _said(row: SaidAndFound) -> str:
    if row.said_failure > max(row.said_active, WORTH_SAYING):
        return f"breaks, {_percent(row.said_failure)} sure"
    return f"matters {_percent(row.said_active)}, then {_effect(row.said_effect, row.said_spread)}"


def _found(row: SaidAndFound) -> str:
    if row.found_active is None or row.found_effect is None:
        failure = row.found_failure
        return "-" if failure is None else f"never ran, breaks {_percent(failure)}"
    effect = _effect(row.found_effect, row.found_spread or 0.0)
    return f"matters {_percent(row.found_active)}, then {effect}"


def _effect(mean: float, spread: float) -> str:
    if abs(mean) < SMALL:
        return f"0 +-{spread:.1%}".replace("%", " %")
    word = "faster" if mean < 0 else "slower"
    return f"{abs(math.expm1(mean)):.1%} {word} +-{spread:.1%}".replace("%", " %")


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")
