"""``smart-tuner ci``: the gate of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.options import merged, with_settings
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.gate.documents import is_name
from smart_tuner.gate.judge import ROUNDS, TOLERANCE
from smart_tuner.gate.junit import junit
from smart_tuner.gate.markdown import markdown, what_next
from smart_tuner.gate.outcome import GateOptions, GateOutcome
from smart_tuner.gate.run import run_gate
from smart_tuner.model.files import whole_file
from smart_tuner.report.terminal import display
from smart_tuner.study.setup.settings import StudySettings

HELP = (
    "Gate a pipeline: tune if model, shapes, platform or versions changed, check accuracy, compare "
    "with the stored engine, archive. 1 if it is slower beyond noise, or not accurate."
)
EXAMPLE = "smart-tuner ci --model model.onnx --baseline store --budget 10m"
NEEDS_ARGUMENTS = True
OWN = frozenset({"model", "study"})
"""Settings that this command asks for in its own words."""


def _gate(name: str, metavar: str | None, text: str, **bounds: Any) -> Any:
    """An option of the gate; what is left is said by its default or its text."""
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel="Gate", **bounds)


Model = Annotated[Path, _gate("--model", "MODEL", "The ONNX model.", show_default=False)]
Baseline = Annotated[
    Path, _gate("--baseline", "STORE", "Folder of the store.", show_default=False)
]
Study = Annotated[
    Path | None,
    _gate("--study", "FOLDER", "Keep the study here; without it only what is archived stays."),
]
Name = Annotated[
    str,
    _gate(
        "--name",
        "NAME",
        "What is tuned, the same over all versions. [default: the model file's name]",
        show_default=False,
    ),
]
Tolerance = Annotated[
    float, _gate("--tolerance", "SHARE", "Slow-down that passes.", min=0, max=10)
]
Rounds = Annotated[
    int, _gate("--rounds", "N", "Rounds, doubled once if they leave it open.", min=2, max=100)
]
Init = Annotated[bool, _gate("--init", None, "Start a store if there is none.")]
Candidate = Annotated[
    bool,
    _gate("--candidate", None, "Archive, but compare no later run with it: for open branches."),
]
Accept = Annotated[
    bool, _gate("--accept", None, "Compare later runs with it though it is slower.")
]
NoArchive = Annotated[bool, _gate("--no-archive", None, "Write nothing to the store.")]
Retune = Annotated[bool, _gate("--retune", None, "Tune though nothing changed.")]
DryRun = Annotated[bool, _gate("--dry-run", None, "Only say whether retuning is due, and why.")]
PreviousPython = Annotated[
    Path | None,
    _gate("--previous-python", "PYTHON", "Python with the runtime of before, to compare with."),
]
MarkdownFile = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Write Markdown for a pull request."),
]
JunitFile = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file with settings; flags override it."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the answer only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


@guarded
@with_settings(name for name in StudySettings.model_fields if name not in OWN)
def command(  # noqa: PLR0913, one parameter an option
    *,
    settings: dict[str, Any],
    model: Model,
    baseline: Baseline,
    study: Study = None,
    name: Name = "",
    tolerance: Tolerance = TOLERANCE,
    rounds: Rounds = ROUNDS,
    init: Init = False,
    candidate: Candidate = False,
    accept: Accept = False,
    no_archive: NoArchive = False,
    retune: Retune = False,
    dry_run: DryRun = False,
    previous_python: PreviousPython = None,
    markdown_file: MarkdownFile = None,
    junit_file: JunitFile = None,
    config: Config = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Run the gate; 1 if the answer is no."""
    options = GateOptions(
        store=baseline,
        name=name,
        rounds=rounds,
        tolerance=tolerance,
        init=init,
        archive=not no_archive,
        candidate=candidate,
        accept=accept,
        retune=retune,
        dry_run=dry_run,
        previous_python="" if previous_python is None else str(previous_python.absolute()),
    )
    _check(options)
    own = {"model": model, **({"study": study} if study else {})}
    chosen = merged(config, {**settings, **own})
    title = f"smart-tuner ci: {model} against {baseline}"
    with display(title, Console(stderr=True), quiet=quiet or as_json) as listener:
        outcome = run_gate(options, chosen, listener)
    _write(markdown_file, markdown(outcome))
    _write(junit_file, junit(outcome))
    _print(outcome, as_json=as_json)
    return 0 if outcome.is_good else 1


def _check(options: GateOptions) -> None:
    if options.name and not is_name(options.name):
        msg = f"--name {options.name!r}: take letters, digits, dots and dashes, 80 at most."
        raise UserInputError(msg)
    if options.accept and options.candidate:
        msg = "--accept and --candidate contradict each other: take one."
        raise UserInputError(msg)
    python = options.previous_python
    if python and not Path(python).is_file():
        msg = f"--previous-python: there is no {python}."
        raise UserInputError(msg)


def _write(path: Path | None, text: str) -> None:
    if path is None:
        return
    path = path.expanduser().absolute()
    if path.is_dir():
        msg = f"{path} is a folder: name a file."
        raise UserInputError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(text.encode())


def _print(outcome: GateOutcome, *, as_json: bool) -> None:
    if as_json:
        print_json(outcome.to_json())
        return
    if outcome.due:
        print("Retuning was due:" if outcome.entry or outcome.tuned else "Retuning is due:")
        for line in outcome.due:
            print(f"  {line}")
    if outcome.tuned:
        print(outcome.tuned)
    if outcome.comparison is not None:
        print(outcome.comparison.sentence)
    print(outcome.sentence)
    for line in what_next(outcome):
        print(line)
    if outcome.entry:
        print(f"Entry {outcome.entry}")
