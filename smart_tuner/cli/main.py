"""The smart-tuner command: a table of subcommands, each loaded when it is called."""

from __future__ import annotations

import io
import keyword
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from smart_tuner import __version__
from smart_tuner.cli.errors import complain
from smart_tuner.cli.help import SectionedCommand
from smart_tuner.cli.invocation import DEBUG, PROGRAM, invoked, program_words

COMMANDS = {
    "tune": "Search for the fastest setting of a model, and prove it.",
    "knobs": "List what can be turned.",
    "routes": "List the routes of an expression, without trying them.",
    "status": "Say how far a study is.",
    "dashboard": "Show studies in a browser, live.",
    "report": "Write a study's report, one HTML file.",
    "explain": "Say in words what a study found.",
    "apply": "Build and measure one route.",
    "verify": "Measure a winner against the default again, here.",
    "ci": "Gate a pipeline: retune on change, fail on a slow-down.",
    "store": "List, show and clean up what pipelines keep.",
    "export": "Write a winner in the form of another tool.",
    "import": "Read what another tool has tuned.",
    "worker": "Join a study, from this or another machine.",
    "priors": "Keep what studies taught, for the next one.",
    "bench": "Compare samplers on simulated compilers.",
    "doctor": "Say what this machine can tune, and what is missing.",
    "quickstart": "Tune a small real network from start to verdict.",
}
"""Name to help. ``--help`` needs nothing else, so no command's imports are paid for it."""


def module_of(command: str) -> str:
    """The module of a command; one whose name Python keeps for itself ends in an underscore."""
    return f"smart_tuner.cli.{command}{'_' if keyword.iskeyword(command) else ''}"


class LazyGroup(TyperGroup):
    """A command group that imports a subcommand's module only to run it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002, the base class's signature
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A name with its help, enough to list it."""
        text = COMMANDS.get(cmd_name)
        return text and TyperCommand(cmd_name, help=text, callback=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The real command, once it is clear which one was called."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return name, command, rest
        module = import_module(module_of(str(name)))
        single = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        single.command(
            name,
            cls=SectionedCommand,
            help=module.HELP,
            epilog=f"Example: {module.EXAMPLE}",
            no_args_is_help=module.NEEDS_ARGUMENTS,
        )(module.command)
        return name, typer.main.get_command(single), rest


app = typer.Typer(
    cls=LazyGroup,
    help="Find the fastest build of a network that stays within an accuracy epsilon.",
    epilog="Example: smart-tuner tune model.onnx --budget 10m",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(value: bool) -> None:  # noqa: FBT001, typer calls it with a flag's value
    if value:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Hold the options that every subcommand shares."""
    del version, debug


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; by default those of the process.

    Returns:
        0 good, 1 the answer is no, 2 wrong usage, 3 environment not fit, 130 interrupted.
    """
    if arguments is None:
        _print_anything()
    program = program_words() if arguments is None else [PROGRAM]
    given = sys.argv[1:] if arguments is None else arguments
    with invoked(program, given) as words:
        if odd := [word for word in words if not _is_text(word)]:
            complain(
                f"{odd[0]!r} is not UTF-8: rename it, or set a locale such as LC_ALL=C.UTF-8."
            )
            return 2
        try:
            code = app(words, prog_name=PROGRAM, standalone_mode=False)
        except typer.TyperException as error:
            return _wrong_usage(error)
        except SystemExit as end:  # the reader of our output went away
            return end.code if isinstance(end.code, int) else 1
    return code if isinstance(code, int) else 0


def _wrong_usage(error: typer.TyperException) -> int:
    """One line like any other error; a command that got nothing at all shows its help."""
    text = error.format_message()
    context = getattr(error, "ctx", None)
    if text.startswith("Usage:"):
        print(text, file=sys.stderr)
    elif context is None:
        complain(text)
    else:
        complain(f"{text.rstrip('.')}; see `{context.command_path} --help`.")
    return error.exit_code


def _print_anything() -> None:
    """Let a terminal or pipe that cannot show a letter get its escape instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_text(word: str) -> bool:
    """Whether a word is text; files of a study are UTF-8 and could not hold it otherwise."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
