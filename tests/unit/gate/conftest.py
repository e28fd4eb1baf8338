from pathlib import Path

import pytest

from tests.conftest import MakeOnce
from tests.unit.gate.pipelines import Pipeline


def be_brief(patch: pytest.MonkeyPatch) -> None:
    """Pretended latencies are the same from the first one on, and few builds will do."""
    patch.setattr("smart_tuner.measure.blocks.CAP_FACTOR", 0.1)
    patch.setattr("smart_tuner.study.proof.fresh.PAIRS", (4, 4))
    patch.setattr("smart_tuner.study.proof.finalists.SHORTLIST", 1)
    patch.setattr("smart_tuner.study.proof.finalists.REPORT_ROUNDS", 2)
    patch.setattr("smart_tuner.gate.run.PAIRS", 2)


@pytest.fixture(autouse=True)
def _here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    be_brief(monkeypatch)


def begin(folder: Path) -> None:
    pipeline = Pipeline(folder)
    pipeline.write_model()
    with pytest.MonkeyPatch.context() as patch:
        be_brief(patch)
        ended = pipeline.run("--trials", 3, "--sampler", "fast", "--init")
        assert ended.code == 0, ended.err


@pytest.fixture(scope="session")
def begun(make_once: MakeOnce) -> Pipeline:
    """A pipeline after its first run; nothing in it may be changed."""
    return Pipeline(make_once("pipeline", begin))


@pytest.fixture
def pipeline(begun: Pipeline, tmp_path: Path) -> Pipeline:
    """A copy of it, to do with as a test likes."""
    return begun.copy(tmp_path / "pipeline")
