"""Studies of this product as evidence: live folders, and what is kept of finished ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smart_tuner.errors import SmartTunerError, UserInputError
from smart_tuner.knobs.text import clean_sentence, shown
from smart_tuner.model.load import load_model
from smart_tuner.model.public import PREFIX
from smart_tuner.model.toml import read_toml
from smart_tuner.priors.build import study_id
from smart_tuner.priors.document import Baseline, Network, StudyEntry
from smart_tuner.priors.observed import Observation, ObservedStudy
from smart_tuner.route.grammar import split_tokens
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.storages.history import TrialRecord

STUDY_NAME = "smart_tuner"
BASELINE_MS = "baseline_ms"
CPU_QUOTA = "platform cpu_quota"
"""As the study's loop writes them, which lies above this package."""

SETTINGS_FILE, JOURNAL_FILE, TRIALS_FILE = "study.toml", "journal.log", "trials.jsonl"
MAX_TRIALS_BYTES = 256 << 20

BROKEN = frozenset(
    outcome.value
    for outcome in (
        TrialOutcome.BUILD_FAILED,
        TrialOutcome.RUN_FAILED,
        TrialOutcome.TIMED_OUT,
        TrialOutcome.NOT_APPLIED,
    )
)


class _Row(BaseModel):
    """What counts of a line of ``trials.jsonl``."""

    model_config = ConfigDict(allow_inf_nan=False)

    route: str
    outcome: str
    latency_ms: Annotated[float, Field(gt=0)] | None
    half_width: Annotated[float, Field(ge=0)] | None = None
    violation: float | None = None
    unchanged: bool = False


def is_study(folder: Path) -> bool:
    """Whether a folder holds a study, live or kept."""
    has_trials = (folder / JOURNAL_FILE).is_file() or (folder / TRIALS_FILE).is_file()
    return has_trials and (folder / SETTINGS_FILE).is_file()


def observe_study(folder: Path) -> ObservedStudy:
    """Read a study folder: its journal if it is there, else ``trials.jsonl``.

    Raises:
        UserInputError: It is no study, is damaged, or its default route was never measured.
    """
    if not is_study(folder):
        msg = (
            f"{clean_sentence(str(folder))} is no study: it lacks {SETTINGS_FILE}, or both "
            f"{JOURNAL_FILE} and {TRIALS_FILE}."
        )
        raise UserInputError(msg)
    document = read_toml(folder / SETTINGS_FILE, "study file")
    choices = _space(document, folder)
    has_journal = (folder / JOURNAL_FILE).is_file()
    trials, latency = _journal(folder) if has_journal else _kept(folder, choices)
    entry = _entry(document, folder, trials)
    baseline = _baseline(document, latency)
    return ObservedStudy(entry.model_copy(update={"baseline": baseline}), choices, trials)


def observation(record: TrialRecord, baseline_ms: float) -> Observation:
    """A finished trial of a study as evidence.

    Args:
        record: The trial.
        baseline_ms: The study's frozen baseline latency.
    """
    value = record.value_ms
    return Observation(
        values=record.route.values,
        log_ratio=math.log(value / baseline_ms) if value else None,
        failed=record.outcome.value in BROKEN,
        half_width=record.half_width,
        violation=record.violation,
        unchanged=record.unchanged,
    )


def network_of(document: Mapping[str, Any]) -> Network:
    """What ``study.toml`` tells of its network; of older ones, what the model file itself tells.

    A model is looked for where the study had it, and only believed if it is still the same one.
    """
    kept = document.get("network")
    identity = document.get("identity", {})
    said = str(identity.get("model", "")) if isinstance(identity, dict) else ""
    digest = clean_sentence(said)[:300]
    settings = document.get("settings", {})
    model = str(settings.get("model", "")) if isinstance(settings, dict) else ""
    name = clean_sentence(model.rsplit("/", 1)[-1])[:300]
    if isinstance(kept, dict):
        try:
            return Network.model_validate({**kept, "sha256": digest, "name": name})
        except ValidationError:
            return Network(name=name, sha256=digest)
    path = _located(model)
    try:
        if path is not None and path.is_file():
            spec = load_model(path)
            if spec.sha256 == digest:
                return Network.of(name, digest, spec.size_bytes, spec.operators)
    except (SmartTunerError, OSError):
        pass
    return Network(name=name, sha256=digest)


def _located(model: str) -> Path | None:
    """Where a model lies, if it is here already: nothing is downloaded for a histogram."""
    if model.startswith(PREFIX):
        name = Path(model.removeprefix(PREFIX)).name
        return user_cache_path("smart-tuner") / "models" / f"{name}.onnx"
    return Path(model) if model else None


