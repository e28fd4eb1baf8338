"""What the dashboard is told of studies: rightly, live, and for reading only."""

from __future__ import annotations

import io
import json
import math
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from optuna import create_study
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

from smart_tuner.cli.main import main
from smart_tuner.dashboard.artifacts import FolderArtifacts
from smart_tuner.dashboard.notes import log_tail
from smart_tuner.dashboard.server import application, is_loopback, serving, url_of
from smart_tuner.dashboard.shorter import REPEATED
from smart_tuner.dashboard.view import StudiesView
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_trial
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import BASELINE_MS, STUDY_NAME
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss
from tests.studies_for_viewing import Kind, make_study

if TYPE_CHECKING:
    from pathlib import Path

    import optuna

    from tests.conftest import MakeOnce

CHOICES = {"speed": ("slow", "fast"), "grave": ("no", "yes", "very", "so")}
DEFAULTS = {"speed": "slow", "grave": "no"}
WEIGHTS = {"default": 1.0}


@dataclass
class Dashboard:
    """The application behind the pages, without a network."""

    root: Path
    host: str = "127.0.0.1:8080"

    def __post_init__(self) -> None:
        self.view = StudiesView(self.root)
        self.app = application(self.view, "127.0.0.1")

    def ask(
        self, path: str, query: str = "", method: str = "GET"
    ) -> tuple[str, dict[str, str], bytes]:
        said: list[Any] = []
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "HTTP_HOST": self.host,
            "HTTP_ACCEPT_ENCODING": "gzip",
            "SERVER_NAME": "x",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_LENGTH": "2",
            "CONTENT_TYPE": "application/json",
            "wsgi.input": io.BytesIO(b"{}"),
            "wsgi.errors": io.StringIO(),
            "wsgi.url_scheme": "http",
        }
        answer = self.app(environ, lambda status, headers, *_: said.extend((status, headers)))  # type: ignore[arg-type]
        body = b"".join(answer)
        if (close := getattr(answer, "close", None)) is not None:
            close()
        return said[0][:3], dict(said[1]), body

    def study(self, number: int = 0, after: int = 0) -> dict[str, Any]:
        status, _, body = self.ask(f"/api/studies/{number}", f"after={after}")
        assert status == "200"
        data: dict[str, Any] = json.loads(body, parse_constant=pytest.fail)
        return data


@pytest.fixture(scope="module")
def finished(make_once: MakeOnce) -> Path:
    """A study with trials of every outcome, and a verdict."""
    place = make_once("dashboard-finished", lambda folder: make_study(Kind.FINISHED, folder))
    return place / "finished.study"


@pytest.fixture
def small(tmp_path: Path) -> StudyFolder:
    """A study that was begun."""
    folder = StudyFolder(tmp_path / "small.study")
    folder.create()
    settings = {"model": "/models/net.onnx", "budget": 60.0, "backend": "replay"}
    accuracy = {"metric": "linf", "epsilon": 0.001}
    space = {name: list(values) for name, values in CHOICES.items()}
    document = {"seed": 1, "settings": settings, "identity": {}, "accuracy": accuracy}
    folder.write_settings({**document, "space": space, "base": {}})
    return folder


def begin(folder: StudyFolder) -> optuna.Study:
    sampler = make_sampler("default", CHOICES, DEFAULTS, seed=1)
    study = open_study(folder.journal, STUDY_NAME, sampler, create=True)
    study.set_user_attr(BASELINE_MS, 2.0)
    return study


def tell(study: optuna.Study, outcome: TrialOutcome, *losses: float, **changes: Any) -> None:
    trial = ask_trial(study, CHOICES)
    rows = tuple(OutputLoss("default", "0", "y", "linf", loss, 0.001) for loss in losses)
    tried = Trial(BuildRoute.of(trial.params, DEFAULTS), outcome, losses=rows, **changes)
    tell_trial(study, trial, tried, 2.0, WEIGHTS, folder=f"trials/{trial.number}")


