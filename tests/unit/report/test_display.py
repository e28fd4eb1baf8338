from __future__ import annotations

import io
import math
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from smart_tuner.report.known import Best, Known, beside, sparkline
from smart_tuner.report.live import LAST_ROUTES, LiveDisplay
from smart_tuner.report.outcome import print_result
from smart_tuner.report.pace import Pace, hour
from smart_tuner.report.terminal import describe, display
from smart_tuner.report.words import budget_phrase, clock, counted, duration, percent, shortened
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.progress.events import (
    Event,
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
    TrialsKept,
    TrialStarted,
)
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import TuneResult, Verdict
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.report.tops import top

MARKUP = BuildRoute((("[bold]", "[a|b]"), ("[/red]", "x")))
LONG = BuildRoute(tuple((f"knob_number_{n}", "a rather long value") for n in range(30)))


def finished(number: int = 3, route: BuildRoute = MARKUP, **changes: object) -> TrialFinished:
    event = TrialFinished(
        number=number,
        route=route,
        outcome=TrialOutcome.FEASIBLE,
        gain=1.25,
        half_width=0.004,
        unchanged=False,
        message="",
        incumbent_gain=1.25,
        spent_seconds=65.0,
        budget_seconds=600.0,
        search_left_seconds=355.0,
    )
    return replace(event, **changes)  # type: ignore[arg-type]


FAILED = finished(
    5, outcome=TrialOutcome.BUILD_FAILED, gain=None, half_width=None, message="No [kernel]."
)
EVENTS: tuple[Event, ...] = (
    PhaseStarted("search", "Searching [60] knobs with 'default'"),
    TrialStarted(3, MARKUP, "screening"),
    finished(),
    finished(4, LONG),
    FAILED,
    finished(6, unchanged=True, gain=1.0, half_width=None),
    RouteMeasured("finalist", LONG, 1.2, 0.01, ""),
    RouteMeasured("report", MARKUP, None, None, "over [epsilon]"),
    TrialStarted(7, LONG, "exploiting", "exploiting: the best route, 30 knobs changed"),
)


def screen(width: int, *events: Event, budget: float = 600.0) -> list[str]:
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO())
    live = LiveDisplay("smart-tuner: a [model].onnx on replay", console, Pace(budget))
    for event in events:
        live(event)
    console.print(live)
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_screen_fits(width: int) -> None:
    lines = screen(width, *EVENTS)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 22  # leaves the prompt its line on the smallest of terminals
    assert len(lines[-1]) <= max(20, width - 4)  # room for the ^C that a terminal echoes


@pytest.mark.parametrize("width", [80, 200])
def test_texts_are_no_markup(width: int) -> None:
    text = "\n".join(screen(width, *EVENTS))
    assert "a [model].onnx" in text
    assert "Searching [60] knobs" in text
    assert "-[bold]=[a|b] -[/red]=x" in text


def test_what_the_screen_says() -> None:
    lines = screen(80, *EVENTS)
    assert lines[1] == "Searching [60] knobs with 'default'"
    assert re.search(r" 1:\d\d of 10:00$", lines[2])
    left = r"time   searching for \d:\d\d more, then confirming; done by \d\d:\d\d at the latest"
    assert re.fullmatch(left, lines[3])
    assert lines[4].startswith("best   1.250x +-0.4 % (trial 3)  ")
    assert lines[5] == f"       {MARKUP}"
    assert lines[6] == "noise  +-0.4 % on a trial's gain; proven is only what is confirmed"
    assert lines[7:9] == ["tried  4: 2 ok, 1 no effect", "not ok 1 build failed"]
    rows = [" ".join(line.split()) for line in lines[9:]]
    assert rows[0] == "trial gain +- outcome route"
    assert rows[1].startswith("3 1.250x 0.4 % ok -[bold]=[a|b]")
    assert rows[2].startswith("4 1.250x 0.4 % ok -knob_number_0=a rather")
    assert rows[2].endswith("…")
    assert rows[3] == "5 - build failed trial 3"
    assert rows[4] == "6 1.000x no effect trial 3"
    assert rows[5].startswith("finalist 1.200x 1.0 % ok ")
    assert rows[6] == "report - failed over [epsilon]: trial 3"
    assert rows[7] == "now trial 7 (0:00), exploiting: the best route, 30 knobs changed"


def test_a_wide_screen_says_why_each_route_was_tried() -> None:
    lines = screen(200, TrialStarted(3, MARKUP, "", "screening: 1 value"), finished())
    assert lines[-1].split()[:7] == [
        "3",
        "1.250x",
        "0.4",
        "%",
        "ok",
        "screening",
        str(MARKUP)[:13],
    ]


def test_a_narrow_screen_leaves_routes_out_of_the_table() -> None:
    assert [line.split() for line in screen(40, finished())[-2:]] == [
        ["trial", "gain", "+-", "outcome"],
        ["3", "1.250x", "0.4", "%", "ok"],
    ]