def _entry(
    document: Mapping[str, Any], folder: Path, trials: tuple[Observation, ...]
) -> StudyEntry:
    known = document.get("identity", {})
    identity = {str(k): str(v) for k, v in known.items()} if isinstance(known, dict) else {}
    name = clean_sentence("/".join(folder.absolute().parts[-2:]))[:300]
    created = str(document.get("created", ""))
    material = repr((created, identity, [sorted(trial.values.items()) for trial in trials]))
    facts = {
        "created": created,
        "tool": str(document.get("smart_tuner", "")),
        "backend": identity.get("backend", ""),
        "backend_version": identity.get("backend version", ""),
        "tuner_version": identity.get("tuner version", ""),
        "device": identity.get("device", ""),
        "driver": identity.get("driver", ""),
        "metric": identity.get("metric", ""),
        "epsilon": identity.get("epsilon", ""),
        "objective": identity.get("objective", "end_to_end"),
    }
    return StudyEntry.model_validate(
        {
            "id": study_id(name, material),
            "name": name,
            "network": network_of(document),
            **{key: clean_sentence(text)[:300] for key, text in facts.items()},
        }
    )


def _baseline(document: Mapping[str, Any], latency_ms: float) -> Baseline:
    """What a study's effects are relative to.

    Args:
        document: Of ``study.toml``.
        latency_ms: Of the default route.
    """
    parts = {name: document.get(name) for name in ("base", "settings", "identity")}
    base, settings, identity = (part if isinstance(part, dict) else {} for part in parts.values())
    shapes = settings.get("shapes")
    asked = ", ".join(map(str, shapes)) if isinstance(shapes, list) else ""
    return Baseline(
        latency_ms=min(latency_ms, 1e9),
        values={
            clean_sentence(str(k))[:300]: clean_sentence(str(v))[:300] for k, v in base.items()
        },
        processors=clean_sentence(str(identity.get(CPU_QUOTA, "")))[:300],
        shapes=clean_sentence(asked)[:300],
    )


def _space(document: Mapping[str, Any], folder: Path) -> dict[str, tuple[str, ...]]:
    space = document.get("space")
    lists = list(space.values()) if isinstance(space, dict) else []
    if isinstance(space, dict) and lists and all(isinstance(v, list) and v for v in lists):
        return {name: tuple(map(str, values)) for name, values in space.items()}
    msg = f"{folder / SETTINGS_FILE} lists no space: it is no study of this version."
    raise UserInputError(msg)


def _journal(folder: Path) -> tuple[tuple[Observation, ...], float]:
    """Trials of a live study, and the latency of its default route in milliseconds."""
    study = open_study(folder / JOURNAL_FILE, STUDY_NAME, None, create=False)
    baseline = study.user_attrs.get(BASELINE_MS)
    if not isinstance(baseline, float) or baseline <= 0:
        msg = f"{folder}: the study has no baseline latency yet, so no effect can be told."
        raise UserInputError(msg)
    return tuple(observation(record, baseline) for record in finished_trials(study)), baseline


def _kept(
    folder: Path, choices: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[Observation, ...], float]:
    """Trials of a finished study, and the latency of its default route in milliseconds."""
    path = folder / TRIALS_FILE
    try:
        if path.stat().st_size > MAX_TRIALS_BYTES:
            msg = f"{path} is over {MAX_TRIALS_BYTES >> 20} MiB: no study's trials are."
            raise UserInputError(msg)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"Cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}."
        raise UserInputError(msg) from None
    rows = [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]
    baseline = next((row.latency_ms for row in rows if not row.route and row.latency_ms), None)
    if baseline is None:
        msg = f"{path}: the default route has no latency, so no effect can be told."
        raise UserInputError(msg)
    return tuple(_observed(rows, choices, baseline)), baseline


def _row(line: str, place: str) -> _Row:
    try:
        return _Row.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        msg = f"{place}: no trial, {shown(where)}: {shown(first['msg'])}."
        raise UserInputError(msg) from None


def _observed(
    rows: Iterable[_Row], choices: Mapping[str, tuple[str, ...]], baseline: float
) -> Iterable[Observation]:
    for row in rows:
        yield Observation(
            values=route_values(row.route, choices),
            log_ratio=math.log(row.latency_ms / baseline) if row.latency_ms else None,
            failed=row.outcome in BROKEN,
            half_width=row.half_width,
            violation=row.violation,
            unchanged=row.unchanged,
        )


def route_values(text: str, choices: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Value by knob name of a route's text, as far as a space has it.

    Raises:
        UserInputError: The text is no route.
    """
    pairs = (
        token.text.removeprefix("-").partition("=") for token in split_tokens(text, "a route")
    )
    return {name: value for name, _, value in pairs if value in choices.get(name, ())[1:]}
