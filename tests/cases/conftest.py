"""The public cases, generated once a session: ``cases`` for files, ``case_tools`` for the rest."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


@pytest.fixture(scope="session")
def case_tools() -> ModuleType:
    """The module ``make_cases``: ``make_cases``, ``mutate_cache``, ``HOSTILE_NAMES``."""
    file = Path(__file__).with_name("make_cases.py")
    spec = importlib.util.spec_from_file_location("make_cases", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cases(case_tools: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds every case but the 2.3 GB one, with its ``manifest.json``."""
    root = tmp_path_factory.mktemp("cases")
    case_tools.make_cases(root)
    return root


@pytest.fixture(scope="session")
def case_row(cases: Path) -> Callable[[str], dict[str, Any]]:
    """The manifest's line of a case by its id (``O11a``)."""
    rows = json.loads((cases / "manifest.json").read_text(encoding="utf-8"))
    by_id = {row["id"]: row for row in rows}
    return by_id.__getitem__