def test_a_continued_study_shows_what_was_known_before() -> None:
    route = BuildRoute((("k", "on"),))
    kept = (
        TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 2.0, unchanged=True),
        TrialRecord(1, route, TrialOutcome.FEASIBLE, 1.6, half_width=0.01),
        TrialRecord(2, MARKUP, TrialOutcome.INFEASIBLE, 1.0, violation=1.0),
    )
    lines = screen(80, PhaseStarted("search", "Searching", 60.0), TrialsKept(kept, 2.0))
    assert lines[4] == "best   1.250x +-1.0 % (trial 1)  ▁██"
    assert lines[7:9] == ["tried  3: 1 ok, 1 no effect", "not ok 1 over epsilon"]
    said = "kept from before, 3: 1 ok, 1 no effect; best 1.250x +-1.0 % (trial 1)"
    assert describe(TrialsKept(kept, 2.0)) == said


def test_a_faster_route_over_epsilon_is_never_the_best() -> None:
    over = finished(4, LONG, outcome=TrialOutcome.INFEASIBLE, gain=2.0, incumbent_gain=1.25)
    assert screen(80, finished(), over)[4].startswith("best   1.250x +-0.4 % (trial 3)  ")
    assert screen(80, over)[4] == "best   1.000x, the default"


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("prepare", r"done by \d\d:\d\d at the latest"),
        ("search", r"the search ends with this trial; done by \d\d:\d\d at the latest"),
        ("report", r"confirming for \d:\d\d at most; done by \d\d:\d\d at the latest"),
    ],
)
def test_what_is_left_of_each_phase(phase: str, words: str) -> None:
    pace = Pace(600.0)
    pace.told(539.9, 0.0)
    assert re.fullmatch(words, pace.words(phase))


def test_a_spent_budget_promises_no_time() -> None:
    pace = Pace(600.0)
    pace.told(601.0, 5.0)
    for phase in ("search", "sustained"):
        assert pace.words(phase) == "the budget is spent: done with what is being measured"


def test_another_day_is_named() -> None:
    assert re.fullmatch(r"\d\d:\d\d", hour(60.0))
    assert re.fullmatch(r"\w{3} \d\d \w{3} \d\d:\d\d", hour(30 * 3600.0))


def test_an_endless_budget_ends_with_its_trials() -> None:
    pace = Pace()
    assert pace.words("prepare") == pace.words("report") == ""
    pace.told(1.0, math.inf)
    assert pace.words("search") == "the search goes on until you stop it"


CURVES = st.lists(st.floats(1.0, 9.0), max_size=200).map(tuple)


@given(CURVES, st.integers(0, 60), st.booleans())
def test_a_sparkline_fits_and_ends_where_the_curve_does(
    values: tuple[float, ...], width: int, ascii_only: bool
) -> None:
    line = sparkline(values, width, ascii_only=ascii_only)
    assert len(line) == min(len(values), width)
    assert line.isascii() == (ascii_only or not line)
    if line and values[-1] == max(values) > min(values) and len(values) <= width:
        assert line[-1] in "█@"


def test_a_route_is_told_in_the_fewest_words() -> None:
    best = Best(3, BuildRoute((("a", "on"), ("b", "on"), ("long_name", "long_value"))), 1.2, None)
    near = BuildRoute((("a", "off"), ("b", "on"), ("c", "on"), ("long_name", "long_value")))
    assert beside(near, None) == str(near)
    assert beside(near, best) == "trial 3 with -a=off -c=on"
    assert beside(BuildRoute((("b", "on"),)), best) == "-b=on"
    assert beside(BuildRoute(), best) == "(default)"


def test_without_trials_nothing_is_known() -> None:
    assert (Known().tried, Known().not_ok, Known().noise) == ("none yet", "", None)


def test_columns_stay_where_they_are() -> None:
    starts = {
        next(line for line in screen(80, event) if "outcome" in line).index("route")
        for event in (finished(), FAILED)
    }
    assert len(starts) == 1


def test_only_the_latest_routes_are_shown() -> None:
    lines = screen(80, *(finished(number) for number in range(100)))
    assert sum(" ok " in line for line in lines[9:]) == LAST_ROUTES


def test_a_study_without_limit_has_no_bar() -> None:
    lines = screen(80, finished(budget_seconds=math.inf), budget=math.inf)
    assert lines[2] == "1:05"


def test_before_the_first_trial_there_is_a_clock() -> None:
    lines = screen(80, PhaseStarted("prepare", "Reading"))
    assert lines[2].endswith("0:00 of 10:00")
    assert re.fullmatch(r"time   done by \d\d:\d\d at the latest", lines[3])
    assert screen(80, PhaseStarted("prepare", "Reading"), budget=math.inf)[2:] == ["0:00"]


