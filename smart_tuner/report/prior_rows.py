"""A prior on the terminal: values in the order in which they promise something."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from smart_tuner.priors.fold import fold

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.priors.check import Checked
    from smart_tuner.priors.document import Prior

ROWS = 30


def prior_rows(prior: Prior) -> list[dict[str, Any]]:
    """What a prior says of each value, what promises most first; plain data."""
    folded = fold(prior, {study.id: 1.0 for study in prior.studies}).values
    return [
        {
            "knob": name,
            "value": value,
            "tried": found.tried,
            "matters": round(found.active, 4),
            "helps": round(found.faster, 4),
            "effect": round(found.mean, 4),
            "spread": round(found.spread, 4),
            "size": round(found.size, 4),
            "gain": round(found.gain, 4),
            "loss": round(found.loss, 4),
            "chance_faster": round(found.chance_faster, 4),
            "chance_slower": round(found.chance_slower, 4),
            "fails": round(found.failure, 4),
            "violates": None if found.violation is None else round(found.violation, 4),
        }
        for (name, value), found in sorted(
            folded.items(), key=lambda pair: (-pair[1].promise, pair[0])
        )
    ]


def print_prior(prior: Prior, console: Console) -> None:
    """Print the studies of a prior, and chances and changes of latency of its first values."""
    for study in prior.studies:
        facts = (study.backend_version or study.source, study.device, study.created[:10])
        told = ", ".join(fact for fact in facts if fact)
        console.print(Text(f"{study.name}: {study.trials} trials, {told}"), soft_wrap=True)
    console.print()
    rows = prior_rows(prior)
    table = Table(box=None, pad_edge=False)
    for name in ("faster", "by", "slower", "by", "no change", "fails", "tried"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("knob and value", overflow="fold")
    for row in rows[:ROWS]:
        table.add_row(
            f"{row['chance_faster']:.0%}",
            f"{math.expm1(-row['gain']):+.1%}",
            f"{row['chance_slower']:.0%}",
            f"{math.expm1(row['loss']):+.1%}",
            f"{1 - row['matters']:.0%}",
            f"{row['fails']:.0%}",
            str(row["tried"]),
            Text(f"{row['knob']}={row['value']}"),
        )
    console.print(table)
    if len(rows) > ROWS:
        console.print(Text(f"and {len(rows) - ROWS} more values; --json has all of them"))


def check_lines(found: Checked) -> list[str]:
    """What a check found, a line a matter."""
    lines = [f"{found.known} knobs of the prior are known here"]
    lines += found.changes.sentences
    if found.versions:
        lines.append(f"made with another tuner version: {', '.join(found.versions)}")
    if found.silent:
        lines.append(f"says nothing of {len(found.silent)} knobs that are there today")
    if found.fits:
        lines.append("everything that it says can be used as it stands")
    return lines
