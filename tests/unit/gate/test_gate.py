"""What a pipeline may rely on."""

import json
import math
import os
import stat
import statistics
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from smart_tuner.gate.facts import changes
from smart_tuner.gate.judge import TOLERANCE, Compared, against_runs
from smart_tuner.gate.measure import Round, SideBySide
from smart_tuner.gate.outcome import Answer, Comparison, GateOutcome
from smart_tuner.gate.tuning import teaches
from tests.unit.gate.pipelines import Pipeline


def test_the_first_run_tunes_and_archives_what_ships(begun: Pipeline) -> None:
    (entry,) = begun.entries()
    files = {str(path.relative_to(entry)) for path in entry.rglob("*") if path.is_file()}
    assert files >= {
        *("entry.json", "candidate/engine.json", "candidate/manifest.json"),
        *("default/engine.json", "study/report.md", "study/study.toml", "study/result.json"),
    }
    document = json.loads((entry / "entry.json").read_text())
    assert document["candidate"]["route"] == [["speed", "fast"]]
    assert {*document["files"], "entry.json"} == {
        name for name in files if not name.startswith("runs/")
    }


def test_nothing_changed_is_fast_and_passes(pipeline: Pipeline) -> None:
    code, outcome = pipeline.ci_json()
    assert code == 0
    assert outcome["answer"] == "passed"
    assert outcome["compared"] == "over default"
    assert outcome["due"] == []
    assert outcome["tuned"] == ""
    assert 0.97 < outcome["slowdown"]["value"] < 1.03
    assert len(pipeline.entries()) == 1


