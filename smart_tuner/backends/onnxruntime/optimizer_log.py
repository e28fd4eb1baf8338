"""Reading the runtime's verbose log: which graph optimizers ran, and which changed the graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.backends.onnxruntime.passes import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Mapping

_APPLYING = re.compile(r"Applying graph transformer (\S+) on step \d+")
_RESULT = re.compile(r"GraphTransformer (\S+) modified: ([01])")
_LEVEL = re.compile(r"Applying \d+ graph transformer\(s\) for level (\d+)")
_NO_FUNCTIONS = "does not have any local functions"


@dataclass(frozen=True, slots=True)
class OptimizerLog:
    """What one session's log says.

    Attributes:
        levels: Lowest level of every optimizer that can be switched off, in order of running;
            0 if the log names no levels.
        changed: Optimizers that changed the graph in at least one step.
        has_functions: Whether the model has local functions, as far as the log says.
    """

    levels: Mapping[str, int]
    changed: frozenset[str]
    has_functions: bool


def parse_optimizer_log(text: str) -> OptimizerLog:
    """Read a log that was written at severity 0.

    Versions that do not announce an optimizer before it runs name it in its result line only;
    there the optimizers that always run are left out.
    """
    announced: dict[str, int] = {}
    reported: dict[str, int] = {}
    changed: set[str] = set()
    level = 0
    for line in text.splitlines():
        if found := _LEVEL.search(line):
            level = int(found[1])
        elif found := _APPLYING.search(line):
            announced.setdefault(found[1], level)
        elif found := _RESULT.search(line):
            reported.setdefault(found[1], level)
            if found[2] == "1":
                changed.add(found[1])
    if not announced:
        announced = {name: at for name, at in reported.items() if name not in REQUIRED}
    return OptimizerLog(
        levels=announced,
        changed=frozenset(changed & announced.keys()),
        has_functions=_NO_FUNCTIONS not in text,
    )
