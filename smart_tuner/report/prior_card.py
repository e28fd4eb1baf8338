"""A prior as a page for people: what to try, what to leave, from what evidence, and what is unknown."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from smart_tuner.priors.fold import fold
from smart_tuner.report.markdown import code, plain, table
from smart_tuner.report.prior_claims import GOOD_CHANCE, SEEN, WORTH, claims_of, names_of
from smart_tuner.report.prior_evidence import Sources, change
from smart_tuner.report.prior_sources import baseline_lines, evidence_lines, unknown_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.priors.document import Prior
    from smart_tuner.priors.fold import Fold
    from smart_tuner.report.prior_claims import Claims, Pairs

    Setting = tuple[str, str]

ROWS = 8
NAMED = 4
IN_SHORT = 5
"""Values that the beginning of the page names of each list."""

MAY_BREAK = 0.1
"""Chance to break from which on a row says so."""


def card(prior: Prior) -> Iterator[str]:
    """The lines of the page, as Markdown."""
    folded = fold(prior, {study.id: 1.0 for study in prior.studies})
    claims, sources = claims_of(folded), Sources.of(prior)
    names = list(sources.names.values())
    more = len(names) - NAMED
    listed = f"{', '.join(names[:NAMED])}{f' and {more} more' if more > 0 else ''}"
    yield f"# Prior for {_compilers(prior)}: {listed}"
    yield ""
    yield from _summary(sources, claims)
    if prior.notes:
        yield f"> {plain(prior.notes)}"
        yield ""
    yield from baseline_lines(sources)
    yield from _columns()
    yield from _first(sources, claims)
    yield from _harmful(sources, claims)
    yield from _breaking(claims)
    yield from _folded_names("probably do nothing", claims.idle)
    yield from _folded_names("are open: tried too little, or the studies differ", claims.unsure)
    yield from unknown_lines(sources, folded)
    yield from evidence_lines(sources)
    yield from _words()
    yield from _use(claims)


def _summary(sources: Sources, claims: Claims) -> Iterator[str]:
    studies = sources.prior.studies
    trials = sum(study.trials for study in studies)
    yield (
        f"What {_count(len(studies), 'study', 'studies')} with {trials} trials on "
        f"{' and '.join(sources.platforms)} suggest{'s' if len(studies) == 1 else ''} for the "
        f"settings of {_compilers(sources.prior)} on a new network: {_count(len(claims.first), 'value')} to try first, {len(claims.cheap)} more "
        f"if trials are cheap, {len(claims.harmful)} better left alone. It is a place to begin, "
        "not a result: `tune` measures everything itself and stops following a prior that proves "
        "wrong."
    )
    yield ""
    yield (
        f"**In short.** Try first: {_named(sources, claims.first)}. If trials are cheap: "
        f"{_named(sources, claims.cheap)}. Leave alone above all: {_named(sources, claims.harmful)}."
    )
    yield ""
    if len(sources.platforms) > 1:
        differing = sum(bool(sources.quarrel(item)) for item in sources.items)
        goes = "go" if differing > 1 else "goes"
        yield (
            f"**These studies come from {len(sources.platforms)} platforms, and the chances below "
            f"average over them.** {_count(differing, 'value').capitalize()} clearly {goes} one way "
            "on one of them and the other way on another; where such a value is listed, its row "
            "says so. If you tune for one of them, take a prior of its studies alone."
        )
        yield ""


def _compilers(prior: Prior) -> str:
    """What the studies compiled with, versions included."""
    found = dict.fromkeys(study.backend_version or study.source for study in prior.studies)
    return plain(", ".join(name for name in found if name) or "an unknown compiler")


def _named(sources: Sources, pairs: Pairs) -> str:
    """The first of a list, one by one."""
    names = (
        code("=".join(item)) + (" (platforms disagree)" if sources.quarrel(item) else "")
        for item, _ in pairs[:IN_SHORT]
    )
    return ", ".join(names) or "nothing"


def _first(sources: Sources, claims: Claims) -> Iterator[str]:
    yield "## Try these first"
    yield ""
    if claims.first:
        yield from _rows(sources, claims.first)
        yield ""
        yield (
            f"Listed is what probably helps by {_percent(WORTH)} or more: faster with a chance of "
            f"at least {_percent(GOOD_CHANCE)} and at least twice that of slower, and seen to help "
            "in a study. The order is chance of faster times size."
        )
        yield ""
    hope = "Nothing else has" if claims.first else "No value here has"
    yield f"{hope} a good chance to help: spend further trials on a search of the whole space."
    yield ""
    if claims.cheap:
        yield "## Worth a try only if trials are cheap"
        yield ""
        yield from _rows(sources, claims.cheap)
        yield ""
        yield (
            "These helped in a study, but the chance is small or that of slower is about as large. "
            "The order is chance of faster times size."
        )
        yield ""


def _harmful(sources: Sources, claims: Claims) -> Iterator[str]:
    if not claims.harmful:
        return
    yield "## Better left alone"
    yield ""
    yield (
        "At least twice as likely slower as faster. The largest expected slow-down, chance of "
        "slower times size, comes first."
    )
    yield ""
    yield from _rows(sources, claims.harmful[:ROWS])
    yield ""
    if left := claims.harmful[ROWS:]:
        yield f"<details><summary>{len(left)} more, in the same order</summary>"
        yield ""
        yield from _rows(sources, left)
        yield ""
        yield "</details>"
        yield ""


def _columns() -> Iterator[str]:
    yield "In the tables below:"
    yield ""
    yield (
        "- *faster*, *slower*, *no change*: the chance of each for a new network, and by how much "
        "its latency then changes; -3 % is 3 % less. A star marks a size that is mostly the "
        "built-in assumption (see Words) and not data."
    )
    yield (
        "- *study by study*: the change of latency that was fitted in each study and, in brackets, "
        "how many measured trials had the value. `?`: more likely noise than not. 0 %: nothing "
        "beyond noise was seen. Studies that never tried the value are not named."
    )
    yield ""


def _rows(sources: Sources, pairs: Pairs) -> Iterator[str]:
    yield from table(
        ("knob and value", "faster", "slower", "no change", "study by study"),
        (
            (
                f"{code('='.join(item))} instead of {code(sources.prior.knobs[item[0]].default)}",
                _chance(found.chance_faster, -found.gain, found.gain_seen),
                _chance(found.chance_slower, found.loss, found.loss_seen),
                _percent(1 - found.active),
                _told(sources, item, found),
            )
            for item, found in pairs
        ),
    )


def _told(sources: Sources, item: Setting, found: Fold) -> str:
    quarrel = sources.quarrel(item)
    parts = [f"**platforms disagree: {quarrel}**"] if quarrel else []
    parts.append(sources.told(item))
    if found.failure >= MAY_BREAK:
        parts.append(f"fails to build or run: {_percent(found.failure)}")
    if (found.violation or 0.0) >= MAY_BREAK:
        parts.append(f"breaks the accuracy limit: {_percent(found.violation or 0.0)}")
    return "; ".join(parts)


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
            str(found.tried),
        )
        for (name, value), found in claims.breaks[:ROWS]
    )
    head = ("knob and value", "fails to build or run", "breaks the accuracy limit", "trials")
    yield from table(head, rows)
    yield ""
    yield from _folded_names("more probably break", claims.breaks[ROWS:])


def _folded_names(what: str, pairs: Pairs) -> Iterator[str]:
    if not pairs:
        return
    yield f"<details><summary>{_count(len(pairs), 'value')} {what}</summary>"
    yield ""
    yield ", ".join(code(name) for name in names_of(pairs))
    yield ""
    yield "</details>"
    yield ""


def _words() -> Iterator[str]:
    yield "## Words"
    yield ""
    yield "- *Knob*: a setting of the compiler or runtime. *Value*: one choice of it."
    yield (
        "- *Trial*: one combination of values, compiled, checked and measured. Most change several "
        "knobs at once, so the effect of one value is fitted, not measured by itself."
    )
    yield (
        "- *failed*: every trial with the value failed in that study; another value in them may be "
        "to blame. *other default*: it had an effect there, but that study set the knob to "
        "something else by default, so the figures do not compare."
    )
    yield (
        "- *Built-in assumption*: before any study, one value in ten changes the latency, by about "
        "4 %, as likely either way; what helps one network slows down another in three cases of "
        "ten. The fewer studies there are, the nearer to that the figures stay."
    )
    yield ""


def _use(claims: Claims) -> Iterator[str]:
    best = claims.first[:1]
    route = f"-{'='.join(best[0][0])}" if best else "-KNOB=VALUE"
    yield "## Use"
    yield ""
    yield "```bash"
    yield "smart-tuner tune MODEL.onnx --prior FILE.prior.toml       # a search that begins here"
    yield "smart-tuner priors check FILE.prior.toml --model MODEL.onnx"
    yield f"smart-tuner apply MODEL.onnx --route {shlex.quote(route)}  # one value by itself"
    yield "```"


def _chance(chance: float, effect: float, seen: float) -> str:
    star = "" if seen >= SEEN else " \\*"
    return f"{_percent(chance)}, by {change(effect)}{star}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _count(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or f'{one}s'}"
