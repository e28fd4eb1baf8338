"""The built plan: its fingerprint, what it was built for, and what the inspector says of it."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.platform import Target
from smart_tuner.backends.tensorrt.settings import RUN_SETTINGS
from smart_tuner.errors import RunError
from smart_tuner.model.files import file_digest, whole_file, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.engine.build import BuildRequest

SCHEMA = 1
PLAN_FILE, FACTS_FILE, LAYERS_FILE = "engine.plan", "engine.json", "layers.json"


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands in ``engine.json`` beside a plan.

    Attributes:
        sdk: Name and version of the compiler.
        target: The GPU that it was built for.
        plugins: Digest of every plugin library, by path.
        settings: Base and route together.
        weights: Digest of the model whose weights a stripped plan needs; empty for others.
        is_strongly_typed: Whether types came from the network alone.
    """

    sdk: str
    target: Target
    plugins: Mapping[str, str]
    settings: Mapping[str, str]
    weights: str = ""
    is_strongly_typed: bool = True

    def write(self, plan: Path) -> None:
        """Write ``engine.json`` beside a plan."""
        document = {
            "schema": SCHEMA,
            "sdk": self.sdk,
            "target": self.target.to_json(),
            "plugins": dict(self.plugins),
            "settings": dict(self.settings),
            "weights": self.weights,
            "is_strongly_typed": self.is_strongly_typed,
        }
        write_json(plan.with_name(FACTS_FILE), document)

    @classmethod
    def read(cls, plan: Path) -> Facts | None:
        """Read ``engine.json`` beside a plan; None if there is none.

        Raises:
            RunError: It is damaged, or of a newer version.
        """
        path = plan.with_name(FACTS_FILE)
        if not path.is_file():
            return None
        try:
            data = json.loads(path.read_bytes())
            if data["schema"] != SCHEMA:
                msg = f"{path} has schema {data['schema']}, this version reads {SCHEMA}"
                raise RunError(msg)
            return cls(
                sdk=str(data["sdk"]),
                target=Target.from_json(data["target"]),
                plugins=dict(data["plugins"]),
                settings=dict(data["settings"]),
                weights=str(data["weights"]),
                is_strongly_typed=bool(data["is_strongly_typed"]),
            )
        except (ValueError, KeyError, TypeError, OSError) as error:
            msg = f"{path} does not describe an engine: {error}"
            raise RunError(msg) from error


def weights_digest(request: BuildRequest, *, is_stripped: bool) -> str:
    """Digest of the model for a plan without weights, which do not stand in its own bytes."""
    return file_digest(request.model) if is_stripped else ""


def fingerprint(plan_digest: str, facts: Facts) -> str:
    """Digest of a plan and of every setting that acts on a run without standing in the plan.

    A knob of the builder acts through the plan alone: when two routes give the same bytes, they
    are the same engine. Real compilers rarely give the same bytes twice; then only equal layers
    (``layers.json``) speak for equal engines. How work is launched is left out: it is settled
    while the baseline runs, after its engine was built, and holds for both arms.
    """
    outside = {*RUN_SETTINGS, "weight_streaming_budget"} - {"launch"}
    parts: dict[str, Any] = {
        "plan": plan_digest,
        "sdk": facts.sdk,
        "plugins": sorted(facts.plugins.values()),
        "weights": facts.weights,
        "settings": {name: facts.settings[name] for name in outside & facts.settings.keys()},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def write_layers(sdk: Sdk, engine: api.CudaEngine, plan: Path) -> str:
    """Write what the inspector says beside a plan; returns the digest, empty if it says nothing.

    TensorRT 8.6 writes control characters into its JSON, which the parser has to let pass.
    """
    form = api.member(sdk.module.LayerInformationFormat, "JSON")
    if form is None:
        return ""
    text = engine.create_engine_inspector().get_engine_information(form)
    if not text:
        return ""
    data = text.encode("utf-8", "surrogateescape")
    with suppress(ValueError):
        data = json.dumps(json.loads(text, strict=False), sort_keys=True, indent=1).encode()
    with whole_file(plan.with_name(LAYERS_FILE)) as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()
