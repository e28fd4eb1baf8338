"""What ``smart_tuner.tune`` returns can be looked at: a table of trials, and pictures."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

import smart_tuner
from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.report.pictures import PICTURES
from smart_tuner.report.reading import read_study
from smart_tuner.report.tuned import TuneResult
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.proof.result import read_result
from smart_tuner.study.setup.settings import make_settings
from tests.studies_for_viewing import Kind, make_study, small_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeOnce

PLOTS = sorted(name for name in dir(TuneResult) if name.startswith("plot_"))


def result_of(root: Path) -> TuneResult:
    kept = read_result(root / "result.json")
    return TuneResult(**{item.name: getattr(kept, item.name) for item in fields(kept)})


@pytest.fixture(scope="module")
def finished(make_once: MakeOnce) -> TuneResult:
    place = make_once("tuned-finished", lambda folder: make_study(Kind.FINISHED, folder))
    return result_of(place / "finished.study")


def test_tuning_returns_it(tmp_path: Path) -> None:
    model = write_simulated_model(tmp_path, small_compiler(), name="m", seed=1)
    asked = {"model": model, "backend": "replay", "metric": "linf", "epsilon": "0.001"}
    place = tmp_path / "s"
    result = smart_tuner.tune(
        make_settings({**asked, "budget": "60s", "trials": 2, "study": place, "seed": 1})
    )
    assert isinstance(result, smart_tuner.TuneResult)
    assert result.to_json() == read_result(place / "result.json").to_json()
    assert list(result.to_dataframe()["number"]) == [0, 1]
    assert result.plot_history().layout.title.text == "Gain of each trial, with the best so far"


def test_the_table_has_a_row_a_trial(finished: TuneResult) -> None:
    table = finished.to_dataframe()
    records = read_study(finished.study).records
    assert list(table["number"]) == [record.number for record in records]
    assert list(table["route"]) == [str(record.route) for record in records]
    assert set(table["outcome"]) > {"feasible", "infeasible", "build_failed"}
    turned = {name for record in records for name, _ in record.route.settings}
    assert {name for name in table.columns if name.startswith("knob.")} == {
        f"knob.{name}" for name in turned
    }
    one = table.set_index("number").loc[records[2].number]
    assert all(one[f"knob.{name}"] == value for name, value in records[2].route.settings)
    measured = table[table["gain"].notna()]
    assert (measured["gain"] * measured["latency_ms"]).round(6).nunique() == 1
    assert (table["seconds"] >= 0).all()


def test_without_pandas_the_remedy_is_named(
    finished: TuneResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(EnvironmentNotFit, match="pip install pandas"):
        finished.to_dataframe()


@pytest.mark.parametrize("name", PLOTS)
def test_every_picture_has_data_and_a_title(finished: TuneResult, name: str) -> None:
    figure = getattr(finished, name)()
    assert figure.layout.title.text
    assert len(figure.data) > 0


def test_there_is_a_method_for_each_picture() -> None:
    assert len(PLOTS) == len(PICTURES)


def test_a_picture_without_data_says_why(tmp_path: Path) -> None:
    result = result_of(make_study(Kind.ONE_TRIAL, tmp_path).root)
    assert len(result.plot_confirmation().data) == 0
    (said,) = result.plot_confirmation().layout.annotations
    assert said.text
    for name in PLOTS:
        figure = getattr(result, name)()
        assert figure.data or figure.layout.annotations[0].text
