"""The module that child processes import: the SDK of the scenario that the environment names."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tests.fake_tensorrt.scenario import current_scenario
from tests.fake_tensorrt.sdk import make_module

if TYPE_CHECKING:
    from types import ModuleType


@lru_cache(maxsize=1)
def _module() -> ModuleType:
    return make_module(current_scenario())


def __getattr__(name: str) -> Any:
    """Members of that SDK."""
    return getattr(_module(), name)
