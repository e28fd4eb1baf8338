"""O28 to O35: what a study keeps, as a user of the command sees it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from tests.cases.conftest import Product, Run, Study

PATIENCE_SECONDS = 60
LONGEST_ATTRIBUTE = 2_000
"""Characters of one attribute: longer texts lie in files."""


def copy_of(study: Study, folder: Path) -> Path:
    shutil.copytree(study.folder, folder)
    return folder


def go_on(product: Product, study: Study, folder: Path, *words: str) -> Run:
    """The call that made a study, on a copy; one trial at most, so that nothing is searched."""
    return product.run(*study.call, "--study", folder, "--trials", "1", *words)


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(study: Path) -> None:
        path = study / file
        text = path.read_text(encoding="utf-8")
        assert re.search(old, text)
        path.write_text(re.sub(old, new, text, count=1), encoding="utf-8")

    return change


def zeroed(pattern: str) -> Callable[[Path], None]:
    def change(study: Path) -> None:
        files = list(study.glob(pattern))
        assert files
        for file in files:
            file.write_bytes(bytes(1024))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced("study.toml", "case device", "other device"), "device was other device, is"),
        (replaced("study.toml", 'version" = "case 1.0', 'version" = "case 0.9'), "was case 0.9,"),
        (replaced("study.toml", 'model = "[0-9a-f]{4}', 'model = "0000'), "model was 0000"),
        (replaced("study.toml", "device = .*\n", ""), "device was not there, is case device"),
        (replaced("study.toml", "seed = 1\n", ""), "is damaged (seed: Field required)"),
        (replaced("study.toml", "schema_version = 1", "schema_version = 99"), "upgrade"),
        (zeroed("study.toml"), "not valid TOML"),
        (zeroed("references/default/*.inputs"), "start a new study with --study OTHER_FOLDER."),
    ],
)
def test_o28_a_study_of_something_else_is_refused(
    trouble: Study, product: Product, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    study = copy_of(trouble, tmp_path / "study")
    change(study)
    journal = (study / "journal.log").read_bytes()
    run = go_on(product, trouble, study)
    assert run.code == 2
    assert said in run.complaint
    assert str(study) in run.complaint
    assert (study / "journal.log").read_bytes() == journal


def test_o28_damaged_copies_of_what_the_journal_knows_are_made_anew(
    trouble: Study, product: Product, tmp_path: Path
) -> None:
    study = copy_of(trouble, tmp_path / "study")
    for pattern in ("result.json", "trials.jsonl", "trials/*/result.json", "engines/**/*.json"):
        zeroed(pattern)(study)
    run = go_on(product, trouble, study)
    assert run.code == 0
    assert product.trials(study) == trouble.trials
    assert json.loads((study / "result.json").read_text())["verdict"] == "default is best"


def test_o28_a_winner_that_is_not_the_measured_file_is_never_loaded(
    trouble: Study, product: Product, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    words = (*trouble.call, "--study", study, "--only", "level")
    run = product.run(*words, CASE_LEVELS="0 -1")
    assert (run.code, "faster than the default" in run.out) == (0, True)
    assert (study / "winner/case.json").is_file()
    zeroed("winner/case.json")(study)
    run = product.run("verify", study, CASE_LEVELS="0 -1")
    assert run.code == 2
    assert "winner/case.json is missing or was changed since it was measured" in run.complaint


@pytest.mark.parametrize(
    "damage",
    [
        ("cut_last_line", 1, "cut \\d+ bytes of a record that was never finished"),
        ("no_final_newline", 0, "the last record lacked its line end; it was kept"),
        ("doubled_line", 0, ""),
        ("two_records_joined", 1, "cut \\d+ bytes of a record that was never finished"),
        ("zero_bytes", 99, "\\d+ trials? in .* (is|are) not in the journal"),
        ("nul_tail", 0, "cut 512 bytes of a record that was never finished"),
        ("only_first_line", 99, "\\d+ trials? in .* (is|are) not in the journal"),
    ],
)
def test_o29_good_lines_of_a_damaged_journal_are_used(
    trouble: Study,
    product: Product,
    case_tools: ModuleType,
    tmp_path: Path,
    damage: tuple[str, int, str],
) -> None:
    name, lost, said = damage
    study = copy_of(trouble, tmp_path / "study")
    case_tools.mutate_cache(study / "journal.log", tmp_path / "copies")
    shutil.copy(tmp_path / "copies" / f"{name}.cache", study / "journal.log")
    run = go_on(product, trouble, study)
    assert run.code == 0
    assert re.search(said, run.notes)
    kept = product.trials(study)
    assert len(kept) >= max(1, len(trouble.trials) - lost)
    assert kept.items() <= trouble.trials.items() or lost == 99
    # What was appended stands on lines of its own.
    for line in (study / "journal.log").read_text(encoding="utf-8").splitlines():
        json.loads(line)


def test_o29_a_line_damaged_in_the_middle_is_named_with_the_remedy(
    trouble: Study, product: Product, tmp_path: Path
) -> None:
    study = copy_of(trouble, tmp_path / "study")
    lines = (study / "journal.log").read_bytes().splitlines(keepends=True)
    lines[10] = lines[10][:20] + b"\n"
    (study / "journal.log").write_bytes(b"".join(lines))
    run = go_on(product, trouble, study)
    assert run.code == 2
    assert "journal.log is damaged at line 11" in run.complaint
    assert "cut it with `head -n 10`, or start a new study folder" in run.complaint


def test_o30_the_printed_command_is_the_call_and_continues_the_study(
    trouble: Study, cases: Path, product: Product, tmp_path: Path
) -> None:
    [model] = (cases / "O11/dir with space").glob("*.onnx")
    study = tmp_path / "st [a|b] $HOME 'q'; %20"
    words = ["tune", str(model), "--study", str(study), "--backend=case_backend:CaseBackend"]
    words += ["--budget=40s", "--only=le*", "--only=text"]
    words += ["--values=level=[0|1]", "--values=text=[1|a;b]"]
    assert product.run(*words).code == 0
    printed = product.run("status", study, "--json").data["command"]
    assert shlex.split(printed) == ["smart-tuner", *words]
    (tmp_path / "a").touch()  # what an unquoted [a|b] would turn into
    pasted = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {printed}"], cwd=tmp_path, capture_output=True, check=True
    )
    assert pasted.stdout.decode().split("\0")[:-1] == ["smart-tuner", *words]
    journal = (study / "journal.log").stat().st_size
    run = product.run(*shlex.split(printed)[1:])
    assert run.code == 0
    assert "All 4 routes of this space are known" in run.notes
    assert (study / "journal.log").stat().st_size < 2 * journal
    # The report says it for the folder that holds the study, which may be sent elsewhere.
    report = (study / "report.md").read_text(encoding="utf-8")
    [line] = [line for line in report.splitlines() if line.startswith("smart-tuner tune ")]
    words[3] = study.name
    *told, seed = shlex.split(line)
    assert told == ["smart-tuner", *words]
    assert seed.startswith("--seed=")


def test_o31_o32_a_second_run_a_reader_and_a_kill_lose_nothing(
    trouble: Study, product: Product, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    words = (*trouble.call, "--study", study, "--only", "level")
    levels = "0 1 2 3 4 5 6 7"
    with product.started(*words, CASE_SLOW="3", CASE_LEVELS=levels) as process:
        wait_for(study / "trials/1/engine", process)
        second = product.run(*words, CASE_LEVELS=levels)
        status = product.run("status", study, "--json")
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)
    assert second.code == 3
    assert f"Another smart-tuner works in {study}" in second.complaint
    assert status.code == 0
    assert status.data["state"] == "running"
    before = status.data["spent_seconds"]
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []
    status = product.run("status", study, "--json")
    assert status.data["state"] == "stopped"
    assert shlex.split(status.data["command"])[:2] == ["smart-tuner", "tune"]
    run = product.run(*words, CASE_LEVELS=levels)
    assert run.code == 0
    assert re.search(r"trial \d+ was interrupted: its route is tried again", run.notes)
    trials = product.trials(study)
    assert set(trials) == {"", *(f"-level={level}" for level in range(1, 8))}
    assert {trial["outcome"] for trial in trials.values()} == {"feasible"}
    assert product.run("status", study, "--json").data["spent_seconds"] > before > 0
    assert not [path for path in study.rglob("*") if path.name.endswith(".partial")]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("levels", ["0 1 2 3", "0 2", "0 2 1"])
def test_o33_changed_choices_are_noticed_before_the_first_trial(
    trouble: Study, product: Product, tmp_path: Path, levels: str
) -> None:
    study = copy_of(trouble, tmp_path / "study")
    journal = (study / "journal.log").read_bytes()
    run = product.run(*trouble.call, "--study", study, CASE_LEVELS=levels)
    assert run.code == 2
    assert f"values of level was 0|1|2, is {levels.replace(' ', '|')}" in run.complaint
    assert run.complaint.endswith("or start a new study with --study OTHER_FOLDER.")
    assert (study / "journal.log").read_bytes() == journal


@pytest.mark.parametrize("latency", ["nan", "inf", "-inf", "0", "-1"])
def test_o34_what_is_no_latency_is_a_failure_with_a_reason(trouble: Study, latency: str) -> None:
    trial = trouble.trials[f"-latency={latency}"]
    assert trial["outcome"] == "run_failed"
    assert re.search(rf"{float(latency)} ms as its latency|latency of {latency}", trial["message"])
    assert trial["latency_ms"] is None
    assert trial["gain"] is None


def test_o34_a_numpy_float_is_a_latency(trouble: Study) -> None:
    assert trouble.trials["-latency=float32"]["latency_ms"] == 2


def test_o35_attributes_are_plain_and_short_and_logs_are_files(trouble: Study) -> None:
    kinds: set[type] = set()
    for line in (trouble.folder / "journal.log").read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
        for key in ("user_attr", "system_attr", "user_attrs", "system_attrs"):
            for value in record.get(key, {}).values():
                kinds.add(type(value))
                assert len(json.dumps(value)) < LONGEST_ATTRIBUTE
    assert kinds <= {str, int, float, bool, list, dict, type(None)}
    assert {str, float, bool, list} <= kinds
    dead = trouble.trials["-death=SIGSEGV"]["number"]
    assert (trouble.folder / f"trials/{dead}/child.log").is_file()
