"""``report`` and ``explain`` as people call them."""

from __future__ import annotations

import contextlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smart_tuner.cli.main import main
from smart_tuner.report.analysis.summary import summarize
from smart_tuner.report.comment import markdown_comment
from smart_tuner.report.html.page import html_report
from smart_tuner.report.reading import StudyView
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.trial.trial import TrialOutcome
from tests.studies_for_viewing import Kind, make_study

if TYPE_CHECKING:
    from tests.conftest import MakeOnce

EVIL = "</script><img src=x onerror=alert(1)>|`"


@pytest.fixture(scope="session")
def study(make_once: MakeOnce) -> Path:
    """A finished study with a winner; nothing in it may be changed."""
    folder = make_once("reported", lambda place: make_study(Kind.FINISHED, place))
    return folder / "finished.study"


def call(*words: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


class Outside(HTMLParser):
    """What a page would fetch, and the headings that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.images = 0
        self.sections: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.images += tag == "img"
        if tag == "section":
            self.sections.append(str(given["id"]))
        link = given.get("src") or (given.get("href") if tag == "link" else None)
        if link and not link.startswith("data:"):
            self.fetched.append(link)


def test_the_report_is_one_file_that_fetches_nothing(study: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert call("report", study, "--out", target) == (0, f"{target}\n", "")
    page = Outside()
    page.feed(target.read_text(encoding="utf-8"))
    assert page.fetched == []
    assert page.sections == [
        *("deploy", "sure", "history", "accuracy", "effects", "failures", "outlook"),
        *("prior", "machine", "again"),
    ]


def test_the_report_goes_into_the_study_unless_told_otherwise(study: Path) -> None:
    code, out, _ = call("report", study)
    assert code == 0
    assert out == f"{study / 'report.html'}\n"
    assert (study / "report.html").is_file()


def test_json_holds_what_the_report_is_made_of(study: Path) -> None:
    code, out, _ = call("report", study, "--json")
    data = json.loads(out, parse_constant=pytest.fail)
    assert code == 0
    assert data["headline"]["ships"] is True
    assert len(data["history"]["points"]) == 60
    knobs = {value["knob"]: value["finding"] for value in data["effects"]["values"]}
    assert knobs["graph:fusion"] == "pays"
    assert data["machine"]["series"][0]["name"] == "sm_clock_mhz"


def test_markdown_is_short_and_says_what_ships(study: Path) -> None:
    code, out, _ = call("report", study, "--markdown")
    assert code == 0
    assert out.startswith("### finished.onnx on Simulated GPU")
    assert "| `graph:fusion=extended` | -11." in out
    assert "smart-tuner verify finished.study" in out
    assert len(out.splitlines()) < 80


def test_explain_says_what_pays_breaks_and_whether_to_go_on(study: Path) -> None:
    code, out, _ = call("explain", study)
    text = " ".join(out.split())
    assert code == 0
    assert re.search(r"Pays, in latency: .*graph:fusion=extended -11\.\d %", text)
    assert re.search(
        r"kernel:legacy=on surely breaks routes: (\d+) of \1 with it failed, always: build failed",
        text,
    )
    assert re.search(r"precision:tf32=on -18\.\d % \(but costs too much accuracy\)", text)
    assert "streams=2 together with workspace=small breaks routes" in text
    assert "Going on does not look worth it" in text
    assert "No effect, to within 1 %" in text


def test_explain_gives_the_figures_as_json(study: Path) -> None:
    _, out, _ = call("explain", study, "--json")
    data = json.loads(out, parse_constant=pytest.fail)
    assert {value["knob"] for value in data["breaks"]} >= {"kernel:legacy", "lookahead"}
    assert data["breaks_together"][0]["first"] == ["streams", "2"]
    assert data["outlook"]["worth_it"] is False
    assert data["subjects"]["Is it worth going on?"]


@pytest.mark.parametrize("command", ["report", "explain"])
def test_no_study_is_wrong_use(command: str, tmp_path: Path) -> None:
    code, out, err = call(command, tmp_path)
    assert code == 2
    assert out == ""
    assert "No study in" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("--json", "--markdown"), ("--json", "--out", "x.html")])
def test_what_prints_writes_no_file(study: Path, words: tuple[str, ...]) -> None:
    code, _, err = call("report", study, *words)
    assert code == 2
    assert "without --out" in err


def test_nothing_that_a_study_says_becomes_part_of_the_page() -> None:
    document = {
        "seed": 1,
        "settings": {"model": f"/m/{EVIL}.onnx", "budget": 60.0},
        "identity": {"model": EVIL},
        "space": {EVIL: ["0", EVIL]},
        "accuracy": {"metric": EVIL, "epsilon": 0.01},
        "base": {EVIL: EVIL},
    }
    route = BuildRoute(((EVIL, EVIL),))
    records = (
        TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 2.0, -6.0, unchanged=True),
        *(TrialRecord(n, route, TrialOutcome.FEASIBLE, 1.5, -1.0, reason=EVIL) for n in (1, 2, 3)),
        TrialRecord(4, route, TrialOutcome.BUILD_FAILED, message=EVIL),
    )
    view = StudyView(
        Path(f"/s/{EVIL.replace('/', '')}"),
        "stopped",
        document,
        platform={"device": EVIL, "details": {EVIL: EVIL}},
        records=records,
        baseline_ms=2.0,
        problems=(EVIL,),
    )
    summary = summarize(view)
    page = Outside()
    page.feed(html_report(view, summary))
    assert page.images == 0
    assert page.fetched == []
    outside = re.sub(r"```bash.*?```", "", markdown_comment(view, summary), flags=re.DOTALL)
    assert "<img" not in re.sub(r"(`+).*?\1", "", outside)
