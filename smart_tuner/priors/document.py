"""The prior file as data: which studies, and what each of them says about each value.

Nothing is folded in the file itself. Each study keeps its own line under each value, so that it
can be weighed by how near it is to the study at hand, checked, edited, or struck out by a person.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003, pydantic reads the annotations
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from smart_tuner.knobs.text import clean_sentence, name_fault, value_fault

SCHEMA_VERSION = 1
KIND = "smart_tuner prior"

MAX_STUDIES = 200
MAX_KNOBS = 5_000
MAX_VALUES = 500
MAX_OPERATORS = 2_000
MAX_ROUTES = 5
LARGEST_EFFECT = 12.0


def _printable(text: str) -> str:
    """Refuse what a terminal would obey instead of show; notes may have lines."""
    if not text.replace("\n", "").isprintable():
        msg = "the text holds a control character"
        raise ValueError(msg)
    return text


Text = Annotated[str, Field(max_length=300), AfterValidator(_printable)]
Note = Annotated[str, Field(max_length=2_000), AfterValidator(_printable)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Operators = Annotated[dict[Text, Count], Field(max_length=MAX_OPERATORS)]

_STRICT = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Network(BaseModel):
    """What was tuned, as far as it tells families of networks apart.

    Attributes:
        name: For people.
        sha256: Digest of the model; empty if it is not known.
        size_bytes: Of the file with its weights; 0 if it is not known.
        operators: How often each operator occurs; empty if it is not known.
    """

    model_config = _STRICT

    name: Text = ""
    sha256: Text = ""
    size_bytes: Annotated[int, Field(ge=0, le=1 << 60)] = 0
    operators: Operators = Field(default_factory=dict)

    @classmethod
    def of(cls, name: str, sha256: str, size_bytes: int, operators: Mapping[str, int]) -> Network:
        """Of a model file, whatever its names are; of too many operators the most frequent ones."""
        most = sorted(operators.items(), key=lambda item: (-item[1], item[0]))[:MAX_OPERATORS]
        return cls(
            name=clean_sentence(name)[:300],
            sha256=sha256,
            size_bytes=size_bytes,
            operators={clean_sentence(op)[:300]: count for op, count in sorted(most)},
        )


class BestRoute(BaseModel):
    """One of the fastest routes of a study, as its search saw it: luck included.

    Attributes:
        values: Value by knob name where it was not the default.
        effect: ln(latency ratio); negative is faster.
    """

    model_config = _STRICT

    values: Annotated[dict[Text, Text], Field(max_length=MAX_KNOBS)]
    effect: Annotated[float, Field(ge=-LARGEST_EFFECT, le=LARGEST_EFFECT)]


class Baseline(BaseModel):
    """What the effects of a study are relative to, as far as it is known.

    Attributes:
        latency_ms: Of the default route; 0 if it is not known.
        half_width: Half of the 95 % interval of one measured log ratio, at the median trial; 0 if
            it is not known.
        values: What the study set besides the compiler's own defaults, by knob name.
        processors: How many the study might use; empty if it is not known.
        shapes: Input shapes that were asked for; empty: the model's own.
    """

    model_config = _STRICT

    latency_ms: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    half_width: Annotated[float, Field(ge=0, le=LARGEST_EFFECT)] = 0.0
    values: Annotated[dict[Text, Text], Field(max_length=MAX_KNOBS)] = Field(default_factory=dict)
    processors: Text = ""
    shapes: Text = ""


class StudyEntry(BaseModel):
    """Where evidence comes from.

    Attributes:
        id: By which the lines under the values name it.
        name: For people.
        created: Date, ISO 8601.
        source: ``study``, ``trtexec``, ``torch-tensorrt`` or ``optuna``.
        tool: Version of smart_tuner that attributed the effects.
        backend: What compiled.
        backend_version: E.g. ``onnxruntime 1.32.0``.
        tuner_version: Of the knob database.
        device: Processor or GPU.
        driver: Operating system or GPU driver.
        metric: Accuracy loss that was bounded; empty if none was.
        epsilon: Its limit, as text: ``0.001`` or ``auto``.
        objective: What was measured: ``end_to_end``, ``compute`` or ``throughput``.
        trials: How many were finished.
        noise: Standard deviation of one measured log ratio, as the study itself shows it.
        baseline: What its effects are relative to.
        network: What was tuned.
        best: Fastest routes.
        notes: By people.
    """

    model_config = _STRICT

    id: Identifier
    name: Text
    created: Text = ""
    source: Literal["study", "trtexec", "torch-tensorrt", "optuna"] = "study"
    tool: Text = ""
    backend: Text = ""
    backend_version: Text = ""
    tuner_version: Text = ""
    device: Text = ""
    driver: Text = ""
    metric: Text = ""
    epsilon: Text = ""
    objective: Text = "end_to_end"
    trials: Count = 0
    noise: Annotated[float, Field(ge=0, le=LARGEST_EFFECT)] = 0.0
    baseline: Baseline = Field(default_factory=Baseline)
    network: Network = Field(default_factory=Network)
    best: Annotated[tuple[BestRoute, ...], Field(max_length=MAX_ROUTES)] = ()
    notes: Note = ""


class Evidence(BaseModel):
    """What one study says about one value.

    Attributes:
        tried: Routes that had it.
        measured: Of these, routes with a latency.
        failed: Of these, routes that broke (not built, not run, not applied, out of time).
        active: Probability that it changed the latency.
        effect: Its effect if it did, ln(latency ratio); negative is faster.
        spread: Standard deviation of that estimate.
        failure: Probability that it alone breaks routes.
        violation: How likely it alone breaks epsilon; ``None`` if accuracy was not checked.
    """

    model_config = _STRICT

    tried: Count
    measured: Count = 0
    failed: Count = 0
    active: Share
    effect: Annotated[float, Field(ge=-LARGEST_EFFECT, le=LARGEST_EFFECT)] = 0.0
    spread: Annotated[float, Field(ge=0, le=LARGEST_EFFECT)] = 0.0
    failure: Share
    violation: Share | None = None

    @model_validator(mode="after")
    def _counts(self) -> Evidence:
        if self.measured > self.tried or self.failed > self.tried:
            msg = f"measured {self.measured} or failed {self.failed} of {self.tried} tried routes"
            raise ValueError(msg)
        return self


class ValueEntry(BaseModel):
    """One value of one knob.

    Attributes:
        notes: By people.
        evidence: By identifier of the study.
    """

    model_config = _STRICT

    notes: Note = ""
    evidence: Annotated[dict[Identifier, Evidence], Field(max_length=MAX_STUDIES)] = Field(
        default_factory=dict
    )


class KnobEntry(BaseModel):
    """One knob.

    Attributes:
        default: Its default in these studies, which effects are counted from.
        notes: By people.
        values: By value, the default left out.
    """

    model_config = _STRICT

    default: Text
    notes: Note = ""
    values: Annotated[dict[Text, ValueEntry], Field(max_length=MAX_VALUES)] = Field(
        default_factory=dict
    )

    @field_validator("values")
    @classmethod
    def _legal_values(cls, values: dict[str, ValueEntry]) -> dict[str, ValueEntry]:
        for value in values:
            if fault := value_fault(value):
                raise ValueError(fault)
        return values


class Prior(BaseModel):
    """A prior file.

    Attributes:
        kind: Always ``smart_tuner prior``: what the file is.
        schema_version: Of the form of the file.
        created: Date, ISO 8601.
        notes: By people.
        studies: Where the evidence comes from.
        knobs: What they say, by knob name.
    """

    model_config = ConfigDict(**_STRICT, title="smart_tuner prior file")

    kind: Literal["smart_tuner prior"] = "smart_tuner prior"
    schema_version: Literal[1] = 1
    created: Text = ""
    notes: Note = ""
    studies: Annotated[tuple[StudyEntry, ...], Field(max_length=MAX_STUDIES)]
    knobs: Annotated[dict[Text, KnobEntry], Field(max_length=MAX_KNOBS)] = Field(
        default_factory=dict
    )

    @field_validator("knobs")
    @classmethod
    def _legal_names(cls, knobs: dict[str, KnobEntry]) -> dict[str, KnobEntry]:
        for name in knobs:
            if fault := name_fault(name):
                raise ValueError(fault)
        return knobs

    @model_validator(mode="after")
    def _known_studies(self) -> Prior:
        known = {study.id for study in self.studies}
        if len(known) < len(self.studies):
            msg = "two studies have one id; give each its own"
            raise ValueError(msg)
        for name, knob in self.knobs.items():
            for value, entry in knob.values.items():
                if stray := entry.evidence.keys() - known:
                    msg = f"knob {name}={value} names the study {min(stray)}, which is not listed"
                    raise ValueError(msg)
        return self

    @property
    def by_id(self) -> dict[str, StudyEntry]:
        """Studies by identifier."""
        return {study.id: study for study in self.studies}
