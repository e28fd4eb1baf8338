"""What all tests have in common: processes that start fast, and folders that are made once."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

MakeOnce = Callable[[str, Callable[[Path], object]], Path]

# Where byte code is switched off, each process would compile the package from its sources first.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The library behind numpy's matrix products starts a thread for each processor, used or not.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A pause of a busy machine is no fault of a test, wherever it falls.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

# A job in the background of a script begins with Ctrl-C ignored, and so would all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the fault tests run longer: ``pytest tests/faults --fault-seeds 50``."""
    parser.addoption("--fault-seeds", type=int, default=1, help="random runs of tests/faults")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of random faults once for each seed."""
    if "fault_seed" in metafunc.fixturenames:
        metafunc.parametrize("fault_seed", range(metafunc.config.getoption("--fault-seeds")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that may take long: at the end, other workers would wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> MakeOnce:
    """Fill a folder once for all workers; later nothing in it may be changed."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make
