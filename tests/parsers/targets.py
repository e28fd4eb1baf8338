"""Every parser of what others may have written, with a valid sample of its food."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.gate.documents import Entry, Run, parse_document
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import read_database
from smart_tuner.model.shapes import parse_shapes
from smart_tuner.model.synthetic import parse_ranges
from smart_tuner.model.toml import read_toml
from smart_tuner.model.workload_file import read_workload_file
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.files import prior_text, read_prior
from smart_tuner.priors.foreign import observe_cache
from smart_tuner.priors.sources import observe_study
from smart_tuner.report.export.sums import read_sums
from smart_tuner.route.expression import parse_expression
from smart_tuner.route.parse import parse_route
from smart_tuner.storages.tuning_cache import read_tuning_cache
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.proof.manifest import parse_manifest
from smart_tuner.study.proof.result import read_result
from smart_tuner.study.search.first import route_values
from smart_tuner.study.setup.base import read_base
from smart_tuner.study.setup.settings import command_line, make_settings
from smart_tuner.trial.record import trial_from_json
from smart_tuner.validate.asked import parse_epsilons, parse_metrics
from smart_tuner.validate.constraint import constraint_from_json
from tests.parsers.mutants import json_files, spliced, texts, toml_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
STUDY = ROOT / "studies" / "onnxruntime-cpu" / "epyc-2" / "silero-vad"
DIGEST = "0" * 64
DATABASE = KnobDatabase(
    (
        Knob("a", ("0", "1", "b"), "0"),
        Knob("open", ("int",), "4", is_open=True),
        Knob("scope:c.d", ("on", "off"), "off"),
    ),
    "1.0",
)
ARTEFACT = {
    "folder": "candidate",
    "file": "engine.json",
    "route": [["a", "1"]],
    "fingerprint": DIGEST,
    "size_bytes": None,
}
ENTRY = {
    "schema_version": 1,
    "id": "m-1",
    "name": "m",
    "created": "2026-12-01T00:00:00",
    "key": "0" * 16,
    "facts": {"device": "x"},
    "sentence": "s",
    "candidate": ARTEFACT,
    "default": ARTEFACT,
    "base": {"a": "0"},
    "accuracy": {"metric": "l0"},
    "sources": {"m.onnx": DIGEST},
    "model_file": "m.onnx",
    "provisional": True,
    "files": {"candidate/engine.json": DIGEST},
}
RUN = {
    "schema_version": 1,
    "created": "2026-12-01T00:00:00",
    "accepted": True,
    "regression": False,
    "sentence": "s",
    "over_default": [0.1],
    "candidate_ms": [1.0],
}
MANIFEST = {
    "schema_version": 1,
    "model": {"path": "m.onnx", "sha256": DIGEST},
    "route": "-a=1",
    "engine": {
        "file": "engine.json",
        "fingerprint": DIGEST,
        "size_bytes": 3,
        "timing_cache": None,
    },
    "base": {},
    "files": {"engine.json": DIGEST},
    "platform": {"device": "x"},
    "gain": {"route_gain": {"value": 1.1, "low": 1.0, "high": 1.2, "samples": 5}},
    "losses": [],
    "limits": [],
}
RESULT = {
    "verdict": "winner",
    "sentence": "s",
    "route": "-a=1",
    "min_gain": 1.01,
    "max_regression": 0.05,
    "route_gain": None,
    "engine_gain": None,
    "sustained_gain": None,
    "bare_gain": {"value": 1.1, "low": 1.0, "high": "inf", "samples": 1},
    "indicative": False,
    "provisional": True,
    "trials": {"feasible": 3},
    "notes": ["n"],
    "spent_seconds": 1.0,
}
WORKLOAD = {"point": [{"name": "p", "weight": 1.0, "shapes": {"x": [1, 3]}}]}


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes:
        food: Changed and broken versions of what it reads.
        read: Feeds it; gets the food and a folder of its own.
    """

    food: st.SearchStrategy[Any]
    read: Callable[[Any, Path], object]


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def run(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return run


def _study(path: Path) -> object:
    document = StudyFolder(path.parent).read_settings()
    command_line(document["settings"], path.parent)
    constraint = constraint_from_json(document["accuracy"])
    return make_settings({**document["settings"], "seed": document["seed"]}), constraint


def _kept_trials(path: Path) -> object:
    (path.parent / "study.toml").write_bytes((STUDY / "study.toml").read_bytes())
    return observe_study(path.parent)


def _kept_study(path: Path) -> object:
    (path.parent / "trials.jsonl").write_bytes((STUDY / "trials.jsonl").read_bytes())
    return observe_study(path.parent)


def _prior() -> bytes:
    return prior_text(build_prior([observe_study(STUDY)])).encode()


def _document(path: Path) -> dict[str, Any]:
    return read_toml(path, "sample")


def targets() -> dict[str, Target]:
    """All parsers by name."""
    settings = _document(STUDY / "study.toml")
    prior = _prior()
    knobs = json.loads((GOLDEN / "knob_database-v1.json").read_text())
    routes = json.loads((GOLDEN / "all_build_routes-odd.json").read_text())
    expression = "-a=[0|1|b] -open=[1|2] -scope:c.d=on"
    decoded = {"knobs": knobs, "routes": routes}
    return {
        "expression": Target(texts(expression), lambda t, _: parse_expression(t, DATABASE)),
        "route": Target(texts("-a=1 -open=7"), lambda t, _: parse_route(t, DATABASE)),
        "first": Target(texts("-a=1 -gone=7"), lambda t, _: route_values(t)),
        **{
            name: Target(
                json_files(data),
                lambda data, _: read_database(data.decode("utf-8", "surrogateescape")),
            )
            for name, data in decoded.items()
        },
        "tuning-cache": Target(
            spliced((GOLDEN / "trtexec-mixed.jsonl").read_bytes()), _file("c", read_tuning_cache)
        ),
        "tuning-cache-as-prior": Target(
            spliced((GOLDEN / "trtexec-fast.jsonl").read_bytes()), _file("c.jsonl", observe_cache)
        ),
        "manifest": Target(json_files(MANIFEST), lambda data, _: parse_manifest(data, "m")),
        "entry": Target(json_files(ENTRY), lambda data, _: parse_document(data, "e", Entry)),
        "run": Target(json_files(RUN), lambda data, _: parse_document(data, "r", Run)),
        "sums": Target(
            texts(f"{DIGEST}  a/b\n{DIGEST} *c\n"), lambda text, _: read_sums(text, "s")
        ),
        "result": Target(json_files(RESULT), _file("result.json", read_result)),
        "study": Target(toml_files(settings), _file("study.toml", _study)),
        "study-as-prior": Target(toml_files(settings), _file("study.toml", _kept_study)),
        "trials-as-prior": Target(
            spliced((STUDY / "trials.jsonl").read_bytes()[:4000]),
            _file("trials.jsonl", _kept_trials),
        ),
        "prior": Target(
            toml_files(_loaded(prior)) | spliced(prior), _file("p.prior.toml", read_prior)
        ),
        "base": Target(toml_files({"a": 1, "b": "x"}), _file("b.toml", read_base)),
        "workload": Target(toml_files(WORKLOAD), _file("w.toml", read_workload_file)),
        "trial": Target(
            json_files({"route": {"settings": []}, "outcome": "feasible"}),
            lambda data, _: trial_from_json(_json(data)),
        ),
        "shapes": Target(texts("x:1x3x224x224,'a,b':2"), lambda t, _: parse_shapes((t,))),
        "ranges": Target(texts("x:0:1,y:-1:1e3"), lambda t, _: parse_ranges((t,))),
        "epsilons": Target(texts("y:0.01,z:1e-3"), lambda t, _: parse_epsilons((t,))),
        "metrics": Target(texts("y=linf"), lambda t, _: parse_metrics((t,))),
        "durations": Target(
            texts("10m"),
            lambda t, _: make_settings({"model": "m", "budget": t, "memory_limit": t}),
        ),
    }


def _loaded(data: bytes) -> dict[str, Any]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.toml"
        path.write_bytes(data)
        return _document(path)


def _json(data: bytes) -> object:
    """As the reader of a trial's result does it: what is no JSON never gets to the parser."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