def test_events_and_drawing_may_meet() -> None:
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    live = LiveDisplay("title", console)
    errors: list[Exception] = []

    def draw() -> None:
        try:
            for _ in range(100):
                console.print(live)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    for number in range(500):
        live(finished(number))
    thread.join()
    assert errors == []


def test_the_screen_goes_when_the_study_ends_and_stays_after_ctrl_c() -> None:
    def drawn(error: type[BaseException] | None) -> str:
        file = io.StringIO()
        live = LiveDisplay("the title", Console(width=80, force_terminal=True, file=file))
        try:
            with live.running() as listener:
                listener(finished())
                if error is not None:
                    raise error
        except (KeyboardInterrupt, ValueError):
            pass
        return file.getvalue().rpartition("the title")[2]

    erase = "\x1b[2K"
    assert erase in drawn(None)
    assert erase in drawn(ValueError)
    assert erase not in drawn(KeyboardInterrupt)


@pytest.mark.parametrize("event", EVENTS)
def test_a_log_has_one_plain_line_an_event(event: Event) -> None:
    file = io.StringIO()
    with display("a [title]", Console(file=file, width=40)) as listener:
        assert file.getvalue() == ""
        listener(event)
        listener(Note("[red]that[/red] is all"))
    said = [describe(event)] if describe(event) else []
    assert file.getvalue().splitlines() == ["a [title]", *said, "note: [red]that[/red] is all"]


def test_lines_of_a_log() -> None:
    assert describe(finished()) == (
        "trial   3 ok           1.250x  best 1.250x  1:05 of 10:00  -[bold]=[a|b] -[/red]=x"
    )
    assert describe(replace(FAILED, route=BuildRoute())) == (
        "trial   5 build failed         best 1.250x  1:05 of 10:00  (default)  No [kernel]."
    )
    assert describe(EVENTS[-2]) == "  report: failed  -[bold]=[a|b] -[/red]=x  over [epsilon]"
    assert describe(EVENTS[-3]).startswith("  finalist: 1.200x +-1.0 %  -knob_number_0=")
    assert describe(EVENTS[0]) == "[search] Searching [60] knobs with 'default'"
    assert describe(TrialStarted(1, MARKUP, "screening")) == ""


def test_a_quiet_display_says_nothing() -> None:
    file = io.StringIO()
    with display("title", Console(file=file), quiet=True) as listener:
        listener(finished())
    assert file.getvalue() == ""


RESULT = TuneResult(
    verdict=Verdict.WINNER,
    sentence="1.25x [bold]faster[/bold].",
    route="-k=[a|b]",
    study=Path("/a long way", *["from home"] * 8, "s"),
    min_gain=1.01,
    max_regression=0.05,
    engine_gain=Gain(1.24, 1.21, 1.27, 10),
    sustained_gain=Gain(1.2, 1.1, 1.3, 4),
    bare_gain=Gain(1.5, 1.4, 1.6, 4),
    trials={"no effect": 1, "feasible": 2, "timed_out": 1},
    spent_seconds=65.0,
)


def verdict(result: TuneResult) -> str:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=False)
    print_result(result, top(result), console)
    return file.getvalue()


def test_the_verdict_on_the_terminal() -> None:
    text = verdict(RESULT)
    assert "1.25x [bold]faster[/bold]." in text
    assert "- Under sustained load: 1.200x (95 % interval 1.100-1.300)\n" in text
    assert "! The inputs were [synthetic].\n" in text
    assert f"  route: {RESULT.route}\n" in text
    assert "  trials: the default, 2 ok, 1 timed out; 65 s spent\n" in text
    assert f"  study: {RESULT.study}\n" in text  # in one line, to be copied
    assert f"  to deploy: {RESULT.study / 'winner'}\n" in text


def test_a_verdict_without_a_winner_deploys_nothing() -> None:
    text = verdict(replace(RESULT, verdict=Verdict.UNDECIDED, trials={}, sustained_gain=None))
    assert "to deploy" not in text
    assert "  trials: none; 65 s spent\n" in text


@given(st.floats(0, 1e7), st.floats(0, 1e7) | st.just(math.inf))
def test_clocks_and_durations_are_short(spent: float, total: float) -> None:
    assert len(clock(spent, total)) <= 25
    assert len(budget_phrase(spent, total)) <= 28
    assert clock(spent, math.inf) in clock(spent, total)


def test_words() -> None:
    assert [duration(s) for s in (42, 540, 9000, math.inf)] == [
        "42 s",
        "9 min",
        "2.5 h",
        "no limit",
    ]
    assert [clock(s, 600) for s in (0, 65, 3661)] == [
        "0:00 of 10:00",
        "1:05 of 10:00",
        "1:01:01 of 10:00",
    ]
    assert counted({"feasible": 2, "over": 1, "build_failed": 1}) == "2 ok, 1 over, 1 build failed"
    assert percent(math.inf) == "?"
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"