def test_violators_are_infeasible_and_never_the_best(finished: Path) -> None:
    dashboard = Dashboard(finished)
    study = dashboard.study()
    by_number = {trial["number"]: trial for trial in study["trials"]}
    kept = open_study(finished / "journal.log", STUDY_NAME, None, create=False).trials
    over = [t.number for t in kept if any(value > 0 for value in t.constraints.values())]
    complete = [number for number in over if by_number[number]["state"] == "Complete"]
    assert complete, "the study has violators that were measured"
    for trial in kept:
        is_broken = max(by_number[trial.number]["constraints"], default=0) > 0
        assert is_broken == (trial.number in over)
        assert len(by_number[trial.number]["constraints"]) == len(trial.constraints)
    (best,) = study["best_trials"]
    assert max(best["constraints"]) <= 0
    fastest = min((by_number[number] for number in complete), key=lambda t: t["values"])
    assert fastest["values"] < best["values"], "a violator is faster than the best trial"
    words = json.loads(dashboard.ask("/smart-tuner/outcomes/0")[2])
    assert {int(number) for number in words} == set(over)
    assert {words[str(number)] for number in complete} == {"infeasible"}
    seen = StudiesView(finished, dashboard.view, feasible_only=True).get_all_trials(0)
    assert {trial.number for trial in seen} == set(by_number) - set(over)
    ((*found,),) = json.loads(dashboard.ask("/api/studies/0/param_importances")[2]).values()
    told = {item["name"]: item["importance"] for item in found[0]}
    target = PedAnovaImportanceEvaluator()
    pretend = create_study()
    pretend.add_trials(seen)
    assert told == pytest.approx(get_param_importances(pretend, evaluator=target))


def test_choices_are_told_once_and_not_for_each_trial(finished: Path) -> None:
    study = Dashboard(finished).study()
    trial = study["trials"][-1]
    assert {tuple(item) for item in trial["params"]} == {
        ("name", "param_internal_value", "param_external_value")
    }
    listed = {
        item["name"]: item["distribution"]["choices"] for item in study["union_search_space"]
    }
    for item in trial["params"]:
        assert item["param_external_value"] in {one["value"] for one in listed[item["name"]]}
    odd = [
        {"pytype": "<class 'str'>", "value": 'a"]}\\'},
        {"pytype": "<class 'str'>", "value": "é"},
    ]
    kind = {"type": "CategoricalDistribution", "choices": odd}
    space = {"name": "k", "distribution": kind}
    param = {
        "name": "k",
        "param_external_value": "x",
        "param_external_pytyp": "t",
        "distribution": kind,
    }
    body = json.dumps([space, param]).encode()
    assert json.loads(REPEATED.sub(b"", body)) == [
        space,
        {"name": "k", "param_external_value": "x"},
    ]


def test_a_study_says_what_it_is(finished: Path) -> None:
    dashboard = Dashboard(finished)
    study = dashboard.study()
    assert study["name"] == "finished.onnx on Simulated GPU: finished.study"
    assert study["objective_names"] == ["latency in ms"]
    facts = {item["key"]: item["value"] for item in study["user_attrs"]}
    assert facts["state"] == "finished"
    assert facts["verdict"] in study["note"]["body"].replace("\\", "")
    files = {item["filename"]: item["artifact_id"] for item in study["artifacts"]}
    assert set(files) >= {"study.toml", "platform.json", "winner/manifest.json"}
    status, headers, body = dashboard.ask(f"/artifacts/0/{files['study.toml']}")
    assert (status, body) == ("200", (finished / "study.toml").read_bytes())
    assert "Access-Control-Allow-Origin" not in headers
    figures = [json.loads(item["graph_object"]) for item in study["plotly_graph_objects"]]
    titles = sorted(figure["layout"]["title"]["text"].partition(":")[0] for figure in figures)
    assert titles == [
        "Effect of knob values, with 95 % intervals",
        "Epsilon sweep",
        "Gain of each trial, with the best so far",
        "Paired gains",
        "What breaks, by knob value",
    ]


