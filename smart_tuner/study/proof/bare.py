"""The gain over the compiler's bare default, beside the gain over the user's base."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from smart_tuner.errors import ModelError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.proof.statistics import gain_over_builds
from smart_tuner.trial.evaluate import Evaluator

if TYPE_CHECKING:
    from smart_tuner.study.proof.confirm import Confirmed
    from smart_tuner.study.proof.fresh import FreshBuilder
    from smart_tuner.study.proof.gain import Gain
    from smart_tuner.study.session import Session

ROUNDS = 3


def bare_gain(session: Session, confirmed: Confirmed, builder: FreshBuilder) -> Gain | None:
    """Measure the winner, base included, against the default without any knob of the base.

    A gain that production already has is not ours, and the other way round a user may want to
    know what base and route give together.

    Returns:
        ``None`` if the base sets no knob, there is no time left, or the model does not build
        without the base.
    """
    knobs = session.plan.database
    turned = {name: value for name, value in session.plan.base.items() if name in knobs}
    if not turned or not builder.affords(ROUNDS):
        return None
    rest = {name: value for name, value in session.plan.base.items() if name not in turned}
    route = BuildRoute(tuple(sorted({**turned, **confirmed.route.values}.items())))
    options = dataclasses.replace(
        session.plan.options_with(session.constraint), base={**rest, **session.decided}
    )
    place = builder.folder / "bare"
    with Evaluator(session.workload, options, place) as evaluator:
        bare = dataclasses.replace(builder, evaluator=evaluator, folder=place)
        try:
            measured = [bare.measure(route, "bare default") for _ in range(ROUNDS)]
        except ModelError:
            return None
    ratios = [fresh.log_ratio for fresh in measured if fresh]
    return gain_over_builds(ratios) if ratios else None
