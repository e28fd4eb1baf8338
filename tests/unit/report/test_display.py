from __future__ import annotations

import io
import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from smart_tuner.report.outcome import print_result
from smart_tuner.report.terminal import LAST_ROUTES, LiveDisplay, describe, display
from smart_tuner.report.words import budget_phrase, clock, counted, duration, percent, shortened
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.events import (
    Event,
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
    TrialStarted,
)
from smart_tuner.study.result import TuneResult, Verdict
from smart_tuner.study.statistics import Gain
from smart_tuner.trial.trial import TrialOutcome

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
    TrialStarted(7, LONG, "exploiting"),
)


def screen(width: int, *events: Event) -> list[str]:
    console = Console(record=True, width=width, force_terminal=True, file=io.StringIO())
    live = LiveDisplay("smart-tuner: a [model].onnx on replay", console)
    for event in events:
        live(event)
    console.print(live)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_screen_fits(width: int) -> None:
    lines = screen(width, *EVENTS)
    assert max(len(line.rstrip()) for line in lines) <= width
    assert len(lines) == 5 + 1 + 6  # title, phase, best, budget, head, rows, what is tried
    assert len(lines[-1].rstrip()) <= max(20, width - 4)  # room for the ^C that a terminal echoes


@pytest.mark.parametrize("width", [80, 200])
def test_texts_are_no_markup(width: int) -> None:
    text = "\n".join(screen(width, *EVENTS))
    assert "a [model].onnx" in text
    assert "Searching [60] knobs" in text
    assert "-[bold]=[a|b] -[/red]=x" in text


def test_what_the_screen_says() -> None:
    lines = screen(80, *EVENTS)
    assert lines[2].split("  ")[0] == "best so far 1.250x"
    assert "2 ok" in lines[2]
    assert "1 build failed" in lines[2]
    assert "1:05 of 10:00" in lines[3]
    rows = [" ".join(line.split()) for line in lines[4:]]
    assert rows[0] == "trial gain +- outcome route"
    assert rows[1].startswith("3 1.250x 0.4 % ok -[bold]=[a|b]")
    assert rows[2].startswith("4 1.250x 0.4 % ok -knob_number_0=a rather")
    assert rows[2].endswith("…")
    assert rows[3].startswith("5 - build failed ")
    assert rows[4].startswith("6 1.000x no effect ")
    assert rows[5].startswith("finalist 1.200x 1.0 % ok ")
    assert rows[6].startswith("report - failed over [epsilon]: ")
    assert rows[7].startswith("trial 7, exploiting: -knob_number_0=")


def test_columns_stay_where_they_are() -> None:
    starts = {screen(80, event)[4].index("route") for event in (finished(), FAILED)}
    assert len(starts) == 1


def test_only_the_latest_routes_are_shown() -> None:
    lines = screen(80, *(finished(number) for number in range(100)))
    assert sum(" ok " in line for line in lines[5:]) == LAST_ROUTES


def test_a_study_without_limit_has_no_bar() -> None:
    lines = screen(80, finished(budget_seconds=math.inf))
    assert lines[3].strip() == "1:05"


def test_before_the_first_trial_there_is_a_clock() -> None:
    assert screen(80, PhaseStarted("prepare", "Reading"))[2].strip() == "0:00"


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
    print_result(result, Console(file=file, width=80, force_terminal=False))
    return file.getvalue()


def test_the_verdict_on_the_terminal() -> None:
    text = verdict(RESULT)
    assert "1.25x [bold]faster[/bold]." in text
    assert "  engine, over the fastest default build  1.240x (95 % interval 1.210-1.270)" in text
    assert "  trials: 1 no effect, 2 ok, 1 timed out; 65 s spent\n" in text
    assert f"  study: {RESULT.study}\n" in text  # in one line, to be copied
    assert f"  to deploy: {RESULT.study / 'winner'}\n" in text


def test_a_verdict_without_a_winner_deploys_nothing() -> None:
    text = verdict(replace(RESULT, verdict=Verdict.UNDECIDED, trials={}, sustained_gain=None))
    assert "to deploy" not in text
    assert "engine," not in text
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
