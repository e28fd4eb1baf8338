"""How far past studies are believed, which are found, and what of them fits."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.priors.check import check_prior_against
from smart_tuner.priors.distance import Target, nearness, operator_overlap
from smart_tuner.priors.document import Network
from smart_tuner.priors.files import write_prior
from smart_tuner.priors.gather import AUTO, check_asked, gather
from smart_tuner.priors.neighbours import nearest_networks
from smart_tuner.priors.use import believe, weigh
from tests.unit.priors.planting import SPACE, entry, prior, study

HERE = Target(
    backend="onnxruntime",
    tuner_version="onnxruntime 1.32.0",
    device="Some CPU",
    metric="l0",
    epsilon="0.001",
    network=Network(operators={"Conv": 8, "Relu": 2}, size_bytes=1_000_000),
    today=datetime.date(2026, 11, 11),
)


STUDIES = Path(__file__).resolve().parents[3] / "studies" / "onnxruntime-cpu"


def test_a_study_like_this_one_counts_nearly_whole() -> None:
    near = nearness(entry("x"), HERE)
    assert near.weight > 0.95
    assert near.sentence == (
        f"used {near.weight:.2f} of study x: same processor, 100 % operator overlap, "
        "same tuner version, 10 days old"
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"device": "Some other CPU"}, "another processor of one maker (Some other CPU)"),
        ({"device": "NVIDIA H200"}, "another device (NVIDIA H200)"),
        ({"device": ""}, "device is not known"),
        ({"tuner_version": "onnxruntime 1.32.1"}, "another tuner version (onnxruntime 1.32.1)"),
        ({"tuner_version": "onnxruntime 1.23.0"}, "another tuner version"),
        ({"network": Network(operators={"MatMul": 1})}, "0 % operator overlap"),
        ({"network": Network()}, "network is not known"),
        ({"objective": "compute"}, "measured compute, not end_to_end"),
        ({"created": "2020-01-01"}, "2506 days old"),
        ({"created": "last summer"}, "date is not known"),
        ({"source": "trtexec"}, "made by trtexec"),
    ],
)
def test_each_difference_takes_weight_and_has_its_phrase(
    facts: dict[str, object], said: str
) -> None:
    near = nearness(entry("x", **facts), HERE)
    assert 0.05 < near.weight < nearness(entry("x"), HERE).weight
    assert said in near.sentence


def test_another_backend_is_not_used_at_all() -> None:
    near = nearness(entry("x", backend="tensorrt"), HERE)
    assert near.weight == 0
    assert near.sentence == "did not use study x: made with tensorrt, not onnxruntime"


def test_nearest_networks_are_those_with_the_largest_overlap() -> None:
    networks = [{"MatMul": 5}, {"Conv": 7, "Relu": 3}, {}, {"Conv": 4, "MatMul": 4, "Shape": 90}]
    found = nearest_networks(networks, HERE.network.operators, 5)
    assert [place for place, _ in found] == [1, 3, 0]
    for place, overlap in found:
        expected = operator_overlap(networks[place], HERE.network.operators)
        assert overlap == pytest.approx(expected)


def test_what_does_not_fit_is_dropped_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.prior.toml"
    write_prior(path, prior(study("x", {"k1": -0.1, "k2": -0.1, "k3": -0.1})))
    choices = {name: values for name, values in SPACE.items() if name != "k1"}
    choices |= {"k2": ("on", "off"), "k3": ("off", "auto")}
    found = gather([str(path)], HERE, choices)
    notes = " ".join(found.notes)
    assert "left out what is not searched here, 1 knob: k1" in notes
    assert "left out what is not offered here, 1 value: k3=on" in notes
    assert "k2 has the default on here and had off there" in notes
    said = believe(found.prior, weigh(found.prior, HERE)).beliefs.values
    assert not {"k1", "k2", "k3"} & {name for name, _ in said}


def test_auto_takes_the_nearest_studies_of_a_folder(tmp_path: Path) -> None:
    for number in range(7):
        device = "NVIDIA H200" if number == 3 else "Some CPU"
        made = prior(study(f"s{number}", {"k1": -0.1}, seed=number, trials=20, device=device))
        write_prior(tmp_path / f"{number}.prior.toml", made)
    (tmp_path / "broken.prior.toml").write_text("kind = 3")
    found = gather([AUTO], HERE, SPACE, folders=(tmp_path, tmp_path))
    names = [item.name for item in found.prior.studies]
    assert len(names) == 5
    assert "s3" not in names
    empty = gather([AUTO], HERE, SPACE, folders=(tmp_path / "none",))
    assert not empty.prior.studies
    assert "no study in" in empty.notes[0]
    other = replace(HERE, backend="tensorrt")
    assert not gather([str(tmp_path)], other, SPACE).prior.studies


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    check_asked([AUTO, str(tmp_path)])
    with pytest.raises(UserInputError, match="Cannot read the prior"):
        check_asked([str(tmp_path / "nowhere.prior.toml")])


def test_a_study_that_tried_nothing_is_left_out_beside_others(tmp_path: Path) -> None:
    kept, empty = min(STUDIES.glob("*/*/study.toml")).parent, tmp_path / "empty.study"
    empty.mkdir()
    (empty / "study.toml").write_bytes((kept / "study.toml").read_bytes())
    baseline = (kept / "trials.jsonl").read_text("utf-8").splitlines()[0]
    (empty / "trials.jsonl").write_text(f"{baseline}\n", encoding="utf-8")
    check_asked([str(empty), str(kept)])
    found = gather([str(empty), str(kept)], HERE, SPACE)
    assert len(found.prior.studies) == 1
    assert any("tried nothing but the default" in note for note in found.notes)
    with pytest.raises(UserInputError, match="nothing but the default"):
        check_asked([str(empty)])


def test_violations_under_another_limit_count_half(tmp_path: Path) -> None:
    path = tmp_path / "x.prior.toml"
    made = prior(study("x", {}))
    write_prior(path, made)
    loose = gather([str(path)], replace(HERE, epsilon="0.1"), SPACE).prior
    for name, knob in made.knobs.items():
        before = knob.values["on"].evidence["x"].violation or 0.0
        assert loose.knobs[name].values["on"].evidence["x"].violation == before / 2


def test_a_check_lists_what_is_unknown_and_what_changed() -> None:
    made = prior(study("x", {"k1": -0.1}))
    known = [Knob(name, values, values[0]) for name, values in SPACE.items()]
    assert check_prior_against(made, KnobDatabase(tuple(known), "onnxruntime 1.32.0")).fits
    moved = [Knob("k1", ("off", "on"), "on"), Knob("new", ("a", "b"), "a"), *known[3:]]
    found = check_prior_against(made, KnobDatabase(tuple(moved), "onnxruntime 1.40.0"))
    assert not found.fits
    assert set(found.changes.unknown_knobs) == {"k0", "k2"}
    assert found.changes.new_defaults == (("k1", "off", "on"),)
    assert found.silent == ("new",)
    assert found.versions == ("onnxruntime 1.32.0",)
