"""Which NVIDIA GPUs this machine has, without loading any vendor library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

DRIVER_FOLDER = Path("/proc/driver/nvidia/gpus")
_SECONDS = 10


def nvidia_gpus(folder: Path = DRIVER_FOLDER) -> tuple[str, ...]:
    """Names of the GPUs: from the driver's own files, else from ``nvidia-smi``.

    Args:
        folder: Where the Linux driver keeps a folder for each GPU.
    """
    return _from_driver(folder) or _from_tool()


def _from_driver(folder: Path) -> tuple[str, ...]:
    names = []
    for path in sorted(folder.glob("*/information")):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("Model")]
        names += named[:1]
    return tuple(names)


def _from_tool() -> tuple[str, ...]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        ended = subprocess.run(  # noqa: S603, a fixed command, no shell
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if ended.returncode != 0:
        return ()
    return tuple(line.strip() for line in ended.stdout.splitlines() if line.strip())
