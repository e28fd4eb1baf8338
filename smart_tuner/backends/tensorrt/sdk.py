"""Finding the SDK: the module, its version, and what to install where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.backends.tensorrt import api

TENSORRT = ("tensorrt", "tensorrt_bindings")
TENSORRT_RTX = ("tensorrt_rtx", "tensorrt_rtx_bindings")

_INSTALL = {
    TENSORRT[0]: (
        "TensorRT",
        "`pip install 'smart-tuner[tensorrt]'` (its libraries come from NVIDIA's index)",
    ),
    TENSORRT_RTX[0]: ("TensorRT-RTX", "`pip install 'smart-tuner[tensorrt-rtx]'`"),
}


@dataclass(frozen=True, slots=True)
class Sdk:
    """A loaded SDK.

    Attributes:
        module: Its Python module.
        name: ``tensorrt`` or ``tensorrt-rtx``.
        version: E.g. ``11.1.0.106``.
    """

    module: api.Module
    name: str
    version: str

    def __str__(self) -> str:
        """Name and version, e.g. ``tensorrt 11.1.0.106``; what a platform is compared by."""
        return f"{self.name} {self.version}"


@lru_cache(maxsize=4)
def load_sdk(names: Sequence[str]) -> Sdk:
    """Import the first module of ``names`` that loads.

    Args:
        names: ``TENSORRT`` or ``TENSORRT_RTX``.

    Raises:
        EnvironmentNotFit: None loads; says why and what to install.
    """
    reasons: list[str] = []
    for name in names:
        found = _load(name)
        if not isinstance(found, str):
            return Sdk(found, names[0].replace("_", "-"), str(found.__version__))
        reasons += [f"{name}: {found}"] if found else []
    title, remedy = _INSTALL[names[0]]
    why = f"does not load here ({'; '.join(reasons)})" if reasons else "is not installed"
    msg = f"{title} {why}; install it: {remedy}."
    raise EnvironmentNotFit(msg)


def _load(name: str) -> api.Module | str:
    """Import a module, or say why it does not load; nothing if it is not installed."""
    try:
        return cast("api.Module", import_module(name))
    except ModuleNotFoundError as error:
        return "" if error.name == name else str(error)
    except (ImportError, OSError, RuntimeError) as error:
        return " ".join(str(error).split())
