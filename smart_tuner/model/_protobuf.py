"""The one exception that parsing a protobuf message raises."""

from __future__ import annotations

from google.protobuf.message import DecodeError

__all__ = ["DecodeError"]
