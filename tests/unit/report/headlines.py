"""The top of a report, as tests of what is below it need it."""

from smart_tuner.report.analysis.headline import Headline
from smart_tuner.study.result import TuneResult


def headline(result: TuneResult) -> Headline:
    """One that says what the result does."""
    ships = bool(result.route)
    return Headline(
        sentence=result.sentence,
        state="finished",
        ships=ships,
        route=(),
        deploy="`s/winner/engine.bin`." if ships else "Keep what you have: the default.",
        accuracy=(),
        judged_by="",
        gains={},
        cautions=("The inputs were [synthetic].",) if ships else (),
    )
