"""The child process that loads a model again and again and reads the runtime's verbose log.

``python -m smart_tuner.backends.onnxruntime.discovery FOLDER`` reads ``request.json`` there and
writes ``answer.json``. The log goes to the process's error stream from native code, so the
process points that stream at a file; no other process could do that without harm.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.onnxruntime.artefact import artefact_digest
from smart_tuner.backends.onnxruntime.optimizer_log import parse_optimizer_log
from smart_tuner.backends.onnxruntime.passes import RULE_GROUPS
from smart_tuner.backends.onnxruntime.runtime import import_runtime, is_unknown_operator, reason
from smart_tuner.backends.onnxruntime.session import check_on_cuda, providers
from smart_tuner.engine.once import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from smart_tuner.backends.onnxruntime.optimizer_log import OptimizerLog

_VERBOSE, _SILENT = 0, 4


@dataclass(frozen=True, slots=True)
class Probe:
    """Loads one model with passes switched off.

    Attributes:
        model: Model file.
        folder: Where the log and the optimized model go.
        provider: ``cpu`` or ``cuda``: optimizers look at who runs a node.
    """

    model: Path
    folder: Path
    provider: str

    def log(self, disabled: Iterable[str] = ()) -> OptimizerLog:
        """The optimizers that ran and that changed the graph."""
        log = self.folder / "verbose.log"
        os.truncate(log, 0)
        self._load(disabled, severity=_VERBOSE)
        return parse_optimizer_log(log.read_text(encoding="utf-8", errors="replace"))

    def graph(self, disabled: Iterable[str] = ()) -> str:
        """Digest of the optimized graph."""
        path = self.folder / "optimized.onnx"
        try:
            self._load(disabled, severity=_SILENT, save=path)
            return artefact_digest(path)
        finally:
            path.unlink(missing_ok=True)

    def _load(self, disabled: Iterable[str], *, severity: int, save: Path | None = None) -> None:
        runtime = import_runtime()
        options = runtime.SessionOptions()
        options.log_severity_level = severity
        # One thread: these sessions never run, and a thread costs time to start.
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.disable_prepacking", "1")
        if save is not None:
            options.optimized_model_filepath = str(save)
        session = runtime.InferenceSession(
            str(self.model),
            options,
            providers=providers(self.provider, {}),
            disabled_optimizers=list(disabled),
            enable_fallback=0,
        )
        if self.provider == "cuda":
            check_on_cuda(session)


def effective(probe: Probe, context: Sequence[str], rules: Sequence[str]) -> Iterator[str]:
    """Find the rules whose absence changes the graph, by halving.

    Args:
        probe: The model.
        context: What else is switched off.
        rules: Candidates. A group that changes nothing together is taken to hold no rule that
            would change something alone.
    """
    without = probe.graph(context)
    groups = [tuple(rules)] if rules else []
    while groups:
        group = groups.pop()
        if probe.graph((*context, *group)) == without:
            continue
        if len(group) == 1:
            yield group[0]
        else:
            half = len(group) // 2
            groups += [group[:half], group[half:]]


def find_rules(
    probe: Probe, rules: Sequence[str], active: Sequence[str], seconds: float
) -> set[str]:
    """The rules that matter, by default or once all others that do are off.

    Past the deadline the rest counts as mattering: it is better to search a knob in vain.
    """
    deadline = time.perf_counter() + seconds
    found: set[str] = set()
    for context in ((), tuple(active)):
        rest = [rule for rule in rules if rule not in found]
        off = (*context, *sorted(found)) if context else ()
        for rule in effective(probe, off, rest):
            found.add(rule)
            if time.perf_counter() > deadline:
                return set(rules)
    return found


def examine(probe: Probe, request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request."""
    default = probe.log()
    active = sorted(default.changed)
    awake = set(active)
    if request["model"] is not None:
        for name in active:
            awake |= probe.log((name,)).changed
        awake |= probe.log(active).changed
    rules: set[str] | None = set()
    if awake.intersection(RULE_GROUPS):
        others = [name for name in active if name not in RULE_GROUPS]
        rules = _rules_or_none(probe, request, others)
    return {
        "levels": list(default.levels.items()),
        "awake": sorted(awake),
        "rules": sorted(rules) if rules is not None else None,
        "has_functions": default.has_functions,
    }


def _rules_or_none(
    probe: Probe, request: dict[str, Any], active: Sequence[str]
) -> set[str] | None:
    """The rules that matter, or None where the optimized graph cannot be written out."""
    if not request["graphs"]:
        return None
    try:
        return find_rules(probe, request["rules"], active, request["rule_seconds"])
    except Exception:  # noqa: BLE001  e.g. folded constants beyond 2 GB; the model itself loads
        return None


def write_tiny_model(path: Path) -> Path:
    """A model that the runtime optimizes on every level."""
    from onnx import TensorProto, helper, save_model

    shape = [1, 4]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    # Old versions on purpose: every runtime that can be installed reads them.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    save_model(model, path)
    return path


def _keep_error_stream(log: Path) -> None:
    """Point the native error stream at a file; Python's own stays where it was."""
    sys.stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
    handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(handle, 2)
    os.close(handle)


def main(arguments: Sequence[str]) -> int:
    """Entry point of the child."""
    folder = Path(arguments[0])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    _keep_error_stream(folder / "verbose.log")
    end_with_parent(request["parent"])
    model = request["model"]
    path = Path(model) if model is not None else write_tiny_model(folder / "tiny.onnx")
    probe = Probe(model=path, folder=folder, provider=request["provider"])
    try:
        answer = examine(probe, request)
    except Exception as error:  # noqa: BLE001  native errors share no class; the parent raises
        answer = {"error": reason(error), "unknown_operator": is_unknown_operator(error)}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
