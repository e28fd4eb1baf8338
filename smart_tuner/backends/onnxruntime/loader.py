"""Python source that opens a tuned session with nothing but onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.onnxruntime.cuda_options import PROVIDER as CUDA
from smart_tuner.backends.onnxruntime.options import LEVELS, MODES, ORDERS
from smart_tuner.backends.onnxruntime.settings import SessionSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ENUMERATIONS = (
    ("graph_optimization_level", "GraphOptimizationLevel", LEVELS),
    ("execution_mode", "ExecutionMode", MODES),
    ("execution_order", "ExecutionOrder", ORDERS),
)

_HEAD = '''"""Opens {name} as smart_tuner measured it, with {version}.

    from load_winner import load, run_options
    session = load("{name}")
{usage}"""

{imports}import onnxruntime


def load(model={default}):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
'''

_PLAIN = """    outputs = session.run(None, inputs, run_options())
"""

_GRAPH = """
A CUDA graph replays addresses: bind inputs and outputs to tensors on the GPU that stay where they
are, and call session.run_with_iobinding; `smart-tuner export loader` writes a module that does so.
"""

_RUN = '''

def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
'''


def loader_source(
    model: Path, settings: SessionSettings, version: str, *, is_beside: bool = False
) -> str:
    """Write a module with ``load`` and ``run_options``.

    Settings at their default are left out, so that the source shows what was tuned.

    Args:
        model: The model file, the default of ``load``.
        settings: Effective settings.
        version: The runtime with its version, for the reader.
        is_beside: Whether the model lies beside the module, wherever that is moved.
    """
    head = _HEAD.format(
        name=model.name,
        version=version,
        usage=_GRAPH
        if dict(settings.provider_options).get("enable_cuda_graph") == "1"
        else _PLAIN,
        imports="from pathlib import Path\n\n" if is_beside else "",
        default=f"Path(__file__).with_name({model.name!r})" if is_beside else repr(str(model)),
    )
    lines = [f"    {line}\n" for line in _session(settings)]
    run = [
        f"    options.add_run_config_entry({key!r}, {value!r})\n"
        for key, value in settings.run_entries
    ]
    return "".join([head, *lines, _RUN, *run, "    return options\n"])


def _session(settings: SessionSettings) -> Iterator[str]:
    yield from _attributes(settings)
    for key, entry in settings.config_entries:
        yield f"options.add_session_config_entry({key!r}, {entry!r})"
    for symbol, size in settings.free_dimensions:
        yield f"options.add_free_dimension_override_by_name({symbol!r}, {size})"
    if settings.custom_op_library:
        yield f"options.register_custom_ops_library({settings.custom_op_library!r})"
    yield from _open(settings)


def _attributes(settings: SessionSettings) -> Iterator[str]:
    plain = SessionSettings()
    wanted: dict[str, object] = {
        "intra_op_num_threads": settings.intra_threads,
        "inter_op_num_threads": settings.inter_threads,
        **dict(settings.switches),
    }
    defaults = {"intra_op_num_threads": 0, "inter_op_num_threads": 0, **dict(plain.switches)}
    for name, enumeration, members in _ENUMERATIONS:
        value = getattr(settings, name)
        if value != getattr(plain, name):
            yield f"options.{name} = onnxruntime.{enumeration}.{members[value]}"
    for name, state in wanted.items():
        if state != defaults.get(name):
            yield f"options.{name} = {state}"


def _open(settings: SessionSettings) -> Iterator[str]:
    providers: list[object] = ["CPUExecutionProvider"]
    if settings.provider == "cuda":
        providers.insert(0, (CUDA, dict(settings.provider_options)))
    disabled = list(settings.disabled_optimizers)
    yield "return onnxruntime.InferenceSession("
    yield "    model,"
    yield "    options,"
    yield f"    providers={providers!r},"
    if disabled:
        yield f"    disabled_optimizers={disabled!r},"
    yield ")"
