"""The one-page report of a study, as Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.model.files import whole_file
from smart_tuner.report.analysis.headline import GAIN_NAMES
from smart_tuner.report.analysis.reproduction import reproduction_of
from smart_tuner.report.analysis.top import top_of
from smart_tuner.report.jsonl import trial_row
from smart_tuner.report.markdown import code, plain, sentence, table
from smart_tuner.report.prior_found import prior_lines
from smart_tuner.report.reading import read_study
from smart_tuner.report.setting import setting_facts
from smart_tuner.report.words import OUTCOME_WORDS, ended, percent, shortened
from smart_tuner.storages.history import outcome_key
from smart_tuner.storages.keys import OVER_LIMIT
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.kept import open_kept_study
from smart_tuner.study.files.names import BASELINE_MS
from smart_tuner.study.files.prior import prior_outcome
from smart_tuner.study.proof.result import Verdict, read_result
from smart_tuner.study.proof.winner import read_manifest
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.limits import LimitUse
from smart_tuner.validate.losses import OutputLoss
from smart_tuner.validate.pairs import over_pairs, pairs_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from smart_tuner.priors.found import SaidAndFound
    from smart_tuner.report.analysis.top import Top
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.proof.result import TuneResult
    from smart_tuner.validate.pairs import LossOverPairs

BEST_ROWS = 10
FAILURE_ROWS = 10
MESSAGE_ROOM = 120


@dataclass(frozen=True, slots=True)
class Material:
    """What a report is made of.

    Attributes:
        document: ``study.toml``.
        platform: ``platform.json``.
        result: The verdict.
        losses: Accuracy losses of the winner, as its manifest lists them; empty without one.
        limits: Its figures against further limits, likewise.
        records: Finished trials.
        baseline_ms: The study's frozen baseline latency.
        top: The verdict in one sentence, what follows from it and what weakens it.
        commands: What it takes to do it again, from the folder around the study.
        prior: What its prior said and what was found; empty without one.
    """

    document: Mapping[str, Any]
    platform: Mapping[str, Any]
    result: TuneResult
    top: Top
    commands: tuple[str, ...]
    losses: tuple[Mapping[str, Any], ...]
    records: tuple[TrialRecord, ...]
    baseline_ms: float
    limits: tuple[Mapping[str, Any], ...] = ()
    prior: tuple[SaidAndFound, ...] = ()


def write_report(root: Path) -> Top:
    """Write ``report.md`` and ``trials.jsonl`` into a study folder.

    Returns:
        What the report says on top.

    Raises:
        UserInputError: The study has no verdict yet, or is damaged.
        EnvironmentNotFit: The folder cannot be written to.
    """
    folder = StudyFolder(root)
    result = read_result(folder.result_file)
    study = open_kept_study(folder)
    view = read_study(root, study)
    ships = result.verdict is Verdict.WINNER
    manifest = read_manifest(folder.winner) if ships else {}
    material = Material(
        document=folder.read_settings(),
        platform=json.loads(folder.platform_file.read_text(encoding="utf-8")),
        result=result,
        top=top_of(view),
        commands=reproduction_of(view).commands,
        losses=tuple(manifest.get("losses", ())),
        limits=tuple(manifest.get("limits", ())),
        records=view.records,
        prior=prior_outcome(root),
        baseline_ms=float(study.user_attrs[BASELINE_MS]),
    )
    with whole_file(folder.report_file) as file:
        file.write("\n".join(page(material)).encode())
    with whole_file(folder.trials_file) as file:
        for record in material.records:
            file.write(f"{trial_row(record, material.baseline_ms)}\n".encode())
    return material.top


def page(material: Material) -> Iterator[str]:
    """The lines of the report."""
    settings = material.document["settings"]
    name = str(settings["model"]).rsplit("/", 1)[-1]
    yield f"# {plain(name)} on {plain(material.platform['device'])}"
    yield ""
    yield f"**{sentence(material.top.lead)}**"
    yield ""
    yield from _deploying(material)
    yield from _gains(material.result)
    yield from _accuracy(material.losses)
    yield from _limits(material.limits)
    yield from _setting(material)
    yield from _trials(material)
    yield from _failures(material.records)
    yield from prior_lines(material.prior)
    yield from _notes(material.result)
    yield from _again(material.commands)


def _deploying(material: Material) -> Iterator[str]:
    """What to deploy, of which route, what to expect, and what weakens that."""
    facts = [(name, sentence(words)) for name, words in material.top.facts]
    if material.result.route:
        facts.append(("Route", code(material.result.route)))
    yield from table(("question", "answer"), facts)
    yield ""
    if material.top.cautions:
        yield from (f"- {sentence(caution)}" for caution in material.top.cautions)
        yield ""


def _gains(result: TuneResult) -> Iterator[str]:
    rows = [(name, getattr(result, key)) for key, name in GAIN_NAMES.items()]
    known = [(name, gain) for name, gain in rows if gain is not None]
    if not known:
        return
    yield from table(
        ("gain of the best route", "estimate", "95 % interval", "samples"),
        ((name, f"{gain.value:.3f}x", gain.interval, str(gain.samples)) for name, gain in known),
    )
    yield ""


def _accuracy(losses: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The losses of each output of the winner over its pairs, at the point where it is worst."""
    worst: dict[str, LossOverPairs] = {}
    for loss in over_pairs([_loss(row) for row in losses]):
        if loss.output not in worst or loss.judged > worst[loss.output].judged:
            worst[loss.output] = loss
    if not worst:
        return
    yield from table(
        ("output of the winner", "worst loss", "on pair", "mean", "pairs", "metric", "epsilon"),
        (
            (
                code(name),
                f"{loss.worst:.3g}",
                code(loss.worst_pair),
                f"{loss.mean:.3g}",
                str(loss.pairs),
                plain(loss.metric),
                f"{loss.epsilon:g} on the {loss.over}",
            )
            for name, loss in worst.items()
        ),
    )
    yield ""


