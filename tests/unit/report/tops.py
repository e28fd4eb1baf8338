"""The top of a report, as tests of what is below it need it."""

from smart_tuner.report.analysis.top import Top
from smart_tuner.study.proof.result import TuneResult


def top(result: TuneResult) -> Top:
    """One that says what the result does."""
    ships = bool(result.route)
    deploy = "`s/winner/engine.bin`." if ships else "Keep what you have: the default."
    cautions = ("The inputs were [synthetic].",) if ships else ()
    return Top(result.sentence, (("Deploy", deploy),), cautions)