def test_a_trial_says_what_it_was(small: StudyFolder) -> None:
    study = begin(small)
    log = small.trial(0) / "child.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"first\n" * 99 + b"\x1b[31m<b>last</b>\x1b[0m $x$\x00\xff\n")
    tell(study, TrialOutcome.INFEASIBLE, math.nan, message="over | <epsilon>")
    tell(study, TrialOutcome.INFEASIBLE, 0.05)
    tell(study, TrialOutcome.TIMED_OUT, message="gave up")
    ask_trial(study, CHOICES)
    shown = Dashboard(small.root).study()
    notes = [trial["note"]["body"] for trial in shown["trials"]]
    assert notes[0].startswith("**over epsilon**, baseline: over | &lt;epsilon&gt;\n")
    assert "| `y` | 0 | linf | nan | 0.001 |" in notes[0]
    assert notes[0].endswith("    first\n    <b>last</b> $x$\N{REPLACEMENT CHARACTER}")
    assert notes[1].startswith("**over epsilon**, loss 50 of epsilon, ")
    assert notes[2].startswith("**timed out**, ")
    assert notes[3].startswith("**Being tried**, ")
    states = [trial["state"] for trial in shown["trials"]]
    assert states == ["Complete", "Complete", "Pruned", "Running"]
    attributes = [{a["key"]: a["value"] for a in trial["user_attrs"]} for trial in shown["trials"]]
    assert [item.get("outcome") for item in attributes] == [
        *("over epsilon", "over epsilon", "timed out", None)
    ]
    assert attributes[1]["loss / epsilon"] == "50.0"
    assert all("constraints" not in trial.system_attrs for trial in study.trials)


def test_a_study_without_feasible_trial_has_a_best_one_that_says_so(small: StudyFolder) -> None:
    study = begin(small)
    tell(study, TrialOutcome.INFEASIBLE, 0.05)
    tell(study, TrialOutcome.INFEASIBLE, 0.002)
    (best,) = Dashboard(small.root).study()["best_trials"]
    assert best["number"] == 1
    assert max(best["constraints"]) > 0


def test_new_trials_appear(small: StudyFolder) -> None:
    dashboard = Dashboard(small.root)
    assert dashboard.study()["trials"] == []
    study = begin(small)
    tell(study, TrialOutcome.BUILD_FAILED)
    assert len(Dashboard(small.root).study()["trials"]) == 1
    trial = ask_trial(study, CHOICES)
    now = dashboard.view.get_all_trials(0)
    assert [item.state.name for item in now] == ["PRUNED", "RUNNING"]
    tell_trial(study, trial, Trial(BuildRoute(), TrialOutcome.RUN_FAILED), 2.0, WEIGHTS)
    assert dashboard.view.outcomes(0) == {0: "build failed", 1: "run failed"}


def test_an_answer_is_kept_until_the_study_looks_different(small: StudyFolder) -> None:
    study = begin(small)
    tell(study, TrialOutcome.BUILD_FAILED)
    view = StudiesView(small.root)
    view.get_study_system_attrs(0)
    before = view.token(0)
    assert view.token(0) == before
    tell(study, TrialOutcome.BUILD_FAILED)
    grown = view.token(0)
    assert grown != before
    with small.locked():
        assert view.token(0) != grown


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/studies/0"),
        ("POST", "/api/studies"),
        ("POST", "/api/studies/0/rename"),
        ("PUT", "/api/studies/0/note"),
        ("PUT", "/api/studies/0/0/note"),
        ("POST", "/api/trials/0/tell"),
        ("POST", "/api/trials/0/user-attrs"),
        ("POST", "/api/artifacts/0/0"),
        ("DELETE", "/api/artifacts/0/0-0-0"),
    ],
)
def test_nothing_can_be_written(finished: Path, method: str, path: str) -> None:
    before = (finished / "journal.log").read_bytes()
    status, _, body = Dashboard(finished).ask(path, method=method)
    assert (status, json.loads(body)) == ("403", {"reason": "This dashboard only reads."})
    assert (finished / "journal.log").read_bytes() == before


