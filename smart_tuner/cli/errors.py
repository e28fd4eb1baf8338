"""From an exception to one readable line and an exit code."""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, ParamSpec

import typer

from smart_tuner.cli.invocation import current
from smart_tuner.errors import EnvironmentNotFit, SmartTunerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERRUPTED = 130

Parameters = ParamSpec("Parameters")


def guarded(command: Callable[Parameters, int]) -> Callable[Parameters, None]:
    """Turn a command's return value and its errors into the process's exit code.

    SIGTERM is treated as Ctrl-C: children are killed and the study is kept. What the operating
    system refuses (a full disk, a missing permission) is the environment's fault, unless it is
    the reader of a pipe that went away: the command line ends quietly then.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with _terminated_as_interrupted():
                code = command(*args, **kwargs)
        except SmartTunerError as error:
            code = _complain_about(error, str(error), error.exit_code)
        except BrokenPipeError:
            raise
        except OSError as error:
            code = _complain_about(error, _refused(error), EnvironmentNotFit.exit_code)
        except KeyboardInterrupt:
            complain("interrupted")
            code = INTERRUPTED
        raise typer.Exit(code)

    return run


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain_about(error: Exception, text: str, code: int) -> int:
    if current().debug:
        traceback.print_exception(error)
    complain(text)
    return code


def _refused(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}; --debug shows where."


def complain(text: str) -> None:
    """Print one line on standard error; what is in quotes keeps its blanks."""
    print(f"smart-tuner: {one_line(text)}", file=sys.stderr)


def one_line(text: str) -> str:
    """Text in one line that moves no cursor: files of others may put escape codes into messages."""
    line = re.sub(r"[ \t]*[\r\n]+[ \t]*", " ", text).strip()
    return "".join(
        letter if letter.isprintable() or letter in "\t\xa0" else ascii(letter)[1:-1]
        for letter in line
    )
