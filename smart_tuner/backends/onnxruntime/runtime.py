"""The installed ONNX Runtime: its version, its binary, and its error messages made readable."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from smart_tuner.errors import EnvironmentNotFit

_MISSING = "onnxruntime is not installed: pip install onnxruntime"
_BUILD_INFO = re.compile(r"^(package_name|__version__) = '([^']+)'", re.MULTILINE)
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : -?\d+ : \w+ : ")
_LOADING = re.compile(r"^Load model from .*? failed: ?", re.DOTALL)
_SOURCE = re.compile(r"(?:/[\w.+-]+)*/?\b\w+\.(?:cc|cpp|h|hpp|cu|cuh):\d+ ")
_IR = re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)")
_OPSET = re.compile(
    r"Opset (\d+) is under development.*support for domain (\S+) is till opset (\d+)", re.DOTALL
)
_UNKNOWN_OPERATOR = re.compile(r"(\S*):([^\s:(]+)\(-?\d+\) is not a registered function/op")
_OUT_OF_MEMORY = ("Failed to allocate memory", "bad_alloc", "out of memory", "Cannot allocate")


def import_runtime() -> Any:
    """Import onnxruntime on first use.

    Raises:
        EnvironmentNotFit: It is not installed, or its libraries do not load here.
    """
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        msg = f"onnxruntime cannot be used here ({error}); install it: pip install onnxruntime"
        raise EnvironmentNotFit(msg) from error


def runtime_version() -> str:
    """Return e.g. ``onnxruntime 1.32.0`` without importing the runtime.

    The runtime's own word counts: of two installed packages that share the module's name, such as
    onnxruntime and onnxruntime-gpu, only one is imported.

    Raises:
        EnvironmentNotFit: It is not installed or has an unknown layout.
    """
    path = _capi() / "build_and_package_info.py"
    found = dict(_BUILD_INFO.findall(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    if len(found) < 2:
        msg = f"{path} does not name the runtime's version; reinstall it: pip install onnxruntime"
        raise EnvironmentNotFit(msg)
    return f"{found['package_name']} {found['__version__']}"


def binary_path() -> Path:
    """Return the runtime's extension module, which holds every name that it knows.

    Raises:
        EnvironmentNotFit: The package is not installed or has an unknown layout.
    """
    for path in sorted(_capi().glob("onnxruntime_pybind11_state*")):
        return path
    msg = "the onnxruntime package has no extension module; reinstall it: pip install onnxruntime"
    raise EnvironmentNotFit(msg)


def _capi() -> Path:
    """The folder of the runtime's binaries."""
    spec = find_spec("onnxruntime")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        return Path(folder, "capi")
    raise EnvironmentNotFit(_MISSING)


def reason(error: BaseException) -> str:
    """Say in one line why the runtime failed, without paths of the machine it was built on."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return "out of memory"
    known = _known_reason(text)
    if known:
        return known
    text = _without_source(_LOADING.sub("", _PREFIX.sub("", text)))
    line = " ".join(text.split())
    if any(mark in text for mark in _OUT_OF_MEMORY):
        return f"out of memory: {line}"
    return line


def is_unknown_operator(error: BaseException) -> bool:
    """Whether the runtime refused an operator that a custom-operator library may bring."""
    return _UNKNOWN_OPERATOR.search(str(error)) is not None


def _known_reason(text: str) -> str:
    """Reasons with a remedy."""
    if found := _IR.search(text):
        return (
            f"the model has IR version {found[1]}, {runtime_version()} reads up to {found[2]}; "
            "update onnxruntime or export the model with an older onnx package"
        )
    if found := _OPSET.search(text):
        return (
            f"the model has opset {found[1]} of domain {found[2]}, {runtime_version()} knows up "
            f"to {found[3]}; update onnxruntime or export the model with an older opset"
        )
    if found := _UNKNOWN_OPERATOR.search(text.rpartition("Fatal error: ")[2]):
        return (
            f"operator {found[1] or 'ai.onnx'}::{found[2]} is not known to {runtime_version()}; "
            "if it is a custom operator, name its library in the --base file: "
            "custom_op_library = /path/to/library"
        )
    return ""


def _without_source(text: str) -> str:
    """Cut source positions and the C++ signatures that follow them."""
    while found := _SOURCE.search(text):
        rest = text[found.end() :]
        text = text[: found.start()] + rest[_signature_length(rest) :].lstrip()
    return text


def _signature_length(text: str) -> int:
    """Length of a leading C++ function signature, 0 if there is none before the message."""
    opening = text.find("(")
    if opening < 0 or ("::" not in text[:opening] and text[:opening].count(" ") != 1):
        return _plain_name_length(text)
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            tail = text[position + 1 :]
            return position + 1 + (len(" const") if tail.startswith(" const ") else 0)
    return 0


def _plain_name_length(text: str) -> int:
    """Length of a leading bare function name such as ``ValidateExternalDataPathFromDir``."""
    found = re.match(r"[A-Z][a-z]+[A-Z]\w* ", text)
    return found.end() if found else 0
