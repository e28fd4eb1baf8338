"""The version of smart_tuner; apart, so that no layer imports the whole package for it."""

from __future__ import annotations

__version__ = "0.1.0"
