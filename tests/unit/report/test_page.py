from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.report.jsonl import trial_row
from smart_tuner.report.markdown import code, plain, sentence, table
from smart_tuner.report.page import BEST_ROWS, FAILURE_ROWS, Material, page
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import TuneResult, Verdict
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.report.tops import top

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = Path(__file__).parents[2] / "golden" / "report.md"

DOCUMENT: dict[str, Any] = {
    "seed": 7,
    "settings": {
        "model": "/models/my net.onnx",
        "backend": "onnxruntime",
        "budget": 600.0,
        "sampler": "default",
        "metric": "linf",
        "epsilon": ["0.01"],
    },
    "identity": {"model": "0123456789abcdef" * 4},
    "accuracy": {"metric": "linf", "epsilon": 0.01, "rtol": 1e-3, "atol": 1e-4},
}
PLATFORM: dict[str, Any] = {
    "device": "A CPU",
    "driver": "Linux 6",
    "backend_version": "onnxruntime 1.32.0",
    "details": {"cpu_quota": "2"},
}
ROUTE = BuildRoute((("threads:intra", "1"),))
BASELINE = TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 2.0, -6.0, "f0", unchanged=True)
FAST = TrialRecord(
    1,
    ROUTE,
    TrialOutcome.FEASIBLE,
    1.6,
    -2.0,
    "f1",
    half_width=0.004,
    seconds={"build": 0.5, "total": 2.0},
    reason="screening",
)
LOST = TrialRecord(
    2,
    BuildRoute((("k", "a|b"),)),
    TrialOutcome.BUILD_FAILED,
    message="No <kernel> for `x`\n| at all",
)
WON = TuneResult(
    verdict=Verdict.WINNER,
    sentence="1.250x faster.",
    route=str(ROUTE),
    study=Path("/studies/my net.study"),
    min_gain=1.01,
    max_regression=0.05,
    route_gain=Gain(1.25, 1.2, 1.3, 5),
    engine_gain=Gain(1.24, 1.21, 1.27, 10),
    trials={"no effect": 1, "feasible": 1, "build_failed": 1},
    spent_seconds=590.0,
    notes=("Two of [three] knobs.",),
)
LOSSES = (
    {"output": "y", "loss": 0.001, "metric": "linf", "epsilon": 0.01, "point": "p", "pair": "0"},
    {"output": "y", "loss": 0.004, "metric": "linf", "epsilon": 0.01, "point": "p", "pair": "1"},
    {
        "output": "ids",
        "loss": 0.0,
        "metric": "mismatch",
        "epsilon": "inf",
        "point": "p",
        "pair": "0",
    },
)


COMMANDS = ("smart-tuner tune '/models/my net.onnx' --seed=7", "smart-tuner verify 'my net.study'")


def material(result: TuneResult, *records: TrialRecord, losses: Any = ()) -> Material:
    return Material(DOCUMENT, PLATFORM, result, top(result), COMMANDS, losses, records, 2.0)


def lines(made: Material) -> list[str]:
    return list(page(made))


