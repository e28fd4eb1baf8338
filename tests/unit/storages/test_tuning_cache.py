import json
import math
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.report.tuning_cache import cache_summary, summary_lines, trial_lines
from smart_tuner.storages import tuning_cache
from smart_tuner.storages.cached_trials import cached_trials, recorded_compiler
from smart_tuner.storages.tuning_cache import TuningCache, counted_kinds, read_tuning_cache
from smart_tuner.storages.tuning_cache_row import (
    TORCH,
    CacheHeader,
    CacheRow,
    settings_of,
    trtexec_threshold,
)
from smart_tuner.storages.tuning_cache_write import CacheRun, cache_lines, trtexec_quoted
from smart_tuner.trial.trial import TrialOutcome

GOLDEN = Path(__file__).parents[2] / "golden"
HEADER = b'{"tuner_version":"2.19.45","tuning_expr":"-a=[on|off]","default_build_route":"-a=on"}'
ROW = b'{"iter":0,"build_route":"-a=on","crash":false,"error_message":"","gpu_time":1.0}'
OTHER = b'{"iter":1,"build_route":"-a=off","crash":false,"error_message":"","gpu_time":0.5}'


def read(folder: Path, *lines: bytes, end: bytes = b"\n") -> TuningCache:
    path = folder / "t.jsonl"
    path.write_bytes(end.join(lines) + end)
    return read_tuning_cache(path)


def row(**values: Any) -> bytes:
    base = {"iter": 0, "build_route": "-a=on", "crash": False, "error_message": ""}
    return json.dumps({**base, "accuracy_loss": None, "gpu_time": 1.0, **values}).encode()


def test_a_mixed_run_is_read_whole() -> None:
    cache = read_tuning_cache(GOLDEN / "trtexec-mixed.jsonl")
    assert cache.header
    assert cache.dropped == {}
    assert (cache.header.search, cache.header.metric, cache.header.model) == (
        "mixed",
        "l0",
        "/models/m.onnx",
    )
    assert [(item.phase, item.number) for item in cache.rows] == [
        *((1, number) for number in range(4)),
        *((2, number) for number in range(5)),
    ]
    ok, wrong, failed = (
        TrialOutcome.FEASIBLE,
        TrialOutcome.INFEASIBLE,
        TrialOutcome.BUILD_FAILED,
    )
    outcomes = [item.outcome for item in cache.rows]
    assert outcomes == [ok, ok, wrong, ok, ok, wrong, ok, failed, failed]
    assert cache.rows[2].losses == {"y": 0.7}
    assert cache.rows[2].gpu_ms == 0.0279001
    assert cache.rows[7].message == "child killed by signal 11 (Segmentation fault)"


def test_a_run_without_references_knows_no_accuracy() -> None:
    cache = read_tuning_cache(GOLDEN / "trtexec-fast.jsonl")
    assert [item.gpu_ms for item in cache.rows] == [0.028777, 0.028493, 0.028401, 0.028383]
    assert {item.loss for item in cache.rows} == {None}
    assert cache.header
    assert cache.header.epsilon == cache.header.our_epsilon == 0


def test_the_variant_of_torch_tensorrt_is_read() -> None:
    cache = read_tuning_cache(GOLDEN / "torch-tensorrt.jsonl")
    assert cache.header
    assert cache.header.origin == TORCH
    assert cache.header.metric == "l1"
    assert [item.outcome for item in cache.rows] == [
        TrialOutcome.FEASIBLE,
        TrialOutcome.FEASIBLE,  # it fails a loss that exceeds the threshold only
        TrialOutcome.INFEASIBLE,
    ]
    assert math.isnan(cache.rows[2].losses["output_0"])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b" \t\r\n\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_blank_lines_and_byte_order_marks_do_not_matter(
    end: bytes, mark: bytes, tmp_path: Path
) -> None:
    plain = read(tmp_path, HEADER, ROW, OTHER)
    odd = read(tmp_path, mark + HEADER, ROW, OTHER, end=end)
    assert (odd.header, odd.rows, odd.dropped) == (plain.header, plain.rows, {})


