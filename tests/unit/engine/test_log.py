import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.engine import log as log_module
from smart_tuner.engine.log import MAX_LOG_BYTES, cap_log, last_words, log_tail


def test_the_tail_skips_blank_lines_and_survives_odd_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n\n  \ntwo\xff\x00\nthree\n\n")
    assert log_tail(log, 2).splitlines()[-1] == "three"
    assert log_tail(log, 1) == "three"
    assert log_tail(tmp_path / "none") == ""


def test_last_words_leave_out_the_stack_dump(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dump = "Fatal Python error: Segmentation fault\n\nCurrent thread:\n  File x, line 1\n"
    log.write_text("first\nkernel launch failed\n" + dump)
    assert last_words(log) == "first | kernel launch failed"


def test_a_log_within_the_limit_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("short")
    cap_log(log)
    cap_log(tmp_path / "none")
    assert log.read_text() == "short"


def test_a_log_over_the_limit_keeps_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(MAX_LOG_BYTES + 1)
        file.seek(0, 2)
        file.write(b"\nthe end\n")
    cap_log(log)
    assert log.stat().st_size < 1 << 20
    assert log_tail(log, 1) == "the end"


@given(st.binary(max_size=2000))
def test_last_words_are_one_bounded_printable_line(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.write_bytes(data)
        words = last_words(log)
    assert len(words) <= log_module._LAST_WORDS_LENGTH
    assert words == "" or words.isprintable()


def test_a_log_that_is_written_while_it_is_cut_keeps_its_order_and_its_last_line(
    tmp_path: Path,
) -> None:
    log = tmp_path / "child.log"
    flood = "import os\nfor i in range(50_000): os.write(1, b'%08d' % i + b'x' * 990 + b'\\n')"
    with (
        log.open("ab", buffering=0) as file,
        subprocess.Popen([sys.executable, "-c", flood], stdout=file) as writer,
    ):
        while writer.poll() is None:
            cap_log(log)
    cap_log(log)
    lines = [line for line in log.read_bytes().splitlines() if len(line) == 998]
    numbers = [int(line[:8]) for line in lines]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > 49_990
    assert log.stat().st_size <= MAX_LOG_BYTES
