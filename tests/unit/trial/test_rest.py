"""Coming to rest before another process is timed."""

from __future__ import annotations

import threading
import time

from smart_tuner.trial.rest import come_to_rest


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def outlasts_a_spinning_thread() -> bool:
    thread = threading.Thread(target=spin, args=(0.1,))
    thread.start()
    come_to_rest()
    is_over = not thread.is_alive()
    thread.join()
    return is_over


def test_it_waits_for_threads_that_still_spin() -> None:
    """On a crowded machine a thread may get no processor during a look, and seem at rest."""
    assert any(outlasts_a_spinning_thread() for _ in range(10))


def test_it_does_not_wait_for_ever() -> None:
    stop = threading.Event()

    def spin_for_ever() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin_for_ever)
    thread.start()
    come_to_rest()
    assert thread.is_alive()
    stop.set()
    thread.join()
