"""How this command was called: the words that call it again, and whether tracebacks are wanted."""

from __future__ import annotations

import contextlib
import shutil
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = "smart-tuner"
DEBUG = "--debug"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of the command line.

    Attributes:
        words: The whole command, word by word, as ``shlex.join`` takes it.
        debug: Errors show their traceback.
    """

    words: tuple[str, ...] = (PROGRAM,)
    debug: bool = False


_CURRENT: ContextVar[Invocation] = ContextVar("invocation", default=Invocation())  # noqa: B039


def current() -> Invocation:
    """The call that is being served in this context."""
    return _CURRENT.get()


@contextlib.contextmanager
def invoked(program: Sequence[str], arguments: Sequence[str]) -> Iterator[list[str]]:
    """Remember a call while it is served.

    Args:
        program: Words that start smart-tuner.
        arguments: What follows them; ``--debug`` may stand anywhere before a bare ``--``.

    Yields:
        The arguments without ``--debug``.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    rest = [word for word in arguments[:end] if word != DEBUG]
    call = Invocation((*program, *arguments), debug=len(rest) < end)
    token = _CURRENT.set(call)
    try:
        yield [*rest, *arguments[end:]]
    finally:
        _CURRENT.reset(token)


def program_words() -> list[str]:
    """Words that start smart-tuner the way this process was started.

    ``smart-tuner`` alone would not do after ``.venv/bin/smart-tuner`` or ``python -m``.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return [sys.executable, "-m", "smart_tuner"]
    if started.name != PROGRAM:
        return [PROGRAM]
    found = shutil.which(PROGRAM)
    is_on_path = found is not None and Path(found).absolute() == started.absolute()
    return [PROGRAM if is_on_path else sys.argv[0]]
