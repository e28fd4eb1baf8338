"""Notes of studies and trials, as Markdown: what a trial was, and why it ended so."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from smart_tuner.dashboard.trials import epsilon_share
from smart_tuner.report.markdown import code, plain, table
from smart_tuner.report.words import SHOWN_WORDS, percent
from smart_tuner.storages.history import FINISHED, kept_losses, outcome_key, record_of
from smart_tuner.storages.keys import REASON, ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from optuna.trial import FrozenTrial

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.files.folder import StudyFolder

LOG_LINES, LOG_BYTES = 25, 4000
LOSS_ROWS = 8
UNSEEN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x20-\x7e\t\xa0-\ud7ff\ue000-\uffff]")
"""What no page should be given: colours of a terminal, control characters."""

LOG = "child.log"

READING = """\
The value is the latency in milliseconds: the study's baseline times the measured ratio. A trial
is feasible if every constraint is at most zero: `built`, `ran`, `applied`, `accuracy` (log10 of
loss over epsilon), then limits. The values of trials are single measurements: what is proven
stands in the verdict. This page only reads; notes and trials cannot be changed here."""


def trial_note(trial: FrozenTrial, folder: StudyFolder, baseline_ms: float | None) -> str:
    """What a trial was: outcome, gain, route, losses, engine, the end of its log.

    Args:
        trial: The trial as it is kept.
        folder: The study folder.
        baseline_ms: The study's frozen baseline latency.
    """
    return "\n".join(_trial_lines(trial, folder, baseline_ms))


def _trial_lines(
    trial: FrozenTrial, folder: StudyFolder, baseline_ms: float | None
) -> Iterator[str]:
    why = str(trial.user_attrs.get(REASON, ""))
    record = record_of(trial) if trial.state in FINISHED else None
    yield _headline(record, why, baseline_ms) if record else f"**Being tried**, {plain(why)}."
    yield ""
    yield f"Route: {code(trial.user_attrs.get(ROUTE) or '(default)')}"
    yield ""
    if record:
        yield from _losses(record)
        if record.fingerprint:
            yield f"Engine: {code(record.fingerprint)}"
            yield ""
    if tail := log_tail(folder.trial(trial.number) / LOG):
        yield f"The end of {code(f'trials/{trial.number}/{LOG}')}:"
        yield ""
        yield from (f"    {line}" for line in tail)


def _headline(record: TrialRecord, why: str, baseline_ms: float | None) -> str:
    key = outcome_key(record)
    parts = [f"**{plain(SHOWN_WORDS.get(key, key))}**"]
    if baseline_ms and record.value_ms:
        spread = "" if record.half_width is None else f" +-{percent(record.half_width)}"
        parts.append(f"{baseline_ms / record.value_ms:.3f}x{spread}")
    if (share := epsilon_share(record)) is not None:
        parts.append(f"loss {share:.3g} of epsilon")
    if "total" in record.seconds:
        parts.append(f"{record.seconds['total']:.1f} s")
    parts.append(plain(why))
    message = f": {plain(record.message)}" if record.message else ""
    return ", ".join(part for part in parts if part) + message


def _losses(record: TrialRecord) -> Iterator[str]:
    losses = kept_losses(record)
    if not losses:
        return
    yield from table(
        ("output", "pair", "metric", "loss", "epsilon"),
        (
            (
                code(loss.output),
                plain(loss.pair),
                plain(loss.metric),
                f"{loss.loss:.3g}",
                f"{loss.epsilon:.3g}",
            )
            for loss in losses[:LOSS_ROWS]
        ),
    )
    yield ""


def log_tail(path: Path) -> list[str]:
    """The last lines of a log, cleaned of what a page should not show; empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = [UNSEEN.sub("", line).rstrip() for line in text.splitlines()]
    return lines[-LOG_LINES:]


def study_note(verdict: str, facts: dict[str, str]) -> str:
    """What a study is about, how far it is, and how to read the page.

    Args:
        verdict: The verdict in one sentence, or what is known so far.
        facts: Name and value.
    """
    rows = ((plain(name), plain(value)) for name, value in facts.items() if value)
    lines = [f"**{plain(verdict)}**", "", *table(("what", "value"), rows), "", READING]
    return "\n".join(lines)