def test_a_slower_model_fails_until_it_is_accepted(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.write_model(milliseconds=2.2)
    page, report = tmp_path / "out" / "pr.md", tmp_path / "junit.xml"
    code, outcome = pipeline.ci_json("--markdown", page, "--junit", report)
    assert code == 1
    assert outcome["answer"] == "slower"
    assert outcome["compared"] == "artefacts"
    assert outcome["due"][0].startswith("files beside the model was")
    # The default at 2.2 ms ships here, and -speed=fast of a model of 2 ms was stored.
    assert outcome["slowdown"]["value"] == pytest.approx(1.1 * math.exp(0.4), rel=0.01)
    assert not outcome["accepted"]
    assert "Slower" in page.read_text()
    assert "--accept" in page.read_text()
    suite = ElementTree.parse(report).getroot()[0]
    assert suite.attrib["failures"] == "1"
    assert [case.attrib["name"] for case in suite] == ["accuracy", "performance"]

    # The same again: what was tuned is taken from the store, and compared with what passed.
    code, again = pipeline.ci_json()
    assert (code, again["answer"], again["due"]) == (1, "slower", [])
    code, accepted = pipeline.ci_json("--accept")
    assert (code, accepted["accepted"]) == (0, True)
    code, after = pipeline.ci_json()
    assert (code, after["compared_with"]) == (0, after["entry"])


def test_a_faster_model_passes_and_a_branch_changes_no_baseline(pipeline: Pipeline) -> None:
    (first,) = pipeline.entries()
    pipeline.write_model(milliseconds=1.0)
    code, outcome = pipeline.ci_json("--candidate")
    assert (code, outcome["answer"], outcome["accepted"]) == (0, "passed", False)
    assert outcome["compared_with"] == first.name
    begun = (pipeline.store / "entries" / outcome["entry"] / "study" / "study.toml").read_text()
    assert 'first = [\n    "-speed=fast",\n]' in begun
    assert "[prior]" in begun
    code, merged = pipeline.ci_json()
    assert (code, merged["accepted"], merged["compared_with"]) == (0, True, first.name)
    assert merged["tuned"] == ""


def test_another_shape_is_compared_with_nothing(pipeline: Pipeline) -> None:
    pipeline.was_accepted_with(shapes="default (weight 1): x:4x16")
    code, outcome = pipeline.ci_json()
    assert (code, outcome["answer"], outcome["accepted"]) == (0, "not compared", True)
    assert "shapes changed" in outcome["comparison"]


def test_a_new_runtime_is_judged_by_latency_once_enough_runs_are_known(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = pipeline.was_accepted_with(**{"backend version": "replay 0"}) / "runs"
    code, outcome = pipeline.ci_json("--no-archive")
    assert (code, outcome["answer"], outcome["compared"]) == (0, "not compared", "latency")
    assert outcome["sentence"] == (
        "Passed: nothing was judged; cannot tell 10 % yet: compare side by side with "
        "`--previous-python`, or store 3 more runs of the stored engine."
    )
    (run,) = runs.iterdir()
    known = json.loads(run.read_text())
    for number, factor in enumerate((0.99, 1.0, 1.01, 1.02)):
        figures = [figure * factor / 1.1 for figure in known["candidate_ms"]]
        text = json.dumps({**known, "candidate_ms": figures})
        (runs / f"{number}.json").write_text(text)
    run.unlink()
    now = statistics.median(known["candidate_ms"])
    for notes, expected in (((), (1, "slower")), (("Drift.", "Others computed."), (0, "unclear"))):
        rounds = (Round(0.0, now, now, notes),) * 3
        monkeypatch.setattr(SideBySide, "rounds", lambda *_, rounds=rounds: rounds)
        code, outcome = pipeline.ci_json("--no-archive")
        assert (code, outcome["answer"]) == expected
        assert outcome["compared"] == "latency"
        assert "4 earlier runs" in outcome["comparison"]
    # A busy machine slows both engines alike, but milliseconds do not say whose fault they are.
    assert "3 of 3 rounds were disturbed: Others computed; repeat it" in outcome["sentence"]


def test_an_answer_that_could_have_missed_ten_percent_says_so() -> None:
    def said(before_ms: list[float]) -> str:
        found = against_runs(before_ms, 1.0)
        compared = Comparison(Compared.LATENCY, "e", "", found, advice="store 2 more runs")
        return GateOutcome(Answer.UNCLEAR, "m", (), TOLERANCE, comparison=compared).sentence

    noisy = said([0.97, 1.03, 0.98, 1.02, 0.96, 1.04])
    assert noisy.endswith("be excluded; cannot tell 10 % at this noise: store 2 more runs.")
    assert said([0.99, 1.01, 0.99, 1.01, 0.99, 1.01]).endswith("3 % cannot be excluded.")


def test_an_engine_that_no_longer_keeps_epsilon_stops_the_pipeline(pipeline: Pipeline) -> None:
    entry = pipeline.entries()[0]
    document = json.loads((entry / "entry.json").read_text())
    document["candidate"]["route"] = [["grave", "yes"]]
    (entry / "entry.json").write_text(json.dumps(document))
    code, outcome = pipeline.ci_json()
    assert (code, outcome["answer"]) == (1, "broken")
    assert "does not work here" in outcome["sentence"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store_is_refused_before_anything_is_tuned(pipeline: Pipeline) -> None:
    pipeline.store.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        ended = pipeline.ci()
    finally:
        pipeline.store.chmod(stat.S_IRWXU)
    assert (ended.code, len(ended.err.splitlines())) == (3, 1)
    assert "read-only" in ended.err


@pytest.mark.parametrize(
    ("harm", "code", "words"),
    [
        ("gone", 2, ("No store in", "--init")),
        ("newer", 2, ("newer smart_tuner", "upgrade")),
        ("engine", 2, ("was changed", "nothing of it is loaded")),
        ("manifest", 2, ("is damaged", "restore it")),
        ("model", 2, ("model.onnx",)),
        ("foreign", 2, ("is no store",)),
    ],
)
def test_bad_input_is_one_line(
    pipeline: Pipeline, harm: str, code: int, words: tuple[str, ...]
) -> None:
    entry = pipeline.entries()[0]
    if harm == "gone":
        pipeline = Pipeline(pipeline.folder)
        pipeline.store.rename(pipeline.folder / "elsewhere")
    elif harm == "newer":
        (pipeline.store / "store.json").write_text('{"schema_version": 99}')
    elif harm == "engine":
        with (entry / "candidate" / "engine.json").open("a") as file:
            file.write(" ")
    elif harm == "manifest":
        (entry / "entry.json").write_text("{")
    elif harm == "model":
        pipeline.model.unlink()
    else:
        (pipeline.store / "store.json").unlink()
    ended = pipeline.ci()
    assert ended.code == code
    assert len(ended.err.splitlines()) == 1
    assert all(word in ended.err for word in words), ended.err


def test_a_dry_run_says_what_is_due_and_writes_nothing(pipeline: Pipeline) -> None:
    before = sorted(pipeline.store.rglob("*"))
    assert pipeline.ci("--dry-run").out.strip() == "Nothing changed: retuning is not due."
    pipeline.write_model(milliseconds=3.0)
    ended = pipeline.ci("--dry-run")
    assert ended.code == 0
    assert ended.out.startswith("Retuning is due:\n  files beside the model was ")
    assert sorted(pipeline.store.rglob("*")) == before


def test_changes_are_named_with_both_values() -> None:
    before = {"driver": "550.54", "model": "a" * 64, "gone": "x"}
    now = {"driver": "560.28", "model": "b" * 64}
    assert changes(before, now) == (
        "driver was 550.54, is 560.28",
        "gone was x, is not there",
        f"model was {'a' * 12}, is {'b' * 12}",
    )


def test_a_study_that_tried_only_the_default_is_no_prior(pipeline: Pipeline) -> None:
    study = pipeline.entries()[0] / "study"
    assert teaches(study)
    trials = study / "trials.jsonl"
    trials.write_text(trials.read_text().splitlines()[0] + "\n")
    assert not teaches(study)
