"""Feed every parser for minutes on end: ``python -m tests.parsers.soak --minutes 10 [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

from tests.parsers.test_parsers import TARGETS, survives

BATCH = 500


def soak(name: str, seconds: float) -> int:
    """Feed one parser; what breaks it is shrunk and raised.

    Returns:
        How many files it was given.
    """
    target, fed, end = TARGETS[name], 0, time.monotonic() + seconds
    while time.monotonic() < end:

        @seed(time.monotonic_ns())
        @settings(
            max_examples=BATCH,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(food=target.food)
        def run(food: Any) -> None:
            survives(target, food)

        run()
        fed += BATCH
    return fed


def main() -> None:
    """Feed the parsers that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0, help="for each parser")
    given_words = parser.parse_args()
    for name in given_words.names or TARGETS:
        sys.stdout.write(f"{name}: {soak(name, 60 * given_words.minutes)} files\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
