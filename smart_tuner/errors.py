"""Every exception that smart_tuner raises, with the exit code it gives the command line.

* SmartTunerError
  x UserInputError      2  the call, a file or a setting is wrong; the message names the remedy
    + ModelError        2  the model cannot be tuned as it is
    + StudyMismatch     2  a study is resumed with another model, platform, space or epsilon
  x EnvironmentNotFit   3  this machine lacks something: a backend, memory, a writable folder
    + BackendNotFound   3  no such backend is installed
    + StudyBusy         3  another process works in this study folder
  x NoWinner            1  the study ships nothing that could be handed on
  x SearchExhausted     .  nothing is left to propose; ends the search, not the study
  x TrialError          .  one route could not be evaluated; ``trial`` turns it into an outcome
    + BuildError        .  the engine did not build
    + NotApplied        .  the compiler did not take the route
    + RunError          .  the engine built but did not run
    + ChildTimedOut     .  the child process passed its deadline
    + ChildDied         .  the child process ended by itself: signal, memory limit, abort
"""

from __future__ import annotations


class SmartTunerError(Exception):
    """Base of all smart_tuner exceptions; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UserInputError(SmartTunerError):
    """The call, a file or a setting is wrong."""

    exit_code = 2


class ModelError(UserInputError):
    """The model cannot be tuned as it is."""


class StudyMismatch(UserInputError):  # noqa: N818
    """A study is resumed with another model, platform, search space or epsilon."""


class EnvironmentNotFit(SmartTunerError):  # noqa: N818
    """This machine lacks something that the command needs."""

    exit_code = 3


class BackendNotFound(EnvironmentNotFit):
    """No backend of that name is installed."""


class StudyBusy(EnvironmentNotFit):
    """Another process works in this study folder."""


class NoWinner(SmartTunerError):  # noqa: N818
    """The study ships nothing: it has no verdict yet, or the default is best."""


class SearchExhausted(SmartTunerError):  # noqa: N818
    """Every route that a sampler would propose has been tried or is being tried."""


class TrialError(SmartTunerError):
    """One route could not be evaluated; the study goes on."""


class BuildError(TrialError):
    """The engine did not build."""


class NotApplied(TrialError):  # noqa: N818
    """The compiler did not take the route."""


class RunError(TrialError):
    """The engine built but did not run."""


class ChildTimedOut(TrialError):  # noqa: N818
    """The child process passed its deadline and was killed."""


class ChildDied(TrialError):  # noqa: N818
    """The child process ended by itself: a signal, the memory limit, an abort."""
