from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smart_tuner.bench.execute import RUNS_FILE
from smart_tuner.bench.page import PLOTS_FILE, TABLES_FILE
from smart_tuner.bench.summary import SUMMARY_FILE, read_summary
from smart_tuner.errors import UserInputError
from tests.unit.cli.calling import call, command

STUDIES = Path(__file__).parents[3] / "studies" / "search"
SMALL = ("--knobs", 8, "--workloads", 2, "--trials", 8, "--jobs", 1, "--least-gain", 1)


def test_tables_for_people_and_files_for_later(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    ended = call(
        "bench",
        "--samplers",
        "fast, random-3",
        "--generators",
        "sparse,null",
        "--out",
        out,
        *SMALL,
    )
    assert (ended.code, ended.err) == (0, "")
    assert "sparse: share of the attainable gain" in ended.out
    assert "false winners" in ended.out
    assert "minus that of random-3" in ended.out
    assert len((out / RUNS_FILE).read_text().splitlines()) == 8
    tables = (out / TABLES_FILE).read_text()
    assert "| random-3 |" in tables
    assert "generators `sparse, null`" in tables
    plots = (out / PLOTS_FILE).read_text()
    assert "plotly" in plots
    assert "<script src=" not in plots  # opens without a network


def test_the_page_of_the_studies_is_built_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "run", tmp_path / "page"
    call("bench", "--samplers", "fast", "--generators", "sparse", "--out", out, *SMALL)

    def build(folder: Path) -> object:
        monkeypatch.setattr(sys, "argv", ["build", "--into", str(page), str(folder)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(STUDIES / "build"), run_name="__main__")
        return ended.value.code

    assert build(out) == 0
    assert (page / "run" / SUMMARY_FILE).read_bytes() == (out / SUMMARY_FILE).read_bytes()
    assert "| fast |" in (page / "run" / TABLES_FILE).read_text()
    assert (page / "run" / PLOTS_FILE).stat().st_size < 100_000
    assert build(tmp_path) == 2
    assert capsys.readouterr().err.startswith("build: Cannot read")


def test_json_is_the_summary_and_nothing_else(tmp_path: Path) -> None:
    words = ("bench", "--samplers", "fast", "--generators", "dense", "--out", tmp_path, "--json")
    ended = call(*words, *SMALL)
    printed = json.loads(ended.out)
    assert printed == json.loads((tmp_path / SUMMARY_FILE).read_text())
    assert printed["differences"] == []
    assert {score["group"] for score in printed["scores"]} == {"all", "dense"}
    assert set(printed["scores"][0]["gain"]) == {"8"}
    assert read_summary(tmp_path).to_json()["plan"] == printed["plan"]


def test_recorded_compilers_take_the_place_of_simulated_ones(t4_file: Path) -> None:
    out = t4_file.parent / "out"
    ended = call("bench", "--samplers", "fast", "--recorded", t4_file, "--out", out, *SMALL)
    assert "kernel/GPU_T4: share of the attainable gain" in ended.out
    assert "sparse" not in ended.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--samplers", "fast"), "--out FOLDER"),
        (("--samplers", "nope", "--out", "o"), "No sampler 'nope'; there are boca"),
        (("--samplers", "fast:x", "--out", "o"), "as smac:20"),
        (("--samplers", ",", "--out", "o"), "Name at least one sampler"),
        (("--generators", "nope", "--out", "o"), "No generator 'nope'"),
        (("--generators", "", "--out", "o"), "name --generators or --recorded"),
        (("--workloads", "0", "--out", "o"), "at least one workload"),
        (("--trials", "0", "--out", "o"), "1 to 10000 trials"),
        (("--jobs", "0", "--out", "o"), "at least one process"),
        (("--seed", "-1", "--out", "o"), "a seed of 0 to 4,293"),
        (("--samplers", "fast", "--against", "mixed", "--out", "o"), "not among --samplers"),
        (("--recorded", "none.json", "--out", "o"), "none.json: No such file"),
        (("--knobs", "0", "--out", "o"), "1 to 2000 knobs"),
    ],
)
def test_wrong_use_is_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("bench", *words)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_names_are_listed() -> None:
    ended = call("bench", "--list")
    assert ended.code == 0
    assert "tpe-centred" in ended.out
    assert "gated" in ended.out


def test_an_out_that_is_no_folder_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = call("bench", "--samplers", "fast", "--out", tmp_path / "file", *SMALL)
    assert ended.code == 3
    assert "choose another --out" in ended.err


def test_a_slow_sampler_may_run_on_the_first_workloads_only(tmp_path: Path) -> None:
    words = ("bench", "--samplers", "fast,random-3:1", "--generators", "sparse,pairs")
    ended = call(*words, "--out", tmp_path, "--json", *SMALL)
    assert ended.code == 0
    summary = read_summary(tmp_path)
    counts = {score.sampler: score.workloads for score in summary.scores if score.group == "all"}
    assert counts == {"fast": 4, "random-3": 2}
    pooled = [item for item in summary.differences if item.group == "all"]
    assert {(item.rival, item.workloads) for item in pooled} == {("random-3", 2)}


def test_a_killed_comparison_goes_on(tmp_path: Path) -> None:
    words = ["bench", "--samplers", "fast,evolution", "--generators", "sparse", "--knobs", "8"]
    words += ["--workloads", "20", "--trials", "12", "--least-gain", "1", "--out", str(tmp_path)]
    killed = subprocess.Popen(command(*words, "--jobs", "1"), stdout=subprocess.DEVNULL)
    path = tmp_path / RUNS_FILE
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = path.read_text().splitlines(keepends=True)
    words[words.index("20")] = str(max(1, len(kept) // 2))
    assert call(*words, "--jobs", "1").code == 0
    whole = [line for line in kept if line.endswith("\n")]
    assert path.read_text().startswith("".join(whole))


def test_a_summary_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="run smart-tuner bench"):
        read_summary(tmp_path)
    (tmp_path / SUMMARY_FILE).write_text('{"plan": {}}')
    with pytest.raises(UserInputError, match="no summary of this version"):
        read_summary(tmp_path)
