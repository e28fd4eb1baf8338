"""A winner with a few lines of Python that run it, without smart_tuner."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from smart_tuner.engine.build import LOADER_FILE, MODEL_FILE
from smart_tuner.errors import UserInputError
from smart_tuner.report.export.page import Export
from smart_tuner.report.export.runner_onnxruntime import session_runner
from smart_tuner.report.export.runners import runner_source
from smart_tuner.report.export.triton_onnxruntime import runs_on_gpu
from smart_tuner.report.export.winner import ONNXRUNTIME, RTX, TENSORRT, need_runtime
from smart_tuner.study.proof.manifest import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.report.export.winner import Winner

RUNNER = "run_winner.py"
LIBRARIES = {
    "cuda-python": (TENSORRT, RTX),
    "torch": (TENSORRT, RTX),
    "onnxruntime": (ONNXRUNTIME,),
}
"""What runs a winner, and for which runtimes."""

_CAUTION = (
    "This is the engine that was measured, not a rebuild. It belongs to the device and the "
    "versions named above."
)


def export_loader(winner: Winner, place: Path, library: str = "") -> Export:
    """Copy the winner's files and write a module that runs it.

    Args:
        winner: A study's winner.
        place: The folder to fill.
        library: One of ``LIBRARIES``; by default the first that fits the winner.

    Raises:
        UserInputError: The library is unknown or does not run this winner.
    """
    if library and library not in LIBRARIES:
        msg = f"No loader for {library!r}: --for takes {', '.join(LIBRARIES)}."
        raise UserInputError(msg)
    fitting = [name for name, runtimes in LIBRARIES.items() if winner.runtime in runtimes]
    chosen = library or (fitting[0] if fitting else "")
    every = tuple(dict.fromkeys(name for names in LIBRARIES.values() for name in names))
    what = f"Loaders for {chosen}" if chosen else "Loaders"
    need_runtime(winner, LIBRARIES.get(chosen, every), what)
    if LOADER_FILE not in winner.manifest["files"]:
        msg = f"{winner.folder.winner} holds no {LOADER_FILE}: its backend made none; ship anew."
        raise UserInputError(msg)
    names = (*winner.manifest["files"], MANIFEST)
    for name in names:
        shutil.copyfile(winner.folder.winner / name, place / name)
    source = _source(winner, chosen)
    (place / RUNNER).write_text(source, encoding="utf-8")
    about = {
        RUNNER: f"`Winner`, which runs it with {chosen}",
        LOADER_FILE: "`load`, which opens it as it was measured",
        winner.engine.name: "the engine",
        MANIFEST: "route, digests, platform, gain and losses",
    }
    is_beside = MODEL_FILE in winner.manifest["files"]
    if is_beside:
        about[MODEL_FILE] = "the network, its regions in the precision that won"
    reads = chosen == "onnxruntime" and not is_beside
    notes = (f"The session reads {winner.model}.",) if reads else ()
    return Export(chosen, about, _CAUTION, notes=notes)


def _source(winner: Winner, library: str) -> str:
    if library == ONNXRUNTIME:
        return session_runner(winner.engine.name, on_gpu=runs_on_gpu(winner))
    return runner_source(library, winner.engine.name, _module(winner))


def _module(winner: Winner) -> str:
    """The SDK's Python module, by the name under which the loader imports it."""
    text = (winner.folder.winner / LOADER_FILE).read_text(encoding="utf-8")
    found = re.search(r"^import (\w+) as trt$", text, re.MULTILINE)
    return found[1] if found else winner.runtime