@pytest.mark.parametrize("length", range(1, len(OTHER) - 1))
def test_a_torn_last_line_is_counted_and_the_rest_kept(length: int, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join((HEADER, ROW, OTHER[:length])))
    cache = read_tuning_cache(path)
    assert len(cache.rows) == 1
    assert cache.dropped == {"torn last line": 1}


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join((HEADER, ROW, OTHER)))
    assert len(read_tuning_cache(path).rows) == 2


def test_what_is_no_row_is_counted_by_kind(tmp_path: Path) -> None:
    lines = (
        *(b"# a comment", b"\0\0\0", b"[" * 100_000),  # no JSON
        *(b"[]", b'"text"', b"3", b"null", b"NaN"),  # no object
        *(b"{}", b'{"crash":true}'),  # neither
        *(row(build_route=None), row(build_route=3), b'{"gpu_time":1}'),
        *(row(build_route="a=on"), row(build_route="-a"), row(build_route="-a=[on|off]")),
        *(row(gpu_time=None), row(gpu_time=0), row(gpu_time=-1), row(gpu_time="1")),
        *(row(gpu_time=math.nan), row(gpu_time=math.inf), row(gpu_time=True)),
    )
    cache = read(tmp_path, HEADER, ROW, *lines, OTHER)
    assert len(cache.rows) == 2
    assert cache.dropped == {
        "no JSON": 3,
        "no JSON object": 5,
        "neither header nor row": 2,
        "row without a route": 3,
        "row whose route is none": 3,
        "row without a result": 7,
    }
    assert counted_kinds({"no JSON": 3, "torn last line": 1}) == "3 no JSON, 1 torn last line"


def test_unknown_keys_and_a_missing_header_do_no_harm(tmp_path: Path) -> None:
    cache = read(tmp_path, row(surprise={"deep": [1]}))
    assert cache.header is None
    assert len(cache.rows) == 1


def test_bytes_that_are_no_utf8_are_shown_as_such(tmp_path: Path) -> None:
    broken = row(error_message="caf? crashed", crash=True).replace(b"f?", b"f\xe9")
    cache = read(tmp_path, HEADER, broken, row(build_route="-a=o?").replace(b"o?", b"o\xff"))
    assert cache.undecodable == 2
    assert cache.rows[0].message == "caf\ufffd crashed"
    assert cache.dropped == {"row whose route is none": 1}


def test_terminals_are_not_told_what_to_do_by_a_file(tmp_path: Path) -> None:
    cache = read(tmp_path, HEADER, row(crash=True, error_message="\x1b[2J\na"))
    assert cache.rows[0].message == "?[2J a"


def test_rows_of_another_run_in_one_file_are_not_compared(tmp_path: Path) -> None:
    again = HEADER.replace(b"2.19.45", b"2.20.0")
    cache = read(tmp_path, HEADER, ROW, HEADER, OTHER, again, ROW, OTHER)
    assert len(cache.rows) == 2
    assert cache.dropped == {"row of a second run": 2}


def test_repeated_and_missing_numbers_make_phases(tmp_path: Path) -> None:
    cache = read(tmp_path, HEADER, *(row(iter=number) for number in (0, 1, "x", 5, 0, None, -3)))
    assert [(item.phase, item.number) for item in cache.rows] == [
        *((1, 0), (1, 1), (1, 2), (1, 5)),
        *((2, 0), (2, 1), (2, 2)),
    ]


