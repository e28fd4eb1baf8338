"""What to deploy, and how to check it first where its inputs were made up."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.engine.build import LOADER_FILE
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.setup.settings import BASE_FLAGS, command_line

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView

CHECKED = frozenset(
    f"--{name.replace('_', '-')}"
    for name in (
        *("backend", "base", "metric", "epsilon", "rtol", "atol", "over_pairs", "reference"),
        *("regions", "precisions", "calibration", "statistic", *BASE_FLAGS),
    )
)
"""Settings of a study that say what is built and how it is judged, as flags."""

REAL_INPUTS = "YOUR_INPUTS"


def deploy_words(view: StudyView) -> str:
    """What to deploy and how, in a few sentences; paths start in the folder of the study."""
    result = view.result
    if result is None:
        return "Nothing is decided yet: keep what you have until the study is finished."
    if result.verdict is not Verdict.WINNER:
        return "Keep what you have: the default."
    if view.figures_only:
        return (
            "Nothing from this folder, which keeps figures only. Build the route on the platform "
            f"that it was found on: `{check_command(view)}` must say ok."
        )
    if not view.manifest:
        return "Do not deploy winner/: its files are not those that were measured."
    winner = f"{view.root.name}/winner"
    file = f"`{winner}/{view.manifest['engine']['file']}`"
    loads = f" `{winner}/{LOADER_FILE}` loads it." if LOADER_FILE in view.manifest["files"] else ""
    if result.provisional:
        return (
            f"{file}, but first check it with real inputs: `{check_command(view)}` must say ok."
            f"{loads}"
        )
    return f"{file}.{loads}"


def check_command(view: StudyView) -> str:
    """The command that builds the shipped route and judges it on inputs of the reader's own."""
    words = command_line(view.settings, Path(view.root.name))
    route = view.result.route if view.result else ""
    kept = [word for word in words[5:] if word.partition("=")[0] in CHECKED]
    model = str(view.settings.get("model", ""))
    chosen = [f"--route={route}", f"--inputs={REAL_INPUTS}"]
    return shlex.join(["smart-tuner", "apply", model, *kept, *chosen])
