"""The verdict in one sentence: gain, interval, epsilon, what ships, what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.report.analysis.deploy import deploy_words
from smart_tuner.report.reading import RUNNING
from smart_tuner.report.words import duration, percent
from smart_tuner.storages.history import best_feasible
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.proof.wording import within_words
from smart_tuner.validate.constraint import MEAN
from smart_tuner.validate.losses import OutputLoss
from smart_tuner.validate.pairs import over_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.report.analysis.outlook import Outlook
    from smart_tuner.report.reading import StudyView
    from smart_tuner.validate.pairs import LossOverPairs

GAIN_NAMES = {
    "route_gain": "route gain: the route built anew, against fresh builds of the default",
    "engine_gain": "engine gain: the file that was measured, against the fastest default build",
    "sustained_gain": "under sustained load, blocks of ten seconds",
    "bare_gain": "over the bare default, base included",
}


METRIC_WORDS = {
    "l0": "the share of elements that are off by more than the tolerance",
    "l1": "the mean absolute difference",
    "l2": "the mean squared difference",
    "linf": "the largest absolute difference",
    "cos": "1 minus the cosine similarity",
    "mae": "the mean absolute difference, in the output's own unit",
    "top1": "the share of first choices that change",
    "embedding": "the cosine distance of the embeddings",
}
"""What the built-in metrics measure against the reference outputs."""

WIDE = 1.05
"""An interval whose ends are further apart than this factor is one of noise, not of builds."""

CLOSE = 0.8
"""Share of epsilon from which on a worst loss is called close to it."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What a reader must know, and nothing else.

    Attributes:
        sentence: The verdict in one sentence.
        state: ``running``, ``stopped`` or ``finished``.
        ships: Whether something other than the default ships.
        route: What ships, knob by knob; empty for the default.
        deploy: What to deploy and how, what to check first included.
        accuracy: How exact the winner is, output by output; empty without one.
        judged_by: What the accuracy metric measures, one sentence.
        gains: Gains of the confirmed route by name, in words.
        cautions: What weakens the claim, one sentence each.
    """

    sentence: str
    state: str
    ships: bool
    route: tuple[tuple[str, str], ...]
    deploy: str
    accuracy: tuple[LossOverPairs, ...]
    judged_by: str
    gains: Mapping[str, Gain]
    cautions: tuple[str, ...]


def headline_of(view: StudyView, outlook: Outlook) -> Headline:
    """Put the verdict into one sentence."""
    result = view.result
    won = result is not None and result.verdict is Verdict.WINNER
    gains = {
        name: gain
        for key, name in GAIN_NAMES.items()
        if result is not None and (gain := getattr(result, key)) is not None
    }
    return Headline(
        sentence=f"{_finding(view)}; {_next(view, outlook)}.",
        state=view.state,
        ships=won,
        route=_settings(result.route) if result else (),
        deploy=deploy_words(view),
        accuracy=_accuracy(view) if won else (),
        judged_by=_judged_by(view),
        gains=gains,
        cautions=tuple(_cautions(view)),
    )


def _finding(view: StudyView) -> str:
    """What was found, as the verdict itself has it; older studies said it with what weakens it."""
    result = view.result
    if view.state == RUNNING or result is None:
        within = within_words(view.document["accuracy"])
        return f"Not decided yet, the study {_still(view)}: {_so_far(view)} {within}"
    return result.finding or result.sentence.removesuffix(".")


def _still(view: StudyView) -> str:
    return "is running" if view.state == RUNNING else "was stopped"


def _so_far(view: StudyView) -> str:
    best = best_feasible(view.records)
    gain = view.gain(best) if best else None
    if best is None or gain is None or gain <= 1:
        return "nothing faster than the default was found so far"
    width = "" if best.half_width is None else f" +-{percent(best.half_width)}"
    return f"the fastest trial so far was measured at {gain:.3f}x{width}, once, unconfirmed,"


def _next(view: StudyView, outlook: Outlook) -> str:
    if view.state == RUNNING:
        return "wait for it, or look again with `smart-tuner status`"
    if view.result is None:
        return "run the same tune command again to continue it"
    if view.result.verdict is Verdict.UNDECIDED:
        return "continue it with a larger --budget"
    if view.result.verdict is Verdict.WINNER:
        return _after_winner(view, outlook)
    return _after_none(view, outlook)


def _after_winner(view: StudyView, outlook: Outlook) -> str:
    if view.figures_only:
        return "its engine is not kept here, so build its route to deploy it"
    if not view.manifest:
        return (
            "the files of winner/ are damaged, so run the same tune command again to ship it anew"
        )
    more = " (more budget may find more)" if outlook.worth_it else ""
    again = "measure it again on a quiet machine" if _is_disturbed(view) else ""
    check = "check it on real inputs" if view.result and view.result.provisional else ""
    first = ", ".join(step for step in (again, check) if step)
    return f"{first}, then deploy winner/{more}" if first else f"deploy winner/{more}"


def _after_none(view: StudyView, outlook: Outlook) -> str:
    if _is_noisy(view):
        return "the measurements were too noisy to tell, so try again on a quiet machine"
    return "a larger --budget may find one" if outlook.worth_it else "keep the default"


def _is_disturbed(view: StudyView) -> bool:
    """Whether the verdict says that the measurements behind it were disturbed."""
    return view.result is not None and " disturbed " in view.result.sentence


def _is_noisy(view: StudyView) -> bool:
    """Whether only noise keeps the best candidate from being proven, or from being ruled out."""
    gain = _best(view)
    is_open = gain is not None and gain.low < view.min_gain <= gain.high
    return gain is not None and is_open and gain.high > WIDE * gain.low


def _best(view: StudyView) -> Gain | None:
    """The confirmed route's gain; if none was built afresh, that of the fastest trial."""
    if view.result is not None and view.result.route_gain is not None:
        return view.result.route_gain
    best = best_feasible(record for record in view.records if len(record.route))
    gain = view.gain(best) if best else None
    if view.runs or best is None or gain is None or best.half_width is None:
        return None
    return Gain.from_log_ratio(-math.log(gain), best.half_width, 1)


