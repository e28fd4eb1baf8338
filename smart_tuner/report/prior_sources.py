"""The studies behind a prior's page: what they are relative to, what they leave open."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from smart_tuner.priors.distance import computing
from smart_tuner.report.analysis.headline import METRIC_WORDS
from smart_tuner.report.markdown import code, plain, table
from smart_tuner.report.prior_evidence import platform_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.priors.document import StudyEntry
    from smart_tuner.priors.fold import Folded
    from smart_tuner.report.prior_evidence import Sources

OPERATORS = 4


def baseline_lines(sources: Sources) -> Iterator[str]:
    """What effects are relative to."""
    yield "## Compared with what"
    yield ""
    yield (
        "Effects are changes of latency against each study's default route: the compiler's "
        "defaults, and what the study set besides."
    )
    yield ""
    rows = (
        (
            sources.names[study.id],
            platform_of(study),
            plain(study.baseline.processors or "?"),
            f"{study.baseline.latency_ms:.4g} ms" if study.baseline.latency_ms else "?",
            ", ".join(code(f"{k}={v}") for k, v in study.baseline.values.items()) or "nothing",
            _operators(study),
        )
        for study in sources.prior.studies
    )
    head = ("study", "platform", "processors", "default latency", "set besides", "network")
    yield from table(head, rows)
    yield ""


def unknown_lines(sources: Sources, folded: Folded) -> Iterator[str]:
    """What the page does not know."""
    studies = sources.prior.studies
    yield "## What it does not know"
    yield ""
    yield from _noise(sources)
    shapes = {study.baseline.shapes for study in studies} - {""}
    where = (
        f"the shapes {plain('; '.join(sorted(shapes)))}" if shapes else "the models' own shapes"
    )
    yield f"- **Batch and shapes.** Measured with {where}; other batches may behave otherwise."
    kinds = _kinds(sources)
    made = f"These networks are mostly {plain(kinds)}. " if kinds else ""
    yield (
        f"- **Kind of network.** {made}What other operators do is not known: `tune` trusts a study "
        "the less, the fewer operators the networks have in common."
    )
    yield (
        f"- **Other platforms.** It comes from {' and '.join(sources.platforms)}; on any "
        "other `tune` trusts it less. This page counts every study in full. How many threads or "
        "processors a machine has is not looked at."
    )
    yield (
        "- **Values together.** Effects are taken to add up (as ratios of latency); values that "
        "only work together, or cancel each other, are not described."
    )
    yield "- **Other knobs.** Knobs and values that stand nowhere on this page were never tried."
    if len(studies) > 1:
        yield (
            "- **How far networks agree.** A value that matters to one of these networks matters to "
            f"another with a chance of about {_percent(folded.shared)}; if it does, it helps one and "
            f"harms the other in {_percent(folded.flipped)} of cases. With few studies both are "
            "mostly assumption."
        )
    else:
        yield "- **How far networks agree.** One study cannot tell what holds for another network."
    yield ""


def evidence_lines(sources: Sources) -> Iterator[str]:
    """Which studies, how made, and what people noted."""
    studies = sources.prior.studies
    yield "## Studies"
    yield ""
    rows = (
        (
            plain(study.name),
            study.created[:10] or "?",
            plain(study.backend_version or study.source),
            str(study.trials),
            plain(f"{study.metric} at most {study.epsilon}" if study.metric else "not checked"),
        )
        for study in studies
    )
    yield from table(("study", "date", "compiler", "trials", "accuracy limit"), rows)
    yield ""
    for metric in sorted({study.metric for study in studies}):
        if words := METRIC_WORDS.get(metric):
            yield f"{plain(metric)} is {words}."
            yield ""
    yield from _notes(sources)


def _notes(sources: Sources) -> Iterator[str]:
    prior = sources.prior
    notes = [(study.name, study.notes) for study in prior.studies if study.notes]
    notes += [(name, knob.notes) for name, knob in prior.knobs.items() if knob.notes]
    notes += [
        (f"{name}={value}", entry.notes)
        for name, knob in prior.knobs.items()
        for value, entry in knob.values.items()
        if entry.notes
    ]
    if notes:
        yield "Notes by people:"
        yield ""
        yield from (f"- {code(name)}: {plain(note)}" for name, note in notes)
        yield ""


def _noise(sources: Sources) -> Iterator[str]:
    widths = [
        f"{sources.names[study.id]} +-{_percent(math.expm1(study.baseline.half_width), 1)}"
        for study in sources.prior.studies
        if study.baseline.half_width
    ]
    if widths:
        yield (
            f"- **Noise.** One measurement was good to (half of its 95 % interval, median trial) "
            f"{', '.join(widths)}. A smaller effect shows only over many trials, and may be luck."
        )
    else:
        yield "- **Noise.** How sure one measurement was is not known: small effects may be luck."


def _kinds(sources: Sources) -> str:
    total: Counter[str] = Counter()
    for study in sources.prior.studies:
        total.update(computing(study.network.operators))
    return ", ".join(name for name, _ in total.most_common(OPERATORS))


def _operators(study: StudyEntry) -> str:
    network = study.network
    if not network.operators:
        return plain(network.name or "?")
    counted = computing(network.operators)
    most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:OPERATORS]
    listed = ", ".join(f"{count} {name}" for name, count in most)
    return plain(f"{sum(counted.values())} nodes: {listed}")


def _percent(share: float, digits: int = 0) -> str:
    return f"{share:.{digits}%}".replace("%", " %")
