"""Searches a compiler's knobs for the fastest build of a network within an accuracy epsilon."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from smart_tuner.version import __version__ as __version__

if TYPE_CHECKING:
    from smart_tuner.engine.backend import Backend, load_backend
    from smart_tuner.errors import SmartTunerError
    from smart_tuner.knobs.knob import Knob
    from smart_tuner.knobs.space import SearchSpace
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.report.tuned import TuneResult, tune
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.study.setup.settings import StudySettings
    from smart_tuner.trial.trial import Trial, TrialOutcome
    from smart_tuner.validate.constraint import AccuracyConstraint

__all__ = [
    "AccuracyConstraint",
    "Backend",
    "BuildRoute",
    "Knob",
    "ModelSpec",
    "SearchSpace",
    "SmartTunerError",
    "StudySettings",
    "Trial",
    "TrialOutcome",
    "TuneResult",
    "load_backend",
    "tune",
]

# Public name -> home. Resolved on first use (PEP 562), so that `import smart_tuner` and with it
# `smart-tuner --help` stay fast: Optuna alone takes a quarter of a second.
_HOMES = {
    "AccuracyConstraint": "smart_tuner.validate.constraint",
    "Backend": "smart_tuner.engine.backend",
    "BuildRoute": "smart_tuner.route.build_route",
    "Knob": "smart_tuner.knobs.knob",
    "ModelSpec": "smart_tuner.model.spec",
    "SearchSpace": "smart_tuner.knobs.space",
    "SmartTunerError": "smart_tuner.errors",
    "StudySettings": "smart_tuner.study.setup.settings",
    "Trial": "smart_tuner.trial.trial",
    "TrialOutcome": "smart_tuner.trial.trial",
    "TuneResult": "smart_tuner.report.tuned",
    "load_backend": "smart_tuner.engine.backend",
    "tune": "smart_tuner.report.tuned",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
