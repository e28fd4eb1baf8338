"""What a study was about and how it measured: facts for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_tuner.measure.goal import Goal
from smart_tuner.measure.latency import Statistic
from smart_tuner.report.markdown import code, plain
from smart_tuner.report.words import budget_phrase
from smart_tuner.study.proof.wording import limit_text
from smart_tuner.study.session import DECIDED, REFEREE
from smart_tuner.validate.constraint import MEAN
from smart_tuner.validate.limits import Limits, limit_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.study.proof.result import TuneResult


def setting_facts(
    document: Mapping[str, Any],
    platform: Mapping[str, Any],
    result: TuneResult,
    baseline_ms: float,
) -> dict[str, str]:
    """Facts by name, as Markdown; empty where there is nothing to say.

    Args:
        document: ``study.toml``.
        platform: ``platform.json``.
        result: The verdict.
        baseline_ms: The study's frozen baseline latency.
    """
    settings, identity = document["settings"], document["identity"]
    goal = _goal(document)
    maker = document.get(REFEREE, "")
    return {
        "model": f"{code(settings['model'])}, sha256 {code(identity['model'][:16])}...",
        "inputs": "synthetic" if result.provisional else "given",
        "reference outputs": plain(f"made by {maker}") if maker else "",
        "backend": plain(platform["backend_version"]),
        "device": plain(f"{platform['device']}; {platform['driver']}"),
        "platform": plain(_pairs(platform["details"])),
        "accuracy": plain(_constraint(document["accuracy"])),
        "limits": plain(_limits(settings)),
        "measured": plain(goal.words),
        "decided on the baseline": plain(_pairs(document.get(DECIDED, {}))),
        "smallest gain that ships": f"{result.min_gain:g}x",
        "search": f"{code(settings['sampler'])}, seed {document['seed']}",
        "budget": budget_phrase(result.spent_seconds, float(settings["budget"])),
        "baseline": _baseline(goal, baseline_ms),
    }


def _goal(document: Mapping[str, Any]) -> Goal:
    statistic = document["settings"].get("statistic", Goal().statistic.value)
    base: Mapping[str, str] = document.get("base", {})
    return Goal(Statistic(statistic), base.get("objective", Goal().objective))


def _baseline(goal: Goal, baseline_ms: float) -> str:
    """The baseline's figure, and how many inferences a second that is where they overlap."""
    text = f"{baseline_ms:.4g} ms"
    if not goal.is_windowed:
        return text
    return f"{text} an inference, {1000 / baseline_ms:.4g} inferences a second"


def _limits(settings: Mapping[str, Any]) -> str:
    names = ("max_memory", "max_engine_size", "max_build_time")
    limits = Limits(*(settings.get(name) for name in names))
    return ", ".join(limit_words(name, limit) for name, limit in limits.asked.items())


def _pairs(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _constraint(accuracy: Mapping[str, Any]) -> str:
    limits, own = dict(accuracy.get("per_output", {})), dict(accuracy.get("metrics", {}))
    mean = "mean over pairs of " if accuracy.get("over_pairs") == MEAN else ""
    text = f"{mean}{accuracy['metric']} within {limit_text(accuracy['epsilon'])}"
    each = [
        f"{name} {own[name]} within {limit_text(limits.get(name, accuracy['epsilon']))}"
        if name in own
        else f"{name} within {limit_text(limits[name])}"
        for name in {**limits, **own}
    ]
    return f"{text}; {', '.join(each)}" if each else f"{text}, every output"
