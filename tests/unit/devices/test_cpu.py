import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from smart_tuner.devices.cpu import (
    LoadMeter,
    cpu_quota,
    foreign_load,
    instruction_sets,
    memory_available,
    processor_name,
)

ALLOWED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def cgroups(tmp_path: Path, own: str, **files: str) -> tuple[Path, Path]:
    root, list_file = tmp_path / "cgroup", tmp_path / "own"
    list_file.write_text(own)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root.mkdir(exist_ok=True)
    return root, list_file


@pytest.mark.parametrize(
    ("own", "file", "text"),
    [
        ("0::/\n", "cpu.max", "100000 100000\n"),
        ("0::/a/b\n", "a/b/cpu.max", "199999 100000\n"),
        ("0::/a/b\n", "a/cpu.max", "150000 100000\n"),
        ("0::/a/b\n", "cpu.max", "100000 100000\n"),
        ("0::/not/mounted\n", "cpu.max", "20000 100000\n"),
        ("1:name=x:/\n0::/\n", "unified/cpu.max", "100000 100000\n"),
    ],
)
def test_a_quota_of_version_2_is_rounded_down_to_at_least_one(
    tmp_path: Path, own: str, file: str, text: str
) -> None:
    root, list_file = cgroups(tmp_path, own, **{file: text})
    assert cpu_quota(root, list_file) == 1


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_a_quota_of_version_1_counts(tmp_path: Path, folder: str) -> None:
    files = {
        f"{folder}/docker/x/cpu.cfs_quota_us": "150000\n",
        f"{folder}/docker/x/cpu.cfs_period_us": "100000\n",
    }
    root, list_file = cgroups(tmp_path, "4:cpu,cpuacct:/docker/x\n", **files)
    assert cpu_quota(root, list_file) == 1


@pytest.mark.parametrize("text", ["max 100000\n", "", "nonsense\n", "900000000 100000\n"])
def test_without_a_quota_the_affinity_counts(tmp_path: Path, text: str) -> None:
    root, list_file = cgroups(tmp_path, "0::/\n", **{"cpu.max": text})
    assert cpu_quota(root, list_file) == ALLOWED
    assert cpu_quota(tmp_path / "none", tmp_path / "none") == ALLOWED


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_the_affinity_of_a_process_counts() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from smart_tuner.devices.cpu import cpu_quota; print(cpu_quota())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "1"


def test_memory_respects_a_cgroup_limit(tmp_path: Path) -> None:
    files = {"memory.max": "5000000\n", "memory.current": "3000000\n"}
    root, list_file = cgroups(tmp_path, "0::/\n", **files)
    assert memory_available(root, list_file) == 2_000_000
    root, list_file = cgroups(tmp_path / "", "0::/\n", **{"memory.max": "max\n"})
    assert memory_available(root, list_file) > 5_000_000


def test_the_processor_is_described_from_its_listing(tmp_path: Path) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text(
        "processor\t: 0\nmodel name\t: Some  CPU @ 3GHz\nflags\t\t: fpu vme avx2 avx512_vnni "
        "sse4_1 amx_tile fma ht\n\nprocessor\t: 1\nmodel name\t: Other\n"
    )
    assert processor_name(listing) == "Some CPU @ 3GHz"
    assert instruction_sets(listing) == ("amx_tile", "avx2", "avx512_vnni", "fma", "sse4_1")


def test_without_a_listing_the_architecture_stands_in(tmp_path: Path) -> None:
    assert processor_name(tmp_path / "none")
    assert len(instruction_sets(tmp_path / "none")) == 1
    assert processor_name()
    assert instruction_sets()


def test_foreign_load_counts_others_and_leaves_out_our_descendants() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        psutil.cpu_percent(interval=0.1)
        assert foreign_load([busy.pid], 0.3) >= 0.0
        everything = [process.pid for process in psutil.process_iter()]
        own = foreign_load(everything, 0.3)
        meter = LoadMeter([])
        psutil.cpu_percent(interval=0.3)
        assert meter.read() > own
        assert f"({busy.pid})" in " ".join(meter.busiest(count=1000))
        assert f"({busy.pid})" not in " ".join(LoadMeter([busy.pid]).busiest(count=1000))
    finally:
        busy.kill()
        busy.wait()
