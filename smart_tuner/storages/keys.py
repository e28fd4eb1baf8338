"""The words under which a trial is kept in an Optuna study, for readers and writers alike."""

from __future__ import annotations

from smart_tuner.validate.limits import BUILD_TIME, ENGINE_SIZE, MEMORY

BUILT, RAN, APPLIED, ACCURACY = "built", "ran", "applied", "accuracy"

CONSTRAINT_KEYS = (BUILT, RAN, APPLIED, ACCURACY)
"""In the order in which they are set. A trial is feasible iff every key that it has is <= 0.

Where a study has limits, those of ``LIMIT_KEYS`` follow that it has, in that order."""

LIMIT_KEYS = (MEMORY, ENGINE_SIZE, BUILD_TIME)

NO_EFFECT, OVER_LIMIT = "no effect", "over limit"
"""What is counted apart from the outcomes: trials without effect, and over a limit."""

PROPOSAL = "smart_tuner:proposal"
"""System attribute in which a sampler publishes ``{"route": {knob: value}, "reason": text}``.

The route holds the values that differ from the default. It is written before the first parameter,
so that other workers see a pending route whole.
"""

ROUTE = "route"
OUTCOME = "outcome"
MESSAGE = "message"
FINGERPRINT = "engine_fingerprint"
LOSSES = "losses"
HALF_WIDTH = "half_width"
SECONDS = "seconds"
UNCHANGED = "unchanged"
LIMITS = "limits"
MEASURED = "measured"
REASON = "reason"
FOLDER = "folder"
RETRIES = "retries"
WORKER = "worker"
"""User attributes of a trial; :mod:`smart_tuner.storages.tell` says what each holds."""
