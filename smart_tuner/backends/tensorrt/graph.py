"""Recording work of a stream as a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from smart_tuner.devices.cuda import Cuda, Graph, Stream


def capture(cuda: Cuda, stream: Stream, work: Callable[[], None]) -> Graph:
    """Record what ``work`` queues, instead of running it.

    Args:
        cuda: The device.
        stream: Where ``work`` queues; nothing may be waiting there.
        work: Has run before, so that whatever it does once only is behind it.

    Raises:
        RunError: Something in it cannot be part of a graph; the stream is usable all the same,
            unless the CUDA context is lost.
    """
    cuda.begin_capture(stream)
    try:
        work()
    except RunError as error:
        cuda.drop_capture(stream)
        raise RunError(_message(error)) from error
    try:
        return cuda.end_capture(stream)
    except RunError as error:
        raise RunError(_message(error)) from error


def _message(error: RunError) -> str:
    return f"the engine cannot be captured in a CUDA graph: {error}"
