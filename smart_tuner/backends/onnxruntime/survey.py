"""Asking a child process which optimizers exist and which of them matter to one model."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.onnxruntime.kept import keep, read_kept, runtime_stamp
from smart_tuner.devices.cpu import instruction_sets, processor_name
from smart_tuner.engine.once import run_once
from smart_tuner.errors import EnvironmentNotFit, ModelError
from smart_tuner.model.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smart_tuner.model.spec import ModelSpec

_CHILD = "smart_tuner.backends.onnxruntime.discovery"
_DEADLINE_SECONDS = 300.0
_RULE_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Survey:
    """What one model (or a tiny one) told about the optimizers.

    Attributes:
        levels: Level by optimizer, in order of running.
        awake: Optimizers that change this model's graph, alone or once others are off.
        rules: Rewrite rules that do; ``None`` if it was not found out.
        has_functions: Whether the model has local functions.
    """

    levels: Mapping[str, int]
    awake: frozenset[str]
    rules: frozenset[str] | None
    has_functions: bool


class UnknownOperatorError(ModelError):
    """The model needs a custom-operator library, which only a base can name."""


def kept_survey(model: ModelSpec, rules: Sequence[str], *, graphs: bool, provider: str) -> Survey:
    """Return what ``survey`` finds, from the cache if it was asked before on this machine.

    Raises:
        ModelError: The runtime refuses the model.
        EnvironmentNotFit: The runtime does not work.
    """
    machine = f"{processor_name()} {' '.join(instruction_sets())}"
    stamp = f"{runtime_stamp()} {machine} {provider} {graphs} {' '.join(rules)} {model.sha256}"
    name = f"surveys/{hashlib.sha256(stamp.encode()).hexdigest()[:32]}"
    answer = read_kept(name, stamp)
    if answer is None:
        answer = _ask(model.path, rules, graphs=graphs, provider=provider)
        keep(name, stamp, answer)
    return _survey(answer)


def survey(
    model: Path | None, rules: Sequence[str] = (), *, graphs: bool = True, provider: str = "cpu"
) -> Survey:
    """Load a model a few times in one child process, with passes switched off in turn.

    Args:
        model: Model file; None for a tiny model of the child's own.
        rules: Rewrite rules whose effect on the model is looked for.
        graphs: Whether the optimized graph may be written out to compare it; without it nothing
            is said about single rules.
        provider: ``cpu`` or ``cuda``: optimizers look at who runs a node.

    Raises:
        ModelError: The runtime refuses the model.
        EnvironmentNotFit: The runtime does not work.
    """
    return _survey(_ask(model, rules, graphs=graphs, provider=provider))


def _ask(
    model: Path | None, rules: Sequence[str], *, graphs: bool, provider: str
) -> dict[str, Any]:
    """Ask the child; its answer as it wrote it."""
    with scratch_folder() as folder:
        request = {
            "model": str(model) if model is not None else None,
            "rules": list(rules),
            "graphs": graphs,
            "rule_seconds": _RULE_SECONDS,
            "provider": provider,
            "parent": os.getpid(),
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        complaint = run_once(_CHILD, folder, _DEADLINE_SECONDS)
        return _read_answer(folder / "answer.json", model, complaint)


def _read_answer(path: Path, model: Path | None, complaint: str) -> dict[str, Any]:
    subject = f"model {model}" if model is not None else "onnxruntime"
    error = ModelError if model is not None else EnvironmentNotFit
    if not path.is_file():
        msg = f"{subject}: the runtime's process ended without an answer ({complaint})"
        raise error(msg)
    answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if "error" in answer:
        if answer["unknown_operator"]:
            error = UnknownOperatorError
        msg = f"{subject} cannot be loaded: {answer['error']}"
        raise error(msg)
    return answer


def _survey(answer: Mapping[str, Any]) -> Survey:
    rules = answer["rules"]
    return Survey(
        levels=dict(answer["levels"]),
        awake=frozenset(answer["awake"]),
        rules=frozenset(rules) if rules is not None else None,
        has_functions=bool(answer["has_functions"]),
    )