def cells(line: str) -> list[str]:
    """Cells as a reader of GitHub's tables takes them: a bar after a backslash is text."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def check_tables(text: Iterable[str]) -> None:
    width = 0
    for line in text:
        if not line.startswith("|"):
            width = 0
            continue
        width = width or len(cells(line))
        assert len(cells(line)) == width, line


def test_report_of_a_winner_is_the_golden_one() -> None:
    text = "\n".join(lines(material(WON, BASELINE, FAST, LOST, losses=LOSSES)))
    assert text == GOLDEN.read_text(encoding="utf-8")


def none_won(**changes: Any) -> TuneResult:
    result = TuneResult(
        verdict=Verdict.DEFAULT_IS_BEST,
        sentence="The default is best here.",
        route="",
        study=Path("/s"),
        min_gain=1.01,
        max_regression=0.05,
        trials={"no effect": 1},
    )
    return replace(result, **changes)


def failure(number: int) -> TrialRecord:
    return replace(LOST, number=number, route=BuildRoute((("k", str(number)),)))


MANY = tuple(failure(number) for number in range(1, 31))
RESULTS = {
    "winner": material(WON, BASELINE, FAST, LOST, losses=LOSSES),
    "no gain": material(none_won(route_gain=Gain(1.0, 0.9, 1.1, 5)), BASELINE, FAST),
    "no interval": material(none_won(route_gain=Gain(1.0, 0.0, math.inf, 1)), BASELINE, FAST),
    "all failed": material(none_won(), *MANY),
    "one trial": material(none_won(), BASELINE),
    "no trial": material(none_won(trials={}, verdict=Verdict.UNDECIDED)),
    "many": material(
        none_won(), *(replace(FAST, number=n, value_ms=1 + n / 9) for n in range(40))
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_report_is_whole(name: str) -> None:
    text = lines(RESULTS[name])
    check_tables(text)
    assert text[0].startswith("# my net.onnx on ")
    assert text[2] == f"**{plain(RESULTS[name].result.sentence)}**"
    headings = [line for line in text if line.startswith("## ")]
    assert [head for head in headings if head in {"## Setting", "## Trials", "## Again"}] == [
        "## Setting",
        "## Trials",
        "## Again",
    ]
    assert (
        "inf" not in re.sub(r"linf|info", "", "\n".join(text).split("```")[0]) or name == "winner"
    )


def test_rows_are_limited_and_counted() -> None:
    many = lines(RESULTS["many"])
    assert sum(bool(re.match(r"\| \d+ \|", line)) for line in many) == BEST_ROWS
    failed = lines(RESULTS["all failed"])
    assert f"And {len(MANY) - FAILURE_ROWS} more, in `trials.jsonl`." in failed


def test_epsilons_of_single_outputs_are_named() -> None:
    accuracy = {"metric": "linf", "epsilon": 0.5, "per_output": {"a|b": 0.25}}
    made = replace(material(none_won()), document={**DOCUMENT, "accuracy": accuracy})
    assert "| accuracy | linf within 0.5; a\\|b within 0.25 |" in lines(made)


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXT, TEXT)
def test_no_text_leaves_its_cell(one: str, other: str) -> None:
    made = list(table(("a", "b"), [(plain(one), code(other)), (code(one), plain(other))]))
    assert all("\n" not in line for line in made)
    check_tables(line.replace("\\\\", "") for line in made)


@given(TEXT)
def test_code_keeps_its_text(text: str) -> None:
    span = code(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span.removeprefix(fence[0]).removesuffix(fence[0]).strip(" ")
    assert inner == " ".join(text.split()).strip(" ")
    assert fence[0] not in inner or set(inner) == {"`"}


def test_backquotes_in_a_sentence_are_code() -> None:
    assert (
        sentence("Take `a_b`, [not] `c`. `d` loads it.")
        == r"Take `a_b`, \[not\] `c`. `d` loads it."
    )
    assert sentence("one ` alone") == plain("one ` alone")


def test_plain_text_begins_nothing() -> None:
    assert plain("<b>*x*</b> [a](b) `c`") == r"&lt;b&gt;\*x\*&lt;/b&gt; \[a\](b) \`c\`"


@pytest.mark.parametrize("record", [BASELINE, FAST, LOST])
def test_trials_are_strict_json_lines(record: TrialRecord) -> None:
    line = trial_row(record, 2.0)
    assert "\n" not in line
    data = json.loads(line, parse_constant=pytest.fail)
    assert set(data) == {
        *("number", "route", "outcome", "latency_ms", "gain", "half_width", "violation"),
        "over_limits",
        *("unchanged", "fingerprint", "seconds", "reason", "message"),
    }
    assert data["route"] == str(record.route)
    assert data["gain"] == (None if record.value_ms is None else 2.0 / record.value_ms)


def test_what_is_not_finite_is_null() -> None:
    data = json.loads(trial_row(replace(FAST, half_width=math.inf, violation=math.nan), 2.0))
    assert data["half_width"] is None
    assert data["violation"] is None
