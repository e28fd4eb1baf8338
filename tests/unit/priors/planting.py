"""Studies with known effects, and priors made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smart_tuner.priors.build import build_prior
from smart_tuner.priors.document import Network, Prior, StudyEntry
from smart_tuner.priors.observed import Observation, ObservedStudy

SPACE = {f"k{number}": ("off", "on") for number in range(40)}
DATE = "2026-11-01T00:00:00+00:00"


def entry(name: str, **facts: object) -> StudyEntry:
    known: dict[str, object] = {
        "created": DATE,
        "backend": "onnxruntime",
        "tuner_version": "onnxruntime 1.32.0",
        "device": "Some CPU",
        "metric": "l0",
        "epsilon": "0.001",
        "network": Network(operators={"Conv": 8, "Relu": 2}, size_bytes=1_000_000),
    }
    return StudyEntry.model_validate({"id": name, "name": name, **known, **facts})


@dataclass(frozen=True)
class Special:
    """Switches that do something else than change the latency."""

    broken: Sequence[str] = ()
    lossy: Sequence[str] = ()
    idle: Sequence[str] = ()


NOTHING = Special()


def study(
    name: str,
    effects: Mapping[str, float],
    special: Special = NOTHING,
    *,
    trials: int = 90,
    seed: int = 0,
    **facts: object,
) -> ObservedStudy:
    """Random routes of four switches each."""
    random = np.random.default_rng(seed)
    rows = [Observation({}, 0.0, violation=-6.0, unchanged=True)]
    rows += [Observation({k: "on"}, 0.0, violation=-6.0, unchanged=True) for k in special.idle]
    for _ in range(trials):
        names = [str(k) for k in random.choice(list(SPACE), size=4, replace=False)]
        values = dict.fromkeys(names, "on")
        if set(names) & set(special.broken):
            rows.append(Observation(values, None, failed=True))
            continue
        log = sum(effects.get(k, 0.0) for k in names) + 0.008 * float(random.standard_normal())
        loss = 1.0 if set(names) & set(special.lossy) else -3.0
        rows.append(Observation(values, log, violation=loss))
    return ObservedStudy(entry(name, **facts), SPACE, tuple(rows))


def prior(*studies: ObservedStudy) -> Prior:
    return build_prior(studies)
