"""A prepared workload on disk: ``workload.json`` beside the tensor files it names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.model.tensors import load_tensors, tensors_digest
from smart_tuner.model.workload import ReferencePair, Workload, WorkloadPoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.model.spec import ModelSpec

FILE_NAME = "workload.json"
_SCHEMA_VERSION = 1
_MAX_BYTES = 1 << 24
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class PairDigests:
    """What a pair's files held when they were prepared.

    Attributes:
        inputs: ``tensors_digest`` of the inputs.
        outputs: The same of the trusted outputs; ``None`` where the backend makes them.
    """

    inputs: str
    outputs: str | None


class _Pair(BaseModel):
    model_config = _STRICT

    name: str
    inputs: str
    outputs: str
    held_out: bool
    inputs_digest: str
    outputs_digest: str | None


class _Point(BaseModel):
    model_config = _STRICT

    name: str
    weight: float
    shapes: dict[str, list[int]]
    synthetic: bool
    pairs: list[_Pair]


class _Stored(BaseModel):
    model_config = _STRICT

    schema_version: int
    model_sha256: str
    points: list[_Point]


def write_workload(
    folder: Path, workload: Workload, digests: Mapping[tuple[str, str], PairDigests]
) -> None:
    """Write ``workload.json``, with paths relative to its folder.

    Args:
        folder: Where the workload's tensor files lie.
        workload: What was prepared there.
        digests: By point and pair name.

    Raises:
        EnvironmentNotFit: The file cannot be written.
    """
    stored = _Stored(
        schema_version=_SCHEMA_VERSION,
        model_sha256=workload.model.sha256,
        points=[
            _Point(
                name=point.name,
                weight=point.weight,
                shapes={name: list(shape) for name, shape in point.shapes.items()},
                synthetic=point.synthetic,
                pairs=[
                    _stored_pair(folder, pair, digests[point.name, pair.name])
                    for pair in point.pairs
                ],
            )
            for point in workload.points
        ],
    )
    write_json(folder / FILE_NAME, stored.model_dump())


def _stored_pair(folder: Path, pair: ReferencePair, digests: PairDigests) -> _Pair:
    return _Pair(
        name=pair.name,
        inputs=pair.inputs.relative_to(folder).as_posix(),
        outputs=pair.outputs.relative_to(folder).as_posix(),
        held_out=pair.held_out,
        inputs_digest=digests.inputs,
        outputs_digest=digests.outputs,
    )


def read_workload(model: ModelSpec, folder: Path) -> Workload:
    """Open a prepared workload again, checking that its tensor files still hold what they held.

    Raises:
        UserInputError: The folder holds none, or one of another model or a newer version, or a
            tensor file is missing or was changed.
    """
    stored = _read(folder)
    path = folder / FILE_NAME
    if stored.model_sha256 != model.sha256:
        msg = f"{path}: prepared for another model than {model.path}; prepare it again elsewhere."
        raise UserInputError(msg)
    points = tuple(
        WorkloadPoint(
            name=point.name,
            weight=point.weight,
            shapes={name: tuple(shape) for name, shape in point.shapes.items()},
            pairs=tuple(_checked_pair(folder, pair) for pair in point.pairs),
            synthetic=point.synthetic,
        )
        for point in stored.points
    )
    return Workload(model, points)


def _read(folder: Path) -> _Stored:
    path = folder / FILE_NAME
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UserInputError(f"{path}: too large to be a workload; restore it.")
        data = json.loads(path.read_bytes())
        version = data.get("schema_version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > _SCHEMA_VERSION:
            msg = f"{path}: written by a newer smart_tuner (schema {version}); upgrade this one."
            raise UserInputError(msg)
        return _Stored.model_validate(data)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}; prepare the workload again."
        raise UserInputError(msg) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserInputError(f"{path}: damaged ({where}: {first['msg']}); restore it.") from error
    except (ValueError, RecursionError) as error:
        raise UserInputError(f"{path}: damaged (not JSON); restore it.") from error


def _checked_pair(folder: Path, pair: _Pair) -> ReferencePair:
    inputs, outputs = _inside(folder, pair.inputs), _inside(folder, pair.outputs)
    for path, digest in ((inputs, pair.inputs_digest), (outputs, pair.outputs_digest)):
        if digest is not None and tensors_digest(load_tensors(path)) != digest:
            msg = f"{path}: was changed since the study began; restore it or start a new study."
            raise UserInputError(msg)
    return ReferencePair(pair.name, inputs, outputs, held_out=pair.held_out)


def _inside(folder: Path, relative: str) -> Path:
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts:
        msg = f"{folder / FILE_NAME}: {relative!r} leads out of the folder; restore the file."
        raise UserInputError(msg)
    return folder / Path(relative)


def workload_inputs(folder: Path) -> dict[str, list[str]]:
    """Digests of what a prepared workload was given: inputs, and trusted outputs if any.

    Returns:
        The digests by ``POINT/PAIR``.

    Raises:
        UserInputError: The folder holds no readable workload.
    """
    return {
        f"{point.name}/{pair.name}": [pair.inputs_digest, *filter(None, [pair.outputs_digest])]
        for point in _read(folder).points
        for pair in point.pairs
    }


def workload_differences(old: Path, new: Path) -> tuple[str, ...]:
    """What differs between the workloads prepared in two folders; nothing if they are equal.

    Outputs that a backend made do not count: they follow from the model and the inputs.

    Raises:
        UserInputError: A folder holds no readable workload.
    """
    before, after = _read(old), _read(new)
    found: list[str] = []
    if before.model_sha256 != after.model_sha256:
        found.append("model: the file or its weights changed")
    points = {point.name: point for point in before.points}
    now = {point.name: point for point in after.points}
    found.extend(f"point {name}: gone" for name in points if name not in now)
    found.extend(f"point {name}: new" for name in now if name not in points)
    for name in filter(now.__contains__, points):
        found.extend(f"point {name}: {text}" for text in _point_changes(points[name], now[name]))
    return tuple(found)


def _point_changes(old: _Point, new: _Point) -> Iterator[str]:
    if old.weight != new.weight:
        yield f"weight {old.weight:g} is now {new.weight:g}"
    if old.shapes != new.shapes:
        yield f"shapes {old.shapes} are now {new.shapes}"
    pairs, now = {pair.name: pair for pair in old.pairs}, {pair.name: pair for pair in new.pairs}
    if list(pairs) != list(now):
        yield f"pairs {', '.join(pairs)} are now {', '.join(now)}"
    for name in filter(now.__contains__, pairs):
        before, after = pairs[name], now[name]
        if before.inputs_digest != after.inputs_digest:
            yield f"inputs of pair {name} changed"
        if before.outputs_digest != after.outputs_digest:
            yield f"trusted outputs of pair {name} changed"
        if before.held_out != after.held_out:
            yield f"pair {name} is {'now' if after.held_out else 'no longer'} held out"
