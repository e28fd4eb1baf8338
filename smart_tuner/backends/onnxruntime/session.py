"""Opening a session with exactly the settings asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_tuner.backends.onnxruntime.cuda_options import PROVIDER as CUDA
from smart_tuner.backends.onnxruntime.options import LEVELS, MODES, ORDERS
from smart_tuner.backends.onnxruntime.runtime import import_runtime
from smart_tuner.errors import EnvironmentNotFit, NotApplied

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.settings import Pairs, SessionSettings

_CPU = "CPUExecutionProvider"
_WARNING, _ERROR = 2, 3
_ENUMERATIONS = (
    ("graph_optimization_level", "GraphOptimizationLevel", LEVELS),
    ("execution_mode", "ExecutionMode", MODES),
    ("execution_order", "ExecutionOrder", ORDERS),
)


def session_options(settings: SessionSettings) -> Any:
    """Session options with every setting applied and read back.

    Raises:
        NotApplied: A setting reads back different from what was asked.
    """
    runtime = import_runtime()
    options = runtime.SessionOptions()
    options.log_severity_level = _WARNING
    wanted: dict[str, object] = {
        "intra_op_num_threads": settings.intra_threads,
        "inter_op_num_threads": settings.inter_threads,
        **dict(settings.switches),
    }
    for attribute, enumeration, members in _ENUMERATIONS:
        if hasattr(options, attribute):
            member = members[getattr(settings, attribute)]
            wanted[attribute] = getattr(getattr(runtime, enumeration), member, None)
    for attribute, value in wanted.items():
        _set_attribute(options, attribute, value)
    for key, value in settings.config_entries:
        options.add_session_config_entry(key, value)
        if options.get_session_config_entry(key) != value:
            msg = f"{key} = {value} was not taken by the runtime"
            raise NotApplied(msg)
    for symbol, size in settings.free_dimensions:
        options.add_free_dimension_override_by_name(symbol, size)
    if settings.custom_op_library:
        options.register_custom_ops_library(settings.custom_op_library)
    return options


def _set_attribute(options: Any, attribute: str, value: object) -> None:
    if value is not None and hasattr(options, attribute):
        setattr(options, attribute, value)
        if getattr(options, attribute) == value:
            return
    msg = f"{attribute} = {value} was not taken by the runtime"
    raise NotApplied(msg)


def open_session(model: Path, settings: SessionSettings, *, save: Path | None = None) -> Any:
    """Open a session.

    Args:
        model: Model file; its path, never its bytes, goes to the runtime.
        settings: Effective settings.
        save: Where to write the optimized model, if it is wanted.

    Raises:
        NotApplied: A setting did not take.
        EnvironmentNotFit: There is no CUDA provider here.
        Exception: What the runtime raises; its classes share no base of their own.
    """
    runtime = import_runtime()
    options = session_options(settings)
    if save is not None:
        options.optimized_model_filepath = str(save)
        # At severity 2 the runtime warns that the file is for this processor only.
        options.log_severity_level = _ERROR
    if settings.provider == "cuda":
        need_cuda(runtime)
    session = runtime.InferenceSession(
        str(model),
        options,
        providers=providers(settings.provider, dict(settings.provider_options)),
        disabled_optimizers=list(settings.disabled_optimizers),
        enable_fallback=0,
        read_config_from_model=0,
    )
    if settings.provider == "cuda":
        _check_cuda(session, settings)
    return session


def providers(name: str, options: Mapping[str, str]) -> list[object]:
    """Execution providers in order: CUDA with its options, if it is asked for, and the CPU."""
    return [(CUDA, dict(options)), _CPU] if name == "cuda" else [_CPU]


def need_cuda(runtime: Any) -> None:
    """Refuse a runtime that was built without CUDA.

    Raises:
        EnvironmentNotFit: It was.
    """
    if CUDA not in runtime.get_available_providers():
        msg = (
            f"this onnxruntime has no {CUDA}: `pip uninstall onnxruntime`, then "
            "`pip install onnxruntime-gpu`"
        )
        raise EnvironmentNotFit(msg)


def _check_cuda(session: Any, settings: SessionSettings) -> None:
    """The runtime falls back to the CPU with no more than a warning."""
    check_on_cuda(session)
    effective = session.get_provider_options()[CUDA]
    for key, value in settings.provider_options:
        if key in effective and _plain(effective[key]) != value:
            msg = f"cuda:{key} = {value} was not taken by the runtime, it says {effective[key]}"
            raise NotApplied(msg)


def _plain(value: str) -> str:
    """An option as it is set: switches read back as numbers or as words."""
    return {"true": "1", "false": "0"}.get(value.lower(), value)


def check_on_cuda(session: Any) -> None:
    """See that a session did not fall back to the CPU.

    Raises:
        EnvironmentNotFit: It did, as where a library of CUDA or cuDNN is missing.
    """
    if CUDA not in session.get_providers():
        msg = (
            "the CUDA provider does not start here and the runtime fell back to the CPU: put the "
            "libraries of CUDA and cuDNN that it was built for on LD_LIBRARY_PATH (its log names "
            "the missing one)"
        )
        raise EnvironmentNotFit(msg)


def run_options(settings: SessionSettings, entries: Pairs = ()) -> Any:
    """Run options with every entry applied and read back.

    Args:
        settings: Effective settings.
        entries: Entries beside those of the settings.

    Raises:
        NotApplied: An entry reads back different from what was asked.
    """
    options = import_runtime().RunOptions()
    for key, value in (*settings.run_entries, *entries):
        options.add_run_config_entry(key, value)
        if options.get_run_config_entry(key) != value:
            msg = f"{key} = {value} was not taken by the runtime"
            raise NotApplied(msg)
    return options
