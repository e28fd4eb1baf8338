"""Tells three things of one network apart on a GPU, and writes them as JSON.

* build noise: the default is built several times; builds differ more than measurements do;
* measurement noise: each of those engines is measured twice against the same baseline;
* launch: the same engine in a CUDA graph against launches one by one.

    python noise.py MODEL.onnx INPUT:SHAPE OUT.json [SETTING=VALUE ...]
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from smart_tuner.measure.compare import compare
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.load import load_model
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.model.shapes import parse_shapes
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.arm import PointArm, RemoteArm
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.validate.constraint import AccuracyConstraint

BUILDS = 5
RULE = StopRule.fixed(24, block_seconds=0.05)


def main(path: str, shape: str, out: str, *settings: str) -> None:
    """Measure, and write the figures."""
    model = load_model(Path(path).absolute())
    constraint = AccuracyConstraint(metric="linf", epsilon=0.005)
    base = {"launch": "graph", **dict(text.split("=", 1) for text in settings)}
    options = EvaluatorOptions("tensorrt", base, constraint)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        ranges = {shape.partition(":")[0]: (-1.0, 1.0)}
        inputs = InputOptions(shapes=parse_shapes((shape,)), ranges=ranges)
        workload, _ = prepare_workload(model, inputs, place / "references")
        pair = workload.points[0].search_pairs[0].inputs
        with Evaluator(workload, options, place) as evaluator:
            evaluator.make_references()
            report = evaluator.check_baseline(RULE)
            figures = {
                "model_sha256": model.sha256,
                "shape": shape,
                "base": base,
                "baseline_ms": dict(report.median_ms),
                "graph_over_enqueue": launches(options, report.trial.engine, pair, place),
                "builds": [],
            }
            for index in range(BUILDS):
                figures["builds"].append(built(evaluator, place / f"build-{index}"))
                write(figures, Path(out))


def write(figures: dict[str, object], out: Path) -> None:
    """Write what is known so far."""
    pairs = [build["log_ratios"] for build in figures["builds"]]
    if len(pairs) > 1:
        figures["build_noise_percent"] = 100 * between(pairs)
        figures["measurement_noise_percent"] = 100 * within(pairs)
    out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def built(evaluator: Evaluator, folder: Path) -> dict[str, object]:
    """Build the default once more from nothing, and measure it twice against the baseline."""
    build = evaluator.evaluate(BuildRoute(), folder, StopRule.fixed(4), cold=True)
    again = folder.with_name(f"{folder.name}-again")
    measured = [evaluator.measure_again(build, again, RULE).comparisons[0] for _ in range(2)]
    return {
        "same_plan": build.unchanged,
        "build_seconds": round(build.engine.build_seconds, 2),
        "log_ratios": [comparison.log_ratio for comparison in measured],
        "half_widths": [comparison.half_width for comparison in measured],
    }


def within(pairs: list[list[float]]) -> float:
    """Standard deviation of one measurement of one engine."""
    return math.sqrt(statistics.fmean((a - b) ** 2 / 2 for a, b in pairs))


def between(pairs: list[list[float]]) -> float:
    """Standard deviation of builds, what measuring adds taken off."""
    means = [statistics.fmean(pair) for pair in pairs]
    return math.sqrt(max(0.0, statistics.variance(means) - within(pairs) ** 2 / 2))


def launches(options: EvaluatorOptions, engine: object, inputs: Path, place: Path) -> dict[str, float]:
    """Gain of a CUDA graph over launches one by one, of one engine."""
    base = {**engine.request.base, "launch": "enqueue"}
    slow = replace(engine, request=replace(engine.request, base=base))
    log = place / "launch.log"
    with RemoteArm(options, log) as graph, RemoteArm(options, log) as enqueue:
        graph.load(engine)
        enqueue.load(slow)
        found = compare(PointArm(enqueue, inputs), PointArm(graph, inputs), "default", RULE)
    return {
        "enqueue_ms": found.baseline.median_ms,
        "graph_ms": found.candidate.median_ms,
        "gain": found.gain,
        "half_width": found.half_width,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