def test_huge_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_cache, "MAX_LINE_BYTES", 200)
    cache = read(tmp_path, HEADER, b"x" * 1000, b" " * 201, ROW, b"y" * 199)
    assert len(cache.rows) == 1
    assert cache.dropped == {"line too long": 2, "no JSON": 1}
    monkeypatch.setattr(tuning_cache, "MAX_ROWS", 2)
    assert read(tmp_path, HEADER, *[ROW] * 5).dropped == {tuning_cache.TOO_MANY: 3}
    monkeypatch.setattr(tuning_cache, "MAX_BYTES", 1000)
    with pytest.raises(UserInputError, match="larger than"):
        read(tmp_path, HEADER, *[ROW] * 20)
    with pytest.raises(UserInputError, match="larger than"):
        read_tuning_cache(Path("/dev/zero"))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"hello\n", b"[1]\n", b"{}\n", b"\x7fELF\0\n"])
def test_a_file_that_is_no_cache_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserInputError, match=r"is no tuning cache.*--tuningCacheFile"):
        read_tuning_cache(path)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(UserInputError, match=f"{path}.*Check the path"):
            read_tuning_cache(path)


class TestAccuracy:
    def test_trtexec_refuses_a_loss_that_reaches_the_threshold(self) -> None:
        header = CacheHeader(epsilon=0.5)
        assert [header.fails(loss) for loss in (0.4, 0.5, 0.6, math.nan)] == [False, *[True] * 3]
        assert header.our_epsilon < 0.5

    def test_our_epsilon_accepts_the_same_losses(self) -> None:
        header = CacheHeader(epsilon=0.1)
        for loss in (0.1, math.nextafter(0.1, 0), math.nextafter(0.1, 1)):
            assert (loss > header.our_epsilon) is header.fails(loss)

    @pytest.mark.parametrize("epsilon", [0.0, 1e-45, 1e-5, 0.1, 0.5, 1.0, 3e38])
    def test_the_threshold_accepts_the_same_losses(self, epsilon: float) -> None:
        threshold = trtexec_threshold(epsilon)
        assert threshold == float(np.float32(threshold)) > epsilon
        assert CacheHeader(epsilon=threshold).our_epsilon >= epsilon
        assert not CacheHeader(epsilon=threshold).fails(epsilon)

    def test_without_a_check_nothing_fails(self) -> None:
        assert not CacheHeader().fails(math.inf)

    def test_a_failed_row_stays_failed_whatever_its_last_loss(self, tmp_path: Path) -> None:
        """trtexec reports the loss of the last reference pair; an earlier one may have failed."""
        told = row(error_message="child exited with status 1", accuracy_loss={"y": 0.0})
        assert read(tmp_path, HEADER, told).rows[0].outcome is TrialOutcome.INFEASIBLE

    def test_a_loss_that_was_lost_is_bad(self, tmp_path: Path) -> None:
        strict = HEADER[:-1] + b',"accuracy_parameter":{"epsilon":0.5}}'
        told = row(accuracy_loss={"y": None, "z": 0.1})
        assert read(tmp_path, strict, told).rows[0].outcome is TrialOutcome.INFEASIBLE


CALM = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
)
KEYS = st.sampled_from(
    (
        *("tuner_version", "accuracy_algorithm", "accuracy_parameter", "searching_algorithm"),
        *("default_build_route", "tuning_expr", "files", "partition_key", "iter", "build_route"),
        *("crash", "error_message", "accuracy_loss", "gpu_time"),
    )
)


class TestAnything:
    """Whatever the file holds, it is read or refused in one sentence."""

    def check(self, path: Path) -> None:
        try:
            found = cached_trials(read_tuning_cache(path))
        except UserInputError:
            return
        text = "\n".join(
            (*summary_lines(cache_summary(found)), *(line for line in trial_lines(found)))
        )
        assert "\x1b" not in text
        with suppress(UserInputError):
            recorded_compiler(found)

    @CALM
    @given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=5))
    def test_rows_of_any_types(self, rows: list[dict[str, Any]]) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "t.jsonl"
            lines = [HEADER, ROW, *(json.dumps(item).encode() for item in rows)]
            path.write_bytes(b"\n".join(lines))
            self.check(path)

    @CALM
    @given(st.integers(0, 1500), st.integers(0, 300), st.binary(max_size=20), st.booleans())
    def test_damaged_bytes(self, start: int, length: int, patch: bytes, is_torch: bool) -> None:
        name = "torch-tensorrt.jsonl" if is_torch else "trtexec-mixed.jsonl"
        content = (GOLDEN / name).read_bytes()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "t.jsonl"
            path.write_bytes(content[:start] + patch + content[start + length :])
            self.check(path)


