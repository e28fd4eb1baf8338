"""From an exception to one readable line and an exit code."""

from __future__ import annotations

import functools
import signal
import sys
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import typer

from smart_tuner.errors import SmartTunerError

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130

Parameters = ParamSpec("Parameters")


def guarded(command: Callable[Parameters, int]) -> Callable[Parameters, None]:
    """Turn a command's return value and its errors into the process's exit code.

    SIGTERM is treated as Ctrl-C: children are killed and the study is kept.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            code = command(*args, **kwargs)
        except SmartTunerError as error:
            if "--debug" in sys.argv:
                raise
            complain(str(error))
            code = error.exit_code
        except KeyboardInterrupt:
            complain("interrupted")
            code = INTERRUPTED
        raise typer.Exit(code)

    return run


def complain(text: str) -> None:
    """Print one line on standard error."""
    print(f"smart-tuner: {' '.join(text.split())}", file=sys.stderr)


def refuse(text: str) -> NoReturn:
    """End with wrong usage."""
    complain(text)
    raise typer.Exit(2)