def _loss(row: Mapping[str, Any]) -> OutputLoss:
    point, pair, output, metric = (str(row[key]) for key in ("point", "pair", "output", "metric"))
    figures = float(row["loss"]), float(row["epsilon"])
    return OutputLoss(point, pair, output, metric, *figures, pairs=pairs_in(pair))


def _limits(limits: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    uses = [LimitUse(str(row["name"]), row["figure"], row["limit"]) for row in limits]
    if uses:
        yield from (f"- the winner: {plain(use)}" for use in uses)
        yield ""


def _setting(material: Material) -> Iterator[str]:
    facts = setting_facts(
        material.document, material.platform, material.result, material.baseline_ms
    )
    yield "## Setting"
    yield ""
    yield from table(("what", "value"), (fact for fact in facts.items() if fact[1]))
    yield ""


def _trials(material: Material) -> Iterator[str]:
    yield "## Trials"
    yield ""
    yield f"How they ended: {ended(material.result.trials) or 'none has'}."
    yield ""
    measured = [
        (record.value_ms, record)
        for record in material.records
        if record.outcome is TrialOutcome.FEASIBLE and record.value_ms and not record.unchanged
    ]
    if not measured:
        return
    measured.sort(key=lambda pair: (pair[0], pair[1].number))
    yield "The fastest, as the search saw them (one measurement each: the top is partly luck):"
    yield ""
    yield from table(
        ("trial", "gain", "+-", "route"),
        (
            (
                str(record.number),
                f"{material.baseline_ms / value:.3f}x",
                "?" if record.half_width is None else percent(record.half_width),
                _route(record),
            )
            for value, record in measured[:BEST_ROWS]
        ),
    )
    yield ""


def _word(record: TrialRecord) -> str:
    key = outcome_key(record)
    return key if key == OVER_LIMIT else OUTCOME_WORDS[record.outcome]


def _route(record: TrialRecord) -> str:
    return code(record.route) if len(record.route) else "(default)"


def _failures(records: Iterable[TrialRecord]) -> Iterator[str]:
    failed = [record for record in records if record.outcome is not TrialOutcome.FEASIBLE]
    if not failed:
        return
    yield "## What did not work"
    yield ""
    yield from table(
        ("trial", "outcome", "route", "why"),
        (
            (
                str(record.number),
                _word(record),
                _route(record),
                plain(shortened(record.message, MESSAGE_ROOM)),
            )
            for record in failed[:FAILURE_ROWS]
        ),
    )
    if len(failed) > FAILURE_ROWS:
        yield ""
        yield f"And {len(failed) - FAILURE_ROWS} more, in `trials.jsonl`."
    yield ""


def _notes(result: TuneResult) -> Iterator[str]:
    if result.notes:
        yield "## Notes"
        yield ""
        yield from (f"- {plain(note)}" for note in result.notes)
        yield ""


def _again(commands: Iterable[str]) -> Iterator[str]:
    """Commands that hold wherever the study is moved to, from the folder around it."""
    yield "## Again"
    yield ""
    yield "In the folder that holds the study:"
    yield ""
    yield "```bash"
    yield from commands
    yield "```"
    yield ""
