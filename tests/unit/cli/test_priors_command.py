"""``smart-tuner priors``, as people call it."""

import json
from pathlib import Path

import pytest

from smart_tuner.priors.files import read_prior, write_prior
from tests.unit.cli.calling import call
from tests.unit.priors.planting import Special, prior, study

GOLDEN = Path(__file__).parents[2] / "golden"
STUDIES = Path(__file__).parents[3] / "studies"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four studies that agree on two values and warn of a third."""
    path = tmp_path_factory.mktemp("priors") / "four.prior.toml"
    effects = {"k1": -0.1, "k2": -0.06, "k3": 0.3}
    studies = [study(f"s{n}", effects, Special(("k9",)), seed=n, trials=120) for n in range(4)]
    write_prior(path, prior(*studies))
    return path


def test_a_page_says_what_to_try_first_and_what_to_leave(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert call("priors", "page", file, "--out", page).code == 0
    text = page.read_text()
    first = text.split("## Try these first")[1].split("## ")[0]
    assert first.index("| `k1=on`") < first.index("| `k2=on`")
    assert "`k3=on`" in text.split("## Better left alone")[1].split("## ")[0]
    assert "`k9=on`" in text.split("## Probably break")[1].split("## ")[0]
    evidence = text.split("## Studies")[1]
    assert [f"| s{n} | 2026-11-01 |" in evidence for n in range(4)] == [True] * 4
    assert "It is a place to begin, not a result" in " ".join(text.split())
    assert call("priors", "page", file, "--out", page).code == 2


def test_show_lists_what_promises_most_first(file: Path) -> None:
    rows = json.loads(call("priors", "show", file, "--json").out)
    assert [row["knob"] for row in rows[:2]] == ["k1", "k2"]
    assert rows[0]["matters"] > 0.9
    assert rows[0]["chance_faster"] > 0.7 > 0.3 > rows[0]["chance_slower"]
    out = call("priors", "show", file).out
    assert out.split("fails")[0].split()[-6:] == ["faster", "by", "slower", "by", "no", "change"]
    assert "k1=on" in out
    assert "and 10 more values; --json has all of them" in out


def test_priors_are_built_of_everything(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.prior.toml"
    kept = STUDIES / "onnxruntime-cpu" / "xeon-4"
    words = (kept / "magika", file, GOLDEN / "trtexec-fast.jsonl", "--out", out)
    ended = call("priors", "build", *words, "--notes", "for [you]")
    assert ended.code == 0, ended.err
    made = read_prior(out)
    assert [entry.source for entry in made.studies] == ["study"] * 5 + ["trtexec"]
    assert made.studies[0].name == "xeon-4/magika"
    assert made.notes == "for [you]"
    assert "6 studies" in ended.out
    assert call("priors", "build", file, "--out", out).code == 2


def test_a_check_compares_with_todays_knobs(file: Path) -> None:
    ended = call("priors", "check", file, "--database", "tensorrt-2.19.45")
    assert ended.code == 1
    assert "left out" in ended.out
    assert "says nothing of 209 knobs that are there today" in ended.out
    shipped = STUDIES / "priors" / "onnxruntime-cpu.prior.toml"
    told = json.loads(call("priors", "check", shipped, "--json").out)
    assert told["known"] > 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fold", "x"), "No action 'fold'"),
        (("build", "x"), "--out NAME.prior.toml"),
        (("show",), "needs at least one SOURCE"),
        (("show", "nowhere"), "Cannot read the prior nowhere"),
        (("build", "/", "--out", "x.txt"), "--out NAME.prior.toml"),
    ],
)
def test_wrong_use_is_one_line(words: tuple[str, ...], said: str) -> None:
    ended = call("priors", *words)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_the_schema_can_be_had() -> None:
    assert json.loads(call("priors", "schema").out)["title"] == "smart_tuner prior file"


def test_knobs_say_what_is_unlikely_to_act() -> None:
    words = ("knobs", "mha_fusion:v2:flash", "--database", "tensorrt-2.19.45")
    assert "unlikely to act" not in call(*words).out
    ended = call(*words, "--model", "public:squeezenet")
    assert "[unlikely to act: concerns attention" in " ".join(ended.out.split())