def _settings(route: str) -> tuple[tuple[str, str], ...]:
    pairs = (word.removeprefix("-").partition("=") for word in route.split())
    return tuple((name, value) for name, _, value in pairs)


def _accuracy(view: StudyView) -> tuple[LossOverPairs, ...]:
    """Losses as the verdict has them; of older studies, as the winner's manifest does."""
    if view.result and view.result.accuracy:
        return view.result.accuracy
    losses = [
        OutputLoss(
            point=str(row["point"]),
            pair=str(row["pair"]),
            output=str(row["output"]),
            metric=str(row["metric"]),
            loss=float(row["loss"]),
            epsilon=float(str(row["epsilon"])),
        )
        for row in view.manifest.get("losses", ())
    ]
    return over_pairs(losses)


def _judged_by(view: StudyView) -> str:
    words = METRIC_WORDS.get(view.metric)
    if words is None:
        return f"Accuracy is judged by the metric {view.metric}."
    accuracy = view.document["accuracy"]
    rtol, atol = accuracy.get("rtol"), accuracy.get("atol")
    tolerance = f" ({atol:g} + {rtol:g} x |reference|)" if view.metric == "l0" else ""
    return (
        f"Accuracy is judged by {view.metric}: {words}{tolerance}, against the reference outputs."
    )


def _cautions(view: StudyView) -> list[str]:
    result = view.result
    found = list(view.problems)
    if result is None:
        return found
    confirmed = result.route_gain is not None
    if result.indicative and confirmed:
        found.append("Indicative only: the budget allowed fewer than five fresh builds a side.")
    if result.provisional and result.verdict is Verdict.WINNER:
        found.append(
            "The inputs were synthetic: the accuracy claim holds for those only. Give real ones "
            "with --inputs, and --held-out to decide on others."
        )
    if result.verdict is Verdict.WINNER and not result.provisional:
        found.extend(_close_to_epsilon(view))
    own = result.engine_gain
    if result.verdict is Verdict.WINNER and own is not None and own.low < 1:
        found.append(
            f"The shipped file alone is not proven faster: {own}. The gain rests on all fresh "
            "builds together."
        )
    if _is_disturbed(view) and confirmed:
        again = "verify" if result.verdict is Verdict.WINNER else "tune"
        found.append(
            "Other work on the machine disturbed the measurements behind the verdict: repeat "
            f"`smart-tuner {again}` while it is quiet."
        )
    if view.spent_seconds > 1.05 * view.budget_seconds > 0:
        over = duration(view.spent_seconds - view.budget_seconds)
        found.append(f"The budget was overrun by {over}.")
    return found


def _close_to_epsilon(view: StudyView) -> list[str]:
    """Outputs that would break the limit with one pair that is a little worse than those seen.

    Of n + 1 pairs drawn alike, the last is the worst with a chance of 1 in n + 1.
    """
    return [
        f"The worst loss of output {row.output!r} is {100 * row.worst / row.epsilon:.0f} % of "
        f"epsilon, on {many(row.pairs, 'pair')}: a new input is worse than all of these with a chance of 1 in "
        f"{row.pairs + 1}. Give more with --held-out, or tune with a smaller --epsilon."
        for row in _accuracy(view)
        if row.over != MEAN and row.epsilon > 0 and row.worst > CLOSE * row.epsilon
    ]
