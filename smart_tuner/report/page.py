"""The one-page report of a study, as Markdown, and its trials as JSON lines."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.model.files import whole_file
from smart_tuner.report.words import OUTCOME_WORDS, duration, percent, shortened
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.folder import StudyFolder
from smart_tuner.study.result import Verdict, read_result
from smart_tuner.study.search import BASELINE_MS
from smart_tuner.study.settings import command_line
from smart_tuner.study.tune import STUDY_NAME
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.result import TuneResult

BEST_ROWS = 10
FAILURE_ROWS = 10
MESSAGE_ROOM = 120


@dataclass(frozen=True, slots=True)
class Material:
    """What a report is made of."""

    document: dict[str, Any]
    platform: dict[str, Any]
    result: TuneResult
    records: tuple[TrialRecord, ...]
    baseline_ms: float


def write_report(root: Path) -> None:
    """Write ``report.md`` and ``trials.jsonl`` into a study folder.

    Raises:
        UserInputError: The study has no verdict yet, or is damaged.
    """
    folder = StudyFolder(root)
    study = open_study(folder.journal, STUDY_NAME, None, create=False)
    material = Material(
        document=folder.read_settings(),
        platform=json.loads(folder.platform_file.read_text(encoding="utf-8")),
        result=read_result(folder.result_file),
        records=finished_trials(study),
        baseline_ms=float(study.user_attrs[BASELINE_MS]),
    )
    with whole_file(folder.report_file) as file:
        file.write("\n".join(_page(material)).encode())
    with whole_file(folder.trials_file) as file:
        for record in material.records:
            line = json.dumps(trial_row(record, material.baseline_ms), ensure_ascii=False)
            file.write(f"{line}\n".encode())


def trial_row(record: TrialRecord, baseline_ms: float) -> dict[str, Any]:
    """One trial as a line of ``trials.jsonl``: plain types, nothing infinite."""
    return {
        "number": record.number,
        "route": str(record.route),
        "outcome": record.outcome.value,
        "latency_ms": record.value_ms,
        "gain": baseline_ms / record.value_ms if record.value_ms else None,
        "half_width": record.half_width,
        "violation": record.violation,
        "unchanged": record.unchanged,
        "fingerprint": record.fingerprint,
        "seconds": dict(record.seconds),
        "reason": record.reason,
        "message": record.message,
    }


def _page(material: Material) -> Iterator[str]:
    settings = material.document["settings"]
    yield f"# {settings['model'].rsplit('/', 1)[-1]} on {material.platform['device']}"
    yield ""
    yield f"**{material.result.sentence}**"
    yield ""
    yield from _gains(material.result)
    yield from _setting(material)
    yield from _trials(material)
    yield from _failures(material.records)
    yield from _notes(material.result)
    yield "## Again"
    yield ""
    yield "```bash"
    yield shlex.join(
        command_line(settings, material.result.study.relative_to(material.result.study.parent))
    )
    yield f"smart-tuner verify {shlex.quote(material.result.study.name)}"
    yield "```"
    yield ""


def _gains(result: TuneResult) -> Iterator[str]:
    rows = [
        ("route gain: fresh builds of both arms", result.route_gain),
        ("engine gain: the shipped file, fastest default build", result.engine_gain),
        ("under sustained load, blocks of ten seconds", result.sustained_gain),
        ("over the bare default, base included", result.bare_gain),
    ]
    if not any(gain for _, gain in rows):
        return
    yield "| gain of the best route | estimate | 95 % interval | samples |"
    yield "| --- | --- | --- | --- |"
    for name, gain in rows:
        if gain is not None:
            span = "none" if math.isinf(gain.high) else f"{gain.low:.3f} to {gain.high:.3f}"
            yield f"| {name} | {gain.value:.3f}x | {span} | {gain.samples} |"
    yield ""
    if result.verdict is Verdict.WINNER:
        yield "It ships in `winner/`: the engine, `manifest.json`, and `load_winner.py` to load it."
        yield ""


def _setting(material: Material) -> Iterator[str]:
    document, platform = material.document, material.platform
    settings, accuracy = document["settings"], document["accuracy"]
    facts = {
        "model": f"`{settings['model']}`, sha256 `{document['identity']['model'][:16]}...`",
        "inputs": "synthetic" if material.result.provisional else "given",
        "backend": platform["backend_version"],
        "device": f"{platform['device']}; {platform['driver']}",
        "platform": ", ".join(f"{key} {value}" for key, value in platform["details"].items()),
        "accuracy": f"{accuracy['metric']} within {accuracy['epsilon']}, every output",
        "smallest gain that ships": f"{material.result.min_gain:g}x",
        "search": f"`{settings['sampler']}`, seed {document['seed']}",
        "budget": (
            f"{duration(material.result.spent_seconds)} of {duration(settings['budget'])} spent"
        ),
        "baseline": f"{material.baseline_ms:.4g} ms",
    }
    yield "## Setting"
    yield ""
    yield "| what | value |"
    yield "| --- | --- |"
    yield from (f"| {name} | {_cell(value)} |" for name, value in facts.items())
    yield ""


def _trials(material: Material) -> Iterator[str]:
    counts = material.result.trials
    yield "## Trials"
    yield ""
    yield ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items()) + "."
    yield ""
    measured = [
        record
        for record in material.records
        if record.outcome is TrialOutcome.FEASIBLE and record.value_ms and not record.unchanged
    ]
    if not measured:
        return
    yield "The fastest, as the search saw them (one measurement each: the top is partly luck):"
    yield ""
    yield "| trial | gain | +- | route |"
    yield "| --- | --- | --- | --- |"
    for record in sorted(measured, key=lambda record: record.value_ms or 0.0)[:BEST_ROWS]:
        gain = material.baseline_ms / (record.value_ms or material.baseline_ms)
        spread = percent(record.half_width) if record.half_width is not None else "?"
        yield f"| {record.number} | {gain:.3f}x | {spread} | `{_cell(str(record.route))}` |"
    yield ""


def _failures(records: Iterable[TrialRecord]) -> Iterator[str]:
    failed = [record for record in records if record.outcome is not TrialOutcome.FEASIBLE]
    if not failed:
        return
    yield "## What did not work"
    yield ""
    yield "| trial | outcome | route | why |"
    yield "| --- | --- | --- | --- |"
    for record in failed[:FAILURE_ROWS]:
        why = _cell(shortened(record.message, MESSAGE_ROOM))
        word = OUTCOME_WORDS[record.outcome]
        yield f"| {record.number} | {word} | `{_cell(str(record.route))}` | {why} |"
    if len(failed) > FAILURE_ROWS:
        yield ""
        yield f"And {len(failed) - FAILURE_ROWS} more, in `trials.jsonl`."
    yield ""


def _notes(result: TuneResult) -> Iterator[str]:
    if result.notes:
        yield "## Notes"
        yield ""
        yield from (f"- {note}" for note in result.notes)
        yield ""


def _cell(text: object) -> str:
    """Text that cannot break out of a table's cell."""
    return " ".join(str(text).split()).replace("|", "\\|")
