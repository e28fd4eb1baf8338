"""The words under which a study is kept; they stand alone, so that reading a study stays quick."""

from __future__ import annotations

STUDY_NAME = "smart_tuner"
"""Of the one study in a study folder's journal."""

SPENT = "spent_seconds"
BASELINE_MS = "baseline_ms"
"""Study attributes: seconds spent by all sessions; the baseline median, frozen by the first."""
