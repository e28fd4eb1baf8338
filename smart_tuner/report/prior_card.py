"""A prior as a page for people: what it claims, from what evidence, and what it does not know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.priors.distance import computing
from smart_tuner.priors.fold import Folded, fold
from smart_tuner.report.markdown import code, plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.priors.document import Prior, StudyEntry
    from smart_tuner.priors.fold import Fold

    Setting = tuple[str, str]

FIRST = 5
ROWS = 15
MATTERS, IDLE = 0.5, 0.1
BREAKS = 0.3
SMALL = 0.002
SURE = 0.8
HOPE = 0.25
"""Chance to help, if it matters, below which a value is not worth trying first."""

OPERATORS = 4


@dataclass(frozen=True, slots=True)
class Claims:
    """What a prior says, sorted for people; each by knob and value.

    Attributes:
        first: Values to try first, one a knob: the most is to be hoped of them.
        matters: Other values that probably change the latency, the largest effect first.
        breaks: Values that probably break routes or epsilon.
        idle: How many values probably do nothing.
        unsure: How many values are between.
    """

    first: tuple[tuple[Setting, Fold], ...]
    matters: tuple[tuple[Setting, Fold], ...]
    breaks: tuple[tuple[Setting, Fold], ...]
    idle: int
    unsure: int


def claims_of(folded: Folded) -> Claims:
    """Sort what a prior says."""
    items = folded.values.items()
    breaks = [pair for pair in items if _breaks(pair[1])]
    sound = [pair for pair in items if not _breaks(pair[1])]
    hoped = sorted(sound, key=lambda pair: (-pair[1].promise, pair[0]))
    first: dict[str, tuple[Setting, Fold]] = {}
    for pair in hoped:
        if pair[1].gain > SMALL and pair[1].faster >= HOPE:
            first.setdefault(pair[0][0], pair)
    chosen = tuple(first.values())[:FIRST]
    left = [pair for pair in sound if pair not in chosen and pair[1].active >= MATTERS]
    left.sort(key=lambda pair: (-pair[1].size, pair[0]))
    breaks.sort(key=lambda pair: (-pair[1].failure, pair[0]))
    idle = sum(found.active < IDLE for _, found in sound)
    shown = {pair[0] for pair in (*chosen, *left)}
    unsure = sum(found.active >= IDLE and item not in shown for item, found in sound)
    return Claims(chosen, tuple(left), tuple(breaks), idle, unsure)


def card(prior: Prior) -> Iterator[str]:
    """The lines of the page, as Markdown."""
    folded = fold(prior, {study.id: 1.0 for study in prior.studies})
    claims = claims_of(folded)
    names = ", ".join(plain(study.name) for study in prior.studies[:OPERATORS])
    more = len(prior.studies) - OPERATORS
    yield f"# Prior: {names}{f' and {more} more' if more > 0 else ''}"
    yield ""
    yield _summary(prior, claims)
    yield ""
    if prior.notes:
        yield f"> {plain(prior.notes)}"
        yield ""
    yield from _first(claims)
    yield from _others(claims)
    yield from _breaking(claims)
    yield from _unknown(prior, folded, claims)
    yield from _evidence(prior)
    yield from _reading()


def _summary(prior: Prior, claims: Claims) -> str:
    trials = sum(study.trials for study in prior.studies)
    count = len(prior.studies)
    likely = sum(found.faster >= SURE and found.active >= IDLE for _, found in claims.first)
    studies = f"{count} {'study' if count == 1 else 'studies'}"
    return (
        f"What {studies} with {trials} trials suggest to try first on a new network. It is a place "
        "to begin, not a result: every route is built and measured anew, and a search that finds "
        f"the prior wrong lets go of it. It would try {len(claims.first)} values first, {likely} of "
        f"them with good hope; {len(claims.matters)} others probably matter, "
        f"{len(claims.breaks)} probably break, {claims.idle} probably do nothing."
    )


def _first(claims: Claims) -> Iterator[str]:
    yield "## Try these first"
    yield ""
    if not claims.first:
        yield "Nothing here promises a gain: no value helped clearly in these studies."
        yield ""
        return
    rows = (
        (
            str(place),
            code(f"{name}={value}"),
            _gain(found.gain),
            _percent(found.active),
            _percent(found.faster),
            _why(found),
        )
        for place, ((name, value), found) in enumerate(claims.first, start=1)
    )
    yield from table(
        ("", "knob and value", "faster by, if it helps", "matters", "helps, if so", "why"), rows
    )
    yield ""
    yield (
        "*Matters* is the chance that the value changes the latency of a new network at all; "
        "*helps, if so* is the chance that it then makes it faster rather than slower. Signs flip "
        "between networks more often than what matters, so a value can stand here although it "
        "slowed some networks down. One value a knob; the order weighs chance and size together."
    )
    yield ""


def _others(claims: Claims) -> Iterator[str]:
    harmful = [pair for pair in claims.matters if pair[1].faster < HOPE]
    either = [pair for pair in claims.matters if pair[1].faster >= HOPE]
    for title, pairs in (("Also matter", either), ("Better left alone", harmful)):
        if not pairs:
            continue
        yield f"## {title}"
        yield ""
        rows = (
            (code(f"{name}={value}"), _effect(found), _percent(found.active), _why(found))
            for (name, value), found in pairs[:ROWS]
        )
        yield from table(("knob and value", "expected, if it matters", "matters", "why"), rows)
        yield from _left(len(pairs))
        yield ""


def _breaking(claims: Claims) -> Iterator[str]:
    if not claims.breaks:
        return
    yield "## Probably break"
    yield ""
    rows = (
        (
            code(f"{name}={value}"),
            _percent(found.failure),
            "not checked" if found.violation is None else _percent(found.violation),
            f"{found.tried} routes had it",
        )
        for (name, value), found in claims.breaks[:ROWS]
    )
    yield from table(("knob and value", "fails to build or run", "breaks epsilon", "seen"), rows)
    yield from _left(len(claims.breaks))
    yield ""


def _unknown(prior: Prior, folded: Folded, claims: Claims) -> Iterator[str]:
    devices = sorted({study.device for study in prior.studies if study.device})
    yield "## What it does not know"
    yield ""
    yield f"- {claims.unsure} values were tried too little to say whether they matter."
    yield "- Knobs that are not in the file were never tried: nothing is held of them."
    yield f"- It comes from {plain(', '.join(devices)) or 'an unknown device'}. Elsewhere it weighs less."
    count = len(prior.studies)
    if count > 1:
        yield (
            f"- Of what matters, about {_percent(folded.shared)} seems common to these studies, and "
            f"about {_percent(folded.flipped)} of the signs differ between two of them. Few studies "
            "say little of that: both figures begin at what is usual."
        )
    else:
        yield "- One study cannot tell what holds for other networks: signs are trusted little."
    yield "- Effects are taken to add up; values that only work together are not described."
    yield ""


def _evidence(prior: Prior) -> Iterator[str]:
    yield "## Evidence"
    yield ""
    rows = (
        (
            plain(study.name),
            study.created[:10] or "?",
            plain(study.backend_version or study.source),
            plain(study.device or "?"),
            str(study.trials),
            plain(f"{study.metric} at {study.epsilon}" if study.metric else "not checked"),
            _operators(study),
        )
        for study in prior.studies
    )
    head = ("study", "date", "compiler", "device", "trials", "accuracy limit", "network")
    yield from table(head, rows)
    yield ""
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


def _reading() -> Iterator[str]:
    yield "## Use"
    yield ""
    yield "```bash"
    yield "smart-tuner tune MODEL.onnx --prior FILE.prior.toml"
    yield "smart-tuner priors check FILE.prior.toml --model MODEL.onnx"
    yield "```"


def _breaks(found: Fold) -> bool:
    return max(found.failure, found.violation or 0.0) >= BREAKS


def _why(found: Fold) -> str:
    studies = f"{found.weight:.0f} {'study' if round(found.weight) == 1 else 'studies'}"
    if found.faster >= SURE:
        signs = "its sign is likely to hold"
    elif found.faster <= 1 - SURE:
        signs = "it mostly slowed down"
    else:
        signs = "its sign is open"
    return f"{found.tried} routes in {studies}; {signs}"


def _gain(size: float) -> str:
    return f"{math.expm1(size):.1%}".replace("%", " %")


def _effect(found: Fold) -> str:
    text = f"{abs(math.expm1(found.mean)):.1%}".replace("%", " %")
    if abs(found.mean) < SMALL:
        return f"{_gain(found.size)} either way"
    return f"{text} {'faster' if found.mean < 0 else 'slower'}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _left(count: int) -> Iterator[str]:
    if count > ROWS:
        yield ""
        yield f"And {count - ROWS} more in the file."


def _operators(study: StudyEntry) -> str:
    network = study.network
    if not network.operators:
        return plain(network.name or "?")
    most = sorted(computing(network.operators).items(), key=lambda item: (-item[1], item[0]))[
        :OPERATORS
    ]
    listed = ", ".join(f"{count} {name}" for name, count in most)
    return plain(f"{network.name}: {sum(computing(network.operators).values())} nodes, {listed}")
