"""Wrong use: one line that names the thing and the remedy, exit code 2 or 3, nothing half-made."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from tests.unit.cli.calling import REPLAY, Ended, call, call_process, write_model

TUNE = ("tune", "model.onnx", *REPLAY)
APPLY = ("apply", "model.onnx", *REPLAY)
ONNX = ("tune", "model.onnx")
UNKNOWN_KNOB = "`smart-tuner knobs`"

# words, exit code, what the line must hold
CASES = {
    "missing model": (("tune", "gone.onnx", *REPLAY), 2, ("gone.onnx", "check the path")),
    "folder as model": (("tune", "folder", *REPLAY), 2, ("folder", "give the .onnx file")),
    "text as model": (("tune", "text.onnx", *REPLAY), 2, ("text.onnx", "give the .onnx file")),
    "no such network": (("tune", "public:gone"), 2, ("gone", "squeezenet")),
    "apply, missing model": (("apply", "gone.onnx"), 2, ("gone.onnx", "check the path")),
    "--only": ((*TUNE, "--only", "gone"), 2, ("gone", UNKNOWN_KNOB)),
    "--freeze": ((*TUNE, "--freeze", "gone"), 2, ("gone", UNKNOWN_KNOB)),
    "--ask": ((*TUNE, "--ask", "gone"), 2, ("gone", UNKNOWN_KNOB)),
    "--values": ((*TUNE, "--values", "gone=[1|2]"), 2, ("gone", UNKNOWN_KNOB)),
    "--route, unknown": ((*APPLY, "--route", "-gone=1"), 2, ("gone", UNKNOWN_KNOB)),
    "--route, bad value": ((*APPLY, "--route", "-speed=warp"), 2, ("warp", "slow, fast")),
    "--route, no route": ((*APPLY, "--route", "fast"), 2, ("fast", "-knob=value")),
    "--shapes, unknown": ((*TUNE, "--shapes", "z:1x2"), 2, ("'z'", "its inputs: 'x'")),
    "--shapes, bad": ((*TUNE, "--shapes", "x:1xq"), 2, ("1xq", "name:1x3x640x640")),
    "--shapes, wrong": ((*TUNE, "--shapes", "x:1x7"), 2, ("1x7", "has to be 16")),
    "--input-range": ((*TUNE, "--input-range", "x:1"), 2, ("x:1", "name:low:high")),
    "--inputs": ((*TUNE, "--inputs", "gone.npz"), 2, ("gone.npz", "check the path")),
    "--workload": ((*TUNE, "--workload", "gone.toml"), 2, ("gone.toml", "No such file")),
    "epsilon alone": ((*ONNX, "--epsilon", "0.1"), 2, ("epsilon", "add --metric")),
    "epsilon negative": ((*TUNE, "--epsilon=-1"), 2, ("-1", "0 or more")),
    "epsilon text": ((*TUNE, "--epsilon", "tiny"), 2, ("tiny", "number")),
    "epsilon of no output": ((*TUNE, "--epsilon", "z:0.1"), 2, ("'z'", "'y'")),
    "metric": ((*ONNX, "--metric", "gone"), 2, ("gone", "l0, l1, l2, linf, cos")),
    "metric module": ((*ONNX, "--metric", "go.ne:f"), 2, ("go.ne", "PYTHONPATH")),
    "metric function": ((*ONNX, "--metric", "math:gone"), 2, ("gone", "math")),
    "--reference": ((*TUNE, "--reference", "gone"), 2, ("reference", "unoptimized")),
    "--budget 0": ((*TUNE, "--budget", "0"), 2, ("budget", "--budget 10m")),
    "--budget text": ((*TUNE, "--budget", "soon"), 2, ("soon", "10m")),
    "--trials 0": ((*TUNE, "--trials", "0"), 2, ("trials", "greater than or equal to 1")),
    "--trials text": ((*TUNE, "--trials", "x"), 2, ("--trials", "integer")),
    "--min-gain": ((*TUNE, "--min-gain", "0.5"), 2, ("min_gain", "greater than or equal to 1")),
    "--memory-limit": ((*TUNE, "--memory-limit", "lots"), 2, ("lots", "512M")),
    "backend": ((*ONNX, "--backend", "gone"), 3, ("gone", "onnxruntime")),
    "sampler": ((*TUNE, "--sampler", "gone"), 2, ("gone", "tpe")),
    "--config missing": ((*TUNE, "--config", "gone.toml"), 2, ("gone.toml", "No such file")),
    "--config no TOML": ((*TUNE, "--config", "text.onnx"), 2, ("text.onnx", "TOML")),
    "--config key": ((*TUNE, "--config", "odd.toml"), 2, ("bugdet", "budget")),
    "--base missing": ((*TUNE, "--base", "gone.toml"), 2, ("gone.toml", "No such file")),
    "--base knob": ((*TUNE, "--base", "odd.toml"), 2, ("bugdet", "list")),
    "--base value": ((*TUNE, "--base", "warp.toml"), 2, ("warp", "slow, fast")),
    "study below a file": ((*TUNE, "--study", "text.onnx/s"), 3, ("text.onnx/s", "--study")),
    "study in /proc": ((*TUNE, "--study", "/proc/smart"), 3, ("/proc/smart", "--study")),
    "study is a file": ((*TUNE, "--study", "text.onnx"), 3, ("text.onnx", "--study")),
    "study holds other things": ((*TUNE, "--study", "folder"), 2, ("folder", "--study")),
    "--out is a file": ((*APPLY, "--out", "text.onnx"), 2, ("text.onnx", "--out")),
    "--out below a file": ((*APPLY, "--out", "text.onnx/x/y"), 3, ("text.onnx", "--out")),
    "apply --epsilon auto": ((*APPLY, "--epsilon", "auto"), 2, ("auto", "number")),
    "status of a hostile name": (("status", "a [b]"), 2, ("a [b]'` starts",)),
    "status of no study": (("status", "folder"), 2, ("folder", "smart-tuner tune")),
    "status of nothing": (("status", "gone"), 2, ("gone", "smart-tuner tune")),
    "verify of no study": (("verify", "folder"), 2, ("folder", "smart-tuner tune")),
    "damaged study.toml": (("status", "damaged"), 2, ("study.toml", "TOML")),
    "resume of a damaged study": ((*TUNE, "--study", "damaged"), 2, ("study.toml", "TOML")),
    "study of a newer version": (("status", "newer"), 2, ("99", "upgrade smart_tuner")),
    "knobs, backend": (("knobs", "--backend", "gone"), 3, ("gone", "onnxruntime")),
    "knobs, model": (("knobs", "--model", "gone.onnx"), 2, ("gone.onnx", "check the path")),
    "knobs, database": (("knobs", "--database", "gone.json"), 2, ("gone.json", "No such file")),
    "knobs, no database": (("knobs", "--database", "text.onnx"), 2, ("no JSON",)),
    "routes, nothing": (("routes", "--mode", "fast"), 2, ("--expression", "--file")),
    "routes, both": (("routes", "--expression", "-a=b", "--file", "f"), 2, ("--file",)),
    "routes, mode": (
        ("routes", "--expression", "-execution_mode=parallel", "--mode", "gone"),
        2,
        ("gone", "fast, full, mixed"),
    ),
    "routes, knob": (("routes", "--expression", "-gone=[1|2]"), 2, ("gone", UNKNOWN_KNOB)),
    "routes, file": (("routes", "--file", "gone.txt"), 2, ("gone.txt", "Check the path")),
    "quickstart, network": (("quickstart", "gone"), 2, ("gone", "squeezenet")),
    "quickstart, budget": (("quickstart", "squeezenet", "--budget", "soon"), 2, ("soon", "10m")),
    "no such command": (("tuen",), 2, ("tuen", "smart-tuner --help")),
    "no such option": ((*TUNE, "--stduy", "s"), 2, ("--stduy", "--study")),
    "one argument too many": ((*TUNE, "more"), 2, ("more", "smart-tuner tune --help")),
    "import, tool": (("import", "gone", "text.onnx"), 2, ("gone", "trtexec or torch-tensorrt")),
    "import, missing file": (("import", "trtexec", "gone"), 2, ("gone", "Check the path")),
    "import, folder": (("import", "trtexec", "folder"), 2, ("folder", "Check the path")),
    "import, no cache": (("import", "trtexec", "text.onnx"), 2, ("text.onnx", "--tuningCache")),
    "import, no file": (("import", "trtexec"), 2, ("FILE", "smart-tuner import --help")),
    "import, --out is there": (
        ("import", "trtexec", "t.jsonl", "--out", "text.onnx"),
        2,
        ("text.onnx", "--force"),
    ),
    "import, --out is a folder": (
        ("import", "trtexec", "t.jsonl", "--out", "folder", "--force"),
        2,
        ("folder", "name a file"),
    ),
    "import, --out in no folder": (
        ("import", "trtexec", "t.jsonl", "--out", "gone/o.jsonl"),
        3,
        ("gone/o.jsonl", "cannot be written"),
    ),
    "import, --replay is there": (
        ("import", "trtexec", "t.jsonl", "--replay", "folder"),
        2,
        ("folder", "--force"),
    ),
    "import, --replay is a file": (
        ("import", "trtexec", "t.jsonl", "--replay", "text.onnx", "--force"),
        2,
        ("text.onnx", "name a folder"),
    ),
    "import, --replay below a file": (
        ("import", "trtexec", "t.jsonl", "--replay", "text.onnx/r"),
        3,
        ("text.onnx", "--replay"),
    ),
    "export, form": (("export", "gone", "folder"), 2, ("gone", "trtexec, torch-tensorrt")),
    "export of no study": (("export", "triton", "folder"), 2, ("folder", "smart-tuner tune")),
    "export of nothing": (("export", "loader", "gone"), 2, ("gone", "smart-tuner tune")),
    "export of a damaged study": (("export", "triton", "damaged"), 2, ("study.toml", "TOML")),
    "export, no study": (("export", "trtexec"), 2, ("STUDY", "smart-tuner export --help")),
    "export, --for elsewhere": (
        ("export", "triton", "folder", "--for", "torch"),
        2,
        ("--for", "loader"),
    ),
    "verify, too few rounds": (("verify", "folder", "--rounds", "1"), 2, ("--rounds", "2")),
}


@pytest.fixture
def place(here: Path) -> Path:
    (here / "folder").mkdir()
    (here / "folder" / "notes.txt").write_text("mine")
    (here / "text.onnx").write_text("hello\n")
    (here / "odd.toml").write_text('bugdet = "1m"\n')
    (here / "warp.toml").write_text('speed = "warp"\n')
    (here / "t.jsonl").write_text('{"build_route":"-a=1","gpu_time":1}\n')
    for name, text in {"damaged": "schema_version = [", "newer": "schema_version = 99"}.items():
        (here / name).mkdir()
        (here / name / "study.toml").write_text(text)
    return here


def tree(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def error_line(ended: Ended) -> str:
    """The one line on standard error; the heading of a display goes before it."""
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("smart-tuner: "), ended.err
    return lines[0]


@pytest.mark.parametrize("name", CASES)
def test_one_line_names_the_thing_and_the_remedy(name: str, place: Path) -> None:
    words, code, holds = CASES[name]
    before = tree(place)
    ended = call(*words)
    line = error_line(ended)
    assert ended.code == code, ended
    assert [text for text in holds if text not in line] == [], line
    assert "Traceback" not in ended.out + ended.err
    assert tree(place) == before
    assert not Path("/proc/smart").exists()


def test_a_second_study_in_one_folder_is_refused(place: Path) -> None:
    study = place / "model.study"
    study.mkdir()
    with FileLock(study / ".lock"):
        ended = call(*TUNE)
    assert ended.code == 3
    assert f"{study}" in error_line(ended)
    assert "--study" in ended.err


def test_no_winner_to_verify(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes((finished / "study.toml").read_bytes())
    ended = call("verify", tmp_path)
    assert ended.code == 2
    assert "No winner" in error_line(ended)


def test_a_study_without_a_winner_has_nothing_to_export(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes((finished / "study.toml").read_bytes())
    ended = call("export", "triton", tmp_path, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "no verdict yet" in error_line(ended)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["trtexec", "torch-tensorrt", "triton", "loader"])
def test_what_another_tool_cannot_take_is_refused(form: str, finished: Path, here: Path) -> None:
    before = tree(here)
    ended = call("export", form, finished)
    assert ended.code == 2
    assert "one of replay" in error_line(ended)
    assert tree(here) == before


def test_a_command_that_needs_arguments_shows_its_help(here: Path) -> None:
    for command in ("tune", "routes", "status", "apply", "verify", "export", "import"):
        ended = call(command)
        assert ended.code == 2
        assert "Example: smart-tuner" in ended.err
        assert ended.out == ""


def test_a_process_tells_the_same(place: Path) -> None:
    ended = call_process(*TUNE, "--only", "gone")
    assert ended.code == 2
    assert "gone" in error_line(ended)


def test_what_the_system_refuses_is_one_line(place: Path) -> None:
    long = "a" * 300
    ended = call("status", long)
    assert ended.code in {2, 3}
    assert "aaa" in error_line(ended)


@pytest.mark.parametrize("words", [("--debug", "status", "gone"), ("status", "gone", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(words: tuple[str, ...], here: Path) -> None:
    check_traceback(call(*words))


def test_debug_shows_the_traceback_of_a_process(here: Path) -> None:
    check_traceback(call_process("status", "gone", "--debug"))


def check_traceback(ended: Ended) -> None:
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert ended.err.splitlines()[-1].startswith("smart-tuner: No study in ")


def test_debug_ends_with_its_call(here: Path) -> None:
    call("--debug", "status", "gone")
    assert "Traceback" not in call("status", "gone").err


def test_debug_after_two_dashes_is_a_name(here: Path) -> None:
    ended = call("status", "--", "--debug")
    assert "--debug" in error_line(ended)


def test_a_name_that_is_no_text_is_refused(here: Path) -> None:
    ended = call("tune", "caf\udce9.onnx")
    assert ended.code == 2
    assert "UTF-8" in error_line(ended)
    assert "caf" in ended.err


def test_letters_that_the_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "mö").mkdir()
    model = write_model(tmp_path / "mö")
    words = ("knobs", "mö", "--backend", "replay", "--model", model)
    ended = call_process(*words, PYTHONIOENCODING="ascii")
    assert ended.code == 1
    assert "m\\xf6" in ended.out
    assert "Traceback" not in ended.err
