from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.report.export.winner import read_winner
from smart_tuner.study.apply import apply_route
from smart_tuner.study.progress.events import silent
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.setup.plan import make_plan
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.study.tune import tune
from smart_tuner.study.verify import verify
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.precision.networks import inputs_of, mixed_network, outputs_of, saved

if TYPE_CHECKING:
    import onnxruntime

    from smart_tuner.study.setup.settings import StudySettings

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _briefly(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr("smart_tuner.measure.blocks.CAP_FACTOR", 0.1)
    monkeypatch.setattr("smart_tuner.study.proof.fresh.PAIRS", (4, 4))
    monkeypatch.setattr("smart_tuner.study.proof.finalists.SHORTLIST", 1)
    monkeypatch.setattr("smart_tuner.study.proof.finalists.REPORT_ROUNDS", 2)
    monkeypatch.setattr("smart_tuner.study.proof.confirm.SUSTAINED_BLOCK_SECONDS", 0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A network with two pairs of inputs."""
    saved(mixed_network(), tmp_path / "mixed.onnx")
    for seed in (0, 2):
        arrays: dict[str, Any] = inputs_of(seed)
        np.savez(tmp_path / f"{seed}.npz", **arrays)
    return tmp_path


def settings_for(folder: Path, **changes: Any) -> StudySettings:
    return make_settings(
        {
            "model": folder / "mixed.onnx",
            "study": folder / "study",
            "backend": "paced_backend:PacedBackend",
            "inputs": [str(folder / "0.npz"), str(folder / "2.npz")],
            "metric": "linf",
            "epsilon": "1",
            "regions": "per-layer",
            "precisions": "int8",
            "only": "precision.*",
            "seed": 1,
            **changes,
        }
    )


def test_a_study_finds_the_regions_that_pay_and_ships_the_rewritten_network(folder: Path) -> None:
    study = folder / "study"
    parts = ("stem=stem/*", "body=body/*", "head=head/*")
    result = tune(settings_for(folder, regions=parts, trials=5, budget="10m"))
    tried = [(study / "trials" / str(n) / "route.txt").read_text().strip() for n in range(5)]
    alone = [f"-precision.{name}=int8" for name in ("stem", "body", "head")]
    assert tried[0] == ""
    assert set(tried[1].split()) == set(alone)
    assert tried[2:] == alone
    assert result.verdict is Verdict.WINNER
    assert set(result.route.split()) == set(alone[:2])  # the head saves no time
    assert result.route_gain is not None
    assert result.route_gain.value == pytest.approx(0.9**-3, rel=0.01)
    _check_shipped(folder)
    verified = verify(study, silent, rounds=2)
    assert verified.holds
    assert verified.agrees


def _check_shipped(folder: Path) -> None:
    winner = folder / "study" / "winner"
    manifest = json.loads((winner / "manifest.json").read_text())
    assert {"engine.json", "load_winner.py", "model.onnx"} == set(manifest["files"])
    moved = shutil.copytree(winner, folder / "elsewhere")
    shipped = onnx.load(moved / "model.onnx").graph
    assert sum(node.op_type == "QuantizeLinear" for node in shipped.node) >= 3
    scope: dict[str, Any] = {"__file__": str(moved / "load_winner.py")}
    exec(compile((moved / "load_winner.py").read_text(), "load_winner.py", "exec"), scope)
    session: onnxruntime.InferenceSession = scope["load"]()
    found = dict(
        zip([o.name for o in session.get_outputs()], session.run(None, inputs_of(6)), strict=True)
    )
    wanted = outputs_of(folder / "mixed.onnx", inputs_of(6))
    np.testing.assert_allclose(found["probabilities"], wanted["probabilities"], atol=0.15)
    exported = read_winner(folder / "study")
    assert exported.model == winner / "model.onnx"
    assert exported.settings == {}


def test_a_route_that_keeps_every_region_is_the_default(folder: Path) -> None:
    trial = apply_route(settings_for(folder), "-precision.stem/conv=keep", silent)
    assert trial.unchanged
    assert trial.outcome is TrialOutcome.FEASIBLE


def test_losses_of_lowered_regions_decide_as_any_others(folder: Path) -> None:
    settings = settings_for(folder, epsilon="1e-6")
    trial = apply_route(settings, "-precision.body/conv=int8", silent, folder / "out")
    assert trial.outcome is TrialOutcome.INFEASIBLE
    assert any(1e-6 < loss.loss < 0.5 for loss in trial.losses)
    assert {path.name for path in (folder / "out").iterdir()} >= {"engine.json", "model.onnx"}


def test_a_base_may_have_lowered_regions_itself(folder: Path) -> None:
    base = folder / "base.toml"
    base.write_text('"precision.stem/conv" = "int8"\n')
    settings = settings_for(folder, base=base)
    trial = apply_route(settings, "-precision.body/conv=int8", silent)
    assert trial.outcome is TrialOutcome.FEASIBLE
    (comparison,) = trial.comparisons
    assert comparison.gain == pytest.approx(1 / 0.9, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": []}, "int8 takes its scales from reference inputs, and there are none"),
        ({"regions": []}, "name the regions, as --regions auto"),
        ({"regions": "mood/*"}, "matches nothing"),
        ({"precisions": "fp8"}, "does not take it; it takes fp16, int8, int8_dynamic"),
        ({"precisions": "int8,int9"}, "int9: onnxruntime on this processor knows no such"),
        ({"calibration": "best"}, "calibration: Input should be 'minmax', 'entropy'"),
        ({"backend": "replay"}, "backend replay does not take models in another precision"),
    ],
    ids=["inputs", "regions", "pattern", "type", "word", "calibration", "backend"],
)
def test_wrong_use_is_one_line(folder: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserInputError, match=said) as caught:
        make_plan(settings_for(folder, **changes))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_without_inputs_only_what_needs_none_is_searched(folder: Path) -> None:
    plan = make_plan(settings_for(folder, inputs=[], precisions=[]))
    assert plan.precision is not None
    assert plan.precision.values == {"int8_dynamic"}
    assert any("give --inputs" in note for note in plan.notes)


def test_knobs_of_quantized_networks_are_no_longer_idle(folder: Path) -> None:
    backend = "onnxruntime"
    lowered = make_plan(settings_for(folder, only=[], backend=backend))
    plain = make_plan(settings_for(folder, only=[], backend=backend, regions=[], precisions=[]))
    idle = [{knob.name for knob in plan.database if knob.idle} for plan in (plain, lowered)]
    assert "session:x64quantprecision" in idle[0] - idle[1]


def test_regions_that_changed_stop_a_study_from_going_on(folder: Path) -> None:
    first = make_plan(settings_for(folder))
    assert make_plan(settings_for(folder)).identity == first.identity
    for changes in ({"regions": "2"}, {"calibration": "entropy"}):
        assert make_plan(settings_for(folder, **changes)).identity != first.identity
