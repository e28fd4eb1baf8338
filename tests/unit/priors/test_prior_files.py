"""A prior file is read strictly, whoever wrote it, and written so that people can read it."""

import json
import os
from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.document import Prior
from smart_tuner.priors.files import (
    MAX_BYTES,
    prior_digest,
    prior_schema,
    prior_text,
    read_prior,
    write_prior,
)
from smart_tuner.priors.sources import observe_study
from tests.unit.priors.planting import Special, prior, study

ONE = prior(study("one", {"k1": -0.1, "k2": 0.05}, Special(broken=("k3",)), trials=40))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.prior.toml"
    write_prior(path, ONE)
    return path


def edited(path: Path, before: str, after: str) -> Path:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, -1 if before == "knobs.k39" else 1))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UserInputError) as caught:
        read_prior(path)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


def test_what_is_written_is_read_back(file: Path, tmp_path: Path) -> None:
    assert read_prior(file) == ONE
    as_json = tmp_path / "one.json"
    as_json.write_text(ONE.model_dump_json())
    assert read_prior(as_json) == ONE
    assert prior_digest(read_prior(as_json)) == prior_digest(ONE)


def test_each_study_has_one_line_under_each_value() -> None:
    lines = [line for line in prior_text(ONE).splitlines() if line.startswith("one = {tried")]
    assert len(lines) == sum(len(knob.values) for knob in ONE.knobs.values())


def test_people_may_edit_it(file: Path) -> None:
    edited(
        file, 'default = "off"\nnotes = ""', 'default = "off"\nnotes = "we use [this]\\nevery day"'
    )
    text = file.read_text().replace("failure = 0.", "failure=0.", 1)
    file.write_text(text + "\n# a last remark\n")
    assert any(knob.notes.startswith("we use") for knob in read_prior(file).knobs.values())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("schema_version = 1", "schema_version = 2", "newer smart_tuner"),
        ('kind = "smart_tuner prior"', 'kind = "other"', "no prior file"),
        ("trials = ", "trials = nan # ", "studies.0.trials"),
        ("active = ", "active = nan, x = ", "knobs."),
        ("active = ", "active = inf, x = ", "knobs."),
        ("active = 0", "active = 7", "less than or equal to 1"),
        ("measured = ", "measured = 9", "evidence.one"),
        ("tried = ", "tried = -", "greater than or equal to 0"),
        ("knobs.k39", "knobs.'../.. /etc'", "holds white space"),
        ("knobs.k39", "knobs.'a=b'", "name holds '='"),
        ("\none = {", "\ntwo = {", "study two, which is not listed"),
        ('id = "one"', 'id = "../one"', "studies.0.id"),
        ('notes = "', 'notes = "\\u001b[2J', "control character"),
        ("notes = ", "surprise = 1\nnotes = ", "surprise"),
        ("[[studies]]", "[[studies", "line"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    file: Path, before: str, after: str, said: str
) -> None:
    assert said in refusal(edited(file, before, after))


def test_hostile_files_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.prior.toml"
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    assert "over 16 MiB" in refusal(path)
    path.write_bytes(b"\xff\xfe\x00")
    assert "not text" in refusal(path)
    path.write_text("a = " + "[" * 100_000)
    assert "bad.prior.toml" in refusal(path)
    path.write_text("")
    assert "no prior file" in refusal(path)
    assert "no file" in refusal(tmp_path)
    assert "Cannot read" in refusal(tmp_path / "nowhere")
    assert "Cannot read" in refusal(Path("nul\0byte"))
    os.mkfifo(tmp_path / "pipe")
    assert "no file" in refusal(tmp_path / "pipe")
    assert "no file" in refusal(Path("/dev/zero"))
    many = {"id": "s", "name": "s"}
    path = tmp_path / "many.json"
    path.write_text(
        json.dumps({"kind": "smart_tuner prior", "schema_version": 1, "studies": [many] * 1000})
    )
    assert "studies" in refusal(path)
    path.write_text('{"kind": "smart_tuner prior", "studies": [], "knobs": NaN}')
    assert "knobs" in refusal(path)


def test_the_shipped_schema_is_that_of_the_reader() -> None:
    schema = prior_schema()
    dialect = schema.pop("$schema")
    assert dialect.endswith("2020-12/schema")
    assert schema == Prior.model_json_schema()


def test_it_keeps_what_effects_are_relative_to(tmp_path: Path) -> None:
    kept = Path(__file__).parents[3] / "studies" / "onnxruntime-cpu" / "xeon-4" / "densenet121"
    made = build_prior([observe_study(kept)])
    baseline = made.studies[0].baseline
    assert baseline.latency_ms == pytest.approx(27.97, abs=0.01)
    assert (baseline.values, baseline.processors) == ({"threads:intra": "4"}, "4")
    assert 0.001 < baseline.half_width < 0.2
    path = tmp_path / "one.prior.toml"
    write_prior(path, made)
    assert read_prior(path) == made


@pytest.mark.parametrize("before", ["model = ", "device = ", "metric = "])
def test_a_study_edited_by_hand_still_teaches(tmp_path: Path, before: str) -> None:
    """A control character in what it says of itself is no reason to lose its trials."""
    kept = Path(__file__).parents[3] / "studies" / "onnxruntime-cpu" / "xeon-4" / "densenet121"
    for name in ("study.toml", "trials.jsonl"):
        (tmp_path / name).write_bytes((kept / name).read_bytes())
    edited(tmp_path / "study.toml", f'\n{before}"', f'\n{before}"\\t')
    found = observe_study(tmp_path)
    assert len(found.trials) == len(observe_study(kept).trials)
    assert "\t" not in prior_text(build_prior([found]))


def test_a_file_without_what_effects_are_relative_to_stays_the_same(file: Path) -> None:
    text = file.read_text()
    assert "half_width" not in text
    assert prior_text(read_prior(file)) == text