def test_the_view_refuses_too(finished: Path) -> None:
    view = StudiesView(finished)
    for write in (
        lambda: view.delete_study(0),
        lambda: view.set_study_user_attr(0, "a", 1),
        lambda: view.set_trial_state_values(0, view.get_trial(0).state),
        lambda: FolderArtifacts(view.folder_of).remove("0-0-0"),
    ):
        with pytest.raises(UserInputError, match="only reads"):
            write()


def test_other_names_of_this_machine_are_refused(finished: Path) -> None:
    for host, status in (
        *(("localhost:8080", "200"), ("127.0.0.1", "200"), ("[::1]:8080", "200")),
        *(("evil.example:8080", "403"), ("", "403")),
    ):
        dashboard = Dashboard(finished, host)
        assert dashboard.ask("/api/studies")[0] == status, host
    assert [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "a.b")] == [
        *(True, True, True, False, False)
    ]


@pytest.mark.parametrize("name", ["", "0", "0-0-99", "0-7fffffff-0", "9-0-0", "0-0--1", "zz-0-0"])
def test_other_files_cannot_be_named(finished: Path, name: str) -> None:
    with pytest.raises(ArtifactNotFound):
        FolderArtifacts(StudiesView(finished).folder_of).open_reader(name)


def test_a_folder_shows_all_studies_below_it(tmp_path: Path, small: StudyFolder) -> None:
    dashboard = Dashboard(tmp_path)
    other = StudyFolder(tmp_path / "deep" / "er" / "other.study")
    other.create()
    other.write_settings({**small.read_settings(), "settings": {"model": "public:magika"}})
    other.journal.write_text("no journal\nat all\n")
    summaries = json.loads(dashboard.ask("/api/studies")[2])["study_summaries"]
    assert [(item["study_id"], item["study_name"]) for item in summaries] == [
        (0, "public:magika: deep/er/other.study"),
        (1, "net.onnx: small.study"),
    ]
    assert "is not an Optuna journal" in dashboard.study(0)["note"]["body"]
    assert dashboard.study(0)["trials"] == []
    with pytest.raises(UserInputError, match="No study in"):
        StudiesView(tmp_path / "nowhere").get_all_studies()


def test_the_page_has_our_script(finished: Path) -> None:
    dashboard = Dashboard(finished)
    status, headers, body = dashboard.ask("/dashboard/studies/0/trials")
    assert status == "200"
    assert int(headers["Content-Length"]) == len(body)
    assert body.count(b'<script src="/smart-tuner/page.js" defer>') == 1
    assert b"outcomes" in dashboard.ask("/smart-tuner/page.js")[2]


def test_a_port_that_is_taken(finished: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(EnvironmentNotFit, match=f"port {port}: .*--port"),
            serving(finished, "127.0.0.1", port),
        ):
            pass
    with (
        serving(finished, "127.0.0.1", None) as one,
        serving(finished, "127.0.0.1", None) as two,
    ):
        assert url_of(one) != url_of(two)
        assert url_of(one).startswith("http://127.0.0.1:")


def test_wrong_use_ends_at_once(tmp_path: Path) -> None:
    assert main(["dashboard", str(tmp_path)]) == 2
    assert main(["dashboard", str(tmp_path), "--port", "70000"]) == 2


def test_the_end_of_a_log(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == []
    path = tmp_path / "log"
    path.write_text("\n".join(map(str, range(10_000))))
    assert log_tail(path) == [str(number) for number in range(9975, 10_000)]
