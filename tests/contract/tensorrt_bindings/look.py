"""Child process: import the module that is named, write what its classes and enums have as JSON."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

MODULE = ""


def describe(thing: Any) -> dict[str, Any]:
    """Kind, documentation and whether it can be set."""
    is_property = isinstance(thing, property)
    return {
        "property": is_property,
        "writable": is_property and thing.fset is not None,
        "callable": callable(thing),
        "doc": str(getattr(thing, "__doc__", "") or ""),
    }


def look(module: Any) -> dict[str, Any]:
    """Everything public; enums apart from classes."""
    classes: dict[str, Any] = {MODULE: {}}
    enums: dict[str, list[str]] = {}
    for name in dir(module):
        found = getattr(module, name)
        classes[MODULE][name] = describe(found)
        if isinstance(found, type):
            classes[name] = {part: describe(getattr(found, part)) for part in dir(found)}
            if hasattr(found, "__members__"):
                enums[name] = list(found.__members__)
    return {
        "version": module.__version__,
        "library": str(next(Path(module.__file__).parent.glob("tensorrt*.so"))),
        "classes": classes,
        "enums": enums,
    }


if __name__ == "__main__":
    json.dump(look(import_module(sys.argv[1])), sys.stdout)
