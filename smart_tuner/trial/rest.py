"""Waiting until this process no longer computes."""

from __future__ import annotations

import time

LOOK_SECONDS = 0.005
"""How long each look lasts."""

BUSY_SHARE = 0.2
"""Share of one processor from which this process counts as computing."""

PATIENCE_SECONDS = 0.5
"""An engine whose threads never rest is taken as it is."""


def come_to_rest() -> None:
    """Wait until all threads of this process sleep, or patience ends.

    Runtimes let their threads spin for a while after a run, in case another one follows: those of
    ONNX Runtime do so for 40 ms. Whoever is timed next on the same processors would pay for it:
    two processes with one engine, timed in turn, differed by 60 % for as long as that lasts.
    """
    for _ in range(int(PATIENCE_SECONDS / LOOK_SECONDS)):
        before = time.process_time()
        time.sleep(LOOK_SECONDS)
        if time.process_time() - before < BUSY_SHARE * LOOK_SECONDS:
            return