def test_settings_of_a_route() -> None:
    assert settings_of("  -a=on  -b:c=1 ") == (("a", "on"), ("b:c", "1"))
    assert settings_of("") == ()
    assert settings_of("-a=on -a=off") == (("a", "off"),)
    for odd in ("--a=on", "-a=", "-=on", "-a=on\t-b=off", "-a=\ufffd", None, 3):
        assert settings_of(odd) is None


def test_what_is_written_is_what_trtexec_writes() -> None:
    run = CacheRun(
        tuner_version="2.19.45",
        metric="l0",
        atol=1e-5,
        rtol=1e-5,
        epsilon=math.inf,
        search="fast",
        command=["./trtexec", "--onnx=m.onnx", "--tuneBuildRoutes=-copy_ppg=[on|off]"],
        model="/w/m.onnx",
        engine="b.plan",
        defaults={"a": "on", "b": "off"},
        expression="-copy_ppg=[on|off]",
    )
    rows = (
        CacheRow(0, 1, (("copy_ppg", "on"),), TrialOutcome.FEASIBLE, gpu_ms=0.0283833),
        CacheRow(1, 1, (("copy_ppg", "off"),), TrialOutcome.BUILD_FAILED, "it died"),
        CacheRow(
            2, 1, (("copy_ppg", "off"),), TrialOutcome.INFEASIBLE, losses={"y": 0.7}, gpu_ms=0.0279
        ),
        CacheRow(3, 1, (), TrialOutcome.INFEASIBLE, losses={"y": math.nan}, gpu_ms=1.0),
    )
    assert "".join(cache_lines(run, rows)).splitlines() == [
        (
            '{"tuner_version":"2.19.45","accuracy_algorithm":"L0","accuracy_parameter":{"atol":'
            '9.999999747378752e-06,"rtol":9.999999747378752e-06,"epsilon":0.0},'
            '"searching_algorithm":"fast","command_line":"./trtexec --onnx=m.onnx '
            "'--tuneBuildRoutes=-copy_ppg=[on|off]'\","
            '"default_build_route":"-a=on -b=off","tuning_expr":"-copy_ppg=[on|off]",'
            '"files":{"onnx":"/w/m.onnx","save_engine":"b.plan"},"argv":["./trtexec",'
            '"--onnx=/w/m.onnx","--tuneBuildRoutes=-copy_ppg=[on|off]"]}'
        ),
        (
            '{"iter":0,"build_route":"-copy_ppg=on","crash":false,"error_message":"",'
            '"accuracy_loss":null,"gpu_time":0.0283833}'
        ),
        (
            '{"iter":1,"build_route":"-copy_ppg=off","crash":true,"error_message":"it died",'
            '"accuracy_loss":null,"gpu_time":null}'
        ),
        (
            '{"iter":2,"build_route":"-copy_ppg=off","crash":false,"error_message":'
            '"child exited with status 1","accuracy_loss":{"y":0.7},"gpu_time":0.0279}'
        ),
        (
            '{"iter":3,"build_route":"","crash":true,"error_message":'
            '"failed to parse tuning result JSON: a loss is not finite","accuracy_loss":null,'
            '"gpu_time":null}'
        ),
    ]


def test_words_are_quoted_as_trtexec_quotes_them() -> None:
    words = ["a", "b c", "-x=[1|2]", "it's", "$HOME", "a\\b", "*"]
    assert trtexec_quoted(words) == "a 'b c' '-x=[1|2]' 'it'\\''s' $HOME 'a\\b' *"
