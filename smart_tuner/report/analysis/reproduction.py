"""What it takes to do it again: commands, hashes, platform."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.study.setup.settings import command_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What it takes to do it again.

    Attributes:
        commands: Commands that hold wherever the study is moved to, from the folder around it.
        facts: Hashes, seed, versions and platform, by name.
    """

    commands: tuple[str, ...]
    facts: Mapping[str, str]


def reproduction_of(view: StudyView) -> Reproduction:
    """Collect commands and facts."""
    name = view.root.name
    words = command_line(view.settings, Path(name))
    tune = shlex.join([*words, f"--seed={view.document['seed']}"])
    commands = [tune, shlex.join(["smart-tuner", "report", name])]
    if view.manifest and not view.figures_only:
        commands.append(shlex.join(["smart-tuner", "verify", name]))
    document, platform = view.document, view.platform
    identity: Mapping[str, str] = document["identity"]
    engine: Mapping[str, object] = view.manifest.get("engine", {})
    files: Mapping[str, str] = view.manifest.get("files", {})
    details: Mapping[str, str] = platform.get("details", {})
    facts = {
        "model": str(view.settings.get("model", "")),
        "model sha256": identity.get("model", ""),
        "begun": str(document.get("created", "")),
        "smart_tuner": str(document.get("smart_tuner", "")),
        "seed": str(document["seed"]),
        "sampler": str(view.settings.get("sampler", "")),
        "knobs searched": str(len(view.choices)),
        "device": str(platform.get("device", "")),
        "driver": str(platform.get("driver", "")),
        "backend": str(platform.get("backend_version", "")),
        "knob database": str(platform.get("tuner_version", "")),
        **{name: str(value) for name, value in details.items()},
        **{f"base: {name}": str(value) for name, value in document.get("base", {}).items()},
        "shipped engine": str(engine.get("file", "")),
        "engine fingerprint": str(engine.get("fingerprint", "")),
        **{f"sha256 of winner/{file}": digest for file, digest in files.items()},
    }
    return Reproduction(tuple(commands), {key: value for key, value in facts.items() if value})
