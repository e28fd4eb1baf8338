"""``smart-tuner import``: what another tool has tuned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import whole_file
from smart_tuner.model.new_folder import check_new_folder, new_folder
from smart_tuner.report.tuning_cache import cache_summary, summary_lines, trial_lines
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.cached_trials import cached_trials, recorded_compiler
from smart_tuner.storages.tuning_cache import read_tuning_cache

if TYPE_CHECKING:
    from smart_tuner.storages.cached_trials import CachedTrials

HELP = (
    "Read a tuning cache of trtexec or Torch-TensorRT: say what it holds, and keep its trials "
    "for replay. It is never taken for a measurement."
)
EXAMPLE = "smart-tuner import trtexec tune.jsonl --out trials.jsonl"
NEEDS_ARGUMENTS = True
TOOLS = ("trtexec", "torch-tensorrt")


@guarded
def command(
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="Who wrote it: trtexec or torch-tensorrt.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tuning cache, JSON lines.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the trials, as trials.jsonl has them."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FOLDER",
            help="Write a stand-in model that --backend replay answers for with these trials.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what --out or --replay names.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> int:
    """Read, keep and summarise; 1 if no route worked."""
    if tool not in TOOLS:
        msg = f"Cannot import from {tool!r}: TOOL is {' or '.join(TOOLS)}."
        raise UserInputError(msg)
    found = cached_trials(read_tuning_cache(file))
    _check(out, replay, force=force)
    compiler = recorded_compiler(found) if replay is not None else None
    if out is not None:
        with whole_file(out) as stream:
            stream.writelines(f"{line}\n".encode() for line in trial_lines(found))
    if replay is not None and compiler is not None:
        with new_folder(replay, "--replay", replace=force) as place:
            write_simulated_model(place, compiler)
    summary = cache_summary(found)
    if as_json:
        print_json(asdict(summary))
    else:
        for line in summary_lines(summary):
            print(line)
        if replay is not None:
            complain(f"note: {_how_to_replay(replay, found)}")
    return 0 if summary.fastest_ms is not None else 1


def _check(out: Path | None, replay: Path | None, *, force: bool) -> None:
    """Refuse what is in the way before anything is written."""
    if out is not None and out.is_dir():
        msg = f"{out} is a folder: name a file with --out."
        raise UserInputError(msg)
    if out is not None and out.exists() and not force:
        msg = f"{out} is there already: take --force to overwrite it, or name another --out."
        raise UserInputError(msg)
    if replay is not None:
        check_new_folder(replay, "--replay", replace=force)


def _how_to_replay(folder: Path, found: CachedTrials) -> str:
    """The command that searches the recorded trials; losses are replayed as linf."""
    header = found.cache.header
    epsilon = header.our_epsilon if header is not None and header.epsilon else 1e-3
    return (
        f"`smart-tuner tune {folder / 'model.onnx'} --backend replay --metric linf "
        f"--epsilon {epsilon!r}` searches these trials; routes that were not tried do not build"
    )
