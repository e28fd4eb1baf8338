"""The processor: how much of it we may use, what it can do, and who else is using it."""

from __future__ import annotations

import math
import os
import platform
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_CPUINFO = Path("/proc/cpuinfo")
_NAME_KEYS = ("model name", "Model", "Hardware", "cpu model", "cpu")
_RELEVANT_FLAG = re.compile(
    r"(sse|ssse|avx|amx|fma|f16c|vnni|neon|asimd|sve|sme|bf16|i8mm|fphp|rvv|v$)"
)
_NOTABLE_SHARE = 0.1
_UNLIMITED_BYTES = 1 << 60  # cgroup v1 writes a huge number where there is no limit


def cpu_quota(root: Path = _CGROUP_ROOT, own_cgroups: Path = _OWN_CGROUPS) -> int:
    """Return how many processors this process may keep busy, at least 1.

    The smaller of the scheduler affinity and the cgroup CPU quota (v1 or v2, of this group and
    every group above it), the quota rounded down: a thread more than that gets throttled.

    Args:
        root: Where cgroups are mounted.
        own_cgroups: The kernel's list of this process's cgroups.
    """
    quotas = [float(_affinity())]
    for folder in _cgroup_folders(root, own_cgroups, "cpu"):
        quotas.extend(_folder_quota(folder))
    return max(1, math.floor(min(quotas)))


def memory_available(root: Path = _CGROUP_ROOT, own_cgroups: Path = _OWN_CGROUPS) -> int:
    """Return how many bytes of memory can be taken now without swapping or passing a cgroup limit.

    Args:
        root: Where cgroups are mounted.
        own_cgroups: The kernel's list of this process's cgroups.
    """
    free = [int(psutil.virtual_memory().available)]
    for folder in _cgroup_folders(root, own_cgroups, "memory"):
        for limit_name, usage_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, usage = _number(folder / limit_name), _number(folder / usage_name)
            if limit is not None and usage is not None and limit < _UNLIMITED_BYTES:
                free.append(max(0, int(limit - usage)))
    return min(free)


def processor_name(cpuinfo: Path = _CPUINFO) -> str:
    """Return the processor's model name, or its architecture where the system tells no more."""
    fields = _cpuinfo_fields(cpuinfo)
    for key in _NAME_KEYS:
        if fields.get(key):
            return " ".join(fields[key].split())
    return platform.processor() or platform.machine() or "unknown processor"


def instruction_sets(cpuinfo: Path = _CPUINFO) -> tuple[str, ...]:
    """Return the vector and matrix instruction sets of the processor, sorted.

    Where the system does not list them, the architecture's name stands alone.
    """
    fields = _cpuinfo_fields(cpuinfo)
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    found = {flag for flag in flags if _RELEVANT_FLAG.match(flag) or "vnni" in flag}
    return tuple(sorted(found)) or (platform.machine() or "unknown",)


class LoadMeter:
    """Tells how much processor time other processes took since the meter was made.

    Both the system's busy time and the sum over visible processes are looked at, and the larger
    counts: containers hide processes, some sandboxes hide the system's totals.
    """

    def __init__(self, own_pids: Iterable[int]) -> None:
        """Start to meter.

        Args:
            own_pids: Processes that are not foreign; neither are their descendants.
        """
        self._own_roots = frozenset(own_pids)
        self._started = time.perf_counter()
        self._system = _system_busy_seconds()
        self._by_process = _process_seconds()

    def read(self) -> float:
        """Return the mean number of processors that others kept busy, 0 and up."""
        elapsed = self._elapsed()
        system = _system_busy_seconds() - self._system
        used = self._used()
        own = _with_descendants(self._own_roots)
        own_seconds = sum(seconds for pid, seconds in used.items() if pid in own)
        others = sum(seconds for pid, seconds in used.items() if pid not in own)
        return max(0.0, others, system - own_seconds) / elapsed

    def busiest(self, count: int = 3) -> tuple[str, ...]:
        """Name others that took a tenth of a processor or more, as ``name (process id)``.

        Args:
            count: How many at most; the busiest come first.
        """
        own, least = _with_descendants(self._own_roots), _NOTABLE_SHARE * self._elapsed()
        used = self._used()
        found = [pid for pid in used if pid not in own and used[pid] >= least]
        found.sort(key=used.__getitem__, reverse=True)
        return tuple(f"{_process_name(pid)} ({pid})" for pid in found[:count])

    def _elapsed(self) -> float:
        return max(time.perf_counter() - self._started, 1e-3)

    def _used(self) -> dict[int, float]:
        """Processor seconds since the beginning, by process id."""
        return {
            key[0]: seconds - self._by_process.get(key, 0.0)
            for key, seconds in _process_seconds().items()
        }


def foreign_load(own_pids: Iterable[int], interval_seconds: float = 0.2) -> float:
    """Watch for a while and return the mean number of processors that other processes use.

    Args:
        own_pids: Processes that are not foreign; neither are their descendants.
        interval_seconds: How long to watch.
    """
    meter = LoadMeter(own_pids)
    time.sleep(interval_seconds)
    return meter.read()


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_folders(root: Path, own_cgroups: Path, controller: str) -> Iterator[Path]:
    """Yield the folders that may limit us, for both versions, from our group to the top."""
    for line in _lines(own_cgroups):
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            tops = (root, root / "unified")
        elif controller in controllers.split(","):
            tops = (root / controllers, root / controller)
        else:
            continue
        inside = Path(group.strip().lstrip("/"))
        for top in tops:
            for part in (inside, *inside.parents):
                yield top / part


def _folder_quota(folder: Path) -> Iterator[float]:
    version_2 = next(iter(_lines(folder / "cpu.max")), "").split()
    if len(version_2) == 2 and version_2[0] != "max":
        yield float(version_2[0]) / float(version_2[1])
    quota = _number(folder / "cpu.cfs_quota_us")
    period = _number(folder / "cpu.cfs_period_us")
    if quota is not None and period and quota > 0:
        yield quota / period


def _number(path: Path) -> float | None:
    text = next(iter(_lines(path)), "").strip()
    return float(text) if re.fullmatch(r"-?\d+", text) else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _cpuinfo_fields(cpuinfo: Path) -> Mapping[str, str]:
    """Return the first value of each field."""
    fields: dict[str, str] = {}
    for line in _lines(cpuinfo):
        key, separator, value = line.partition(":")
        if separator:
            fields.setdefault(key.strip(), value.strip())
    return fields


def _system_busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _process_seconds() -> dict[tuple[int, float], float]:
    """Return processor seconds by process; the start time tells a reused id apart."""
    seconds = {}
    for process in psutil.process_iter(("cpu_times", "create_time")):
        times = process.info["cpu_times"]
        if times is not None:
            key = (process.pid, process.info["create_time"])
            seconds[key] = float(times.user + times.system)
    return seconds


def _process_name(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return "process"


def _with_descendants(roots: frozenset[int]) -> frozenset[int]:
    family = set(roots)
    for pid in roots:
        try:
            children = psutil.Process(pid).children(recursive=True)
        except psutil.Error:
            continue
        family.update(child.pid for child in children)
    return frozenset(family)
