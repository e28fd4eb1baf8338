"""Where users' tensors come from: sources, and the reference pairs that they make up.

A source is written as one of

* ``inputs.npz``: the keys are tensor names;
* ``name:x.npy``, ``name:x.pb``, ``name:x.bin`` (a raw little-endian dump, as trtexec's
  ``--loadInputs`` takes), several with commas between them, names quoted as in ``--shapes``;
* a tensor file of ours;
* ``input_0.pb``: ONNX's own test form, bound by the name inside, else by the number;
* a folder: one pair (``inputs.npz``, ``outputs.npz``, or ``input_0.pb`` ... ``output_0.pb`` ...),
  or several, as sub-folders of that form or as ``NAME.inputs.npz`` with ``NAME.outputs.npz`` or
  ``NAME.reference.npz``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.names import listed, split_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FORM = "name:path"
_ROLES = {"inputs": "inputs", "outputs": "outputs", "reference": "outputs"}
_FILE = re.compile(r"(?:(?P<name>.+)\.)?(?P<role>inputs|outputs|reference)(?:\.npz)?", re.DOTALL)
_PROTO = re.compile(r"(?P<role>input|output)_(?P<number>\d+)\.pb")


@dataclass(frozen=True, slots=True)
class Source:
    """Files that together hold the inputs, or the outputs, of one pair.

    Attributes:
        text: How a message names the source.
        files: Name of the tensor, or ``None`` when the file itself says, and the file.
    """

    text: str
    files: tuple[tuple[str | None, Path], ...]


@dataclass(frozen=True, slots=True)
class PairSource:
    """Sources of one reference pair; ``None`` where nothing is given."""

    name: str
    inputs: Source | None
    outputs: Source | None = None


def find_pairs(
    inputs: Sequence[str], outputs: Sequence[str], folder: Path
) -> tuple[PairSource, ...]:
    """Find the pairs that the texts speak of.

    Args:
        inputs: One text a pair, or folders of pairs.
        outputs: None, or one text a pair in the same order, or folders whose pairs have the
            same names.
        folder: What relative paths are relative to.

    Raises:
        UserInputError: A file is missing, a folder holds no pairs, or the two lists do not fit.
    """
    pairs = [pair for text in inputs for pair in _pairs_of(text, folder, "inputs")]
    trusted = [pair for text in outputs for pair in _pairs_of(text, folder, "outputs")]
    if lacking := [pair.name for pair in pairs if pair.inputs is None]:
        raise UserInputError(f"Pair {lacking[0]!r} has outputs but no inputs; add its inputs.")
    if lacking := [pair.name for pair in trusted if pair.outputs is None]:
        raise UserInputError(f"Pair {lacking[0]!r} has no outputs to trust; add its outputs.")
    if trusted:
        pairs = _joined(pairs, trusted)
    return _with_own_names(pairs)


def _pairs_of(text: str, folder: Path, role: str) -> list[PairSource]:
    path = folder / text
    if path.is_dir():
        return _pairs_in_folder(path, deeper=True)
    if path.exists():
        source, name = Source(text, ((None, path),)), _stem(path)
    elif ":" not in text:
        raise UserInputError(f"{path}: no such file or folder; check the path.")
    else:
        files = tuple((name, folder / value) for name, value in split_items(text, _FORM))
        source, name = Source(text, files), "pair"
    for _, file in source.files:
        if not file.is_file():
            msg = f"{file}: no such file (in {text!r}); check the path, and quote odd names."
            raise UserInputError(msg)
    return [PairSource(name, source) if role == "inputs" else PairSource(name, None, source)]


def _stem(path: Path) -> str:
    match = _FILE.fullmatch(path.name)
    return (match["name"] if match else None) or path.name.split(".")[0] or "pair"


def _pairs_in_folder(folder: Path, *, deeper: bool) -> list[PairSource]:
    visible = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    groups: dict[str, dict[str, list[Path]]] = {}
    for file in filter(Path.is_file, visible):
        if place := _place(file):
            name, role = place
            groups.setdefault(name, {}).setdefault(role, []).append(file)
    pairs = [_grouped(name, roles) for name, roles in groups.items()]
    if not pairs and deeper:
        folders = [entry for entry in visible if entry.is_dir()]
        pairs = [pair for entry in folders for pair in _pairs_in_folder(entry, deeper=False)]
    if not pairs:
        msg = f"{folder}: holds no pairs; put NAME.inputs.npz and NAME.outputs.npz into it."
        raise UserInputError(msg)
    return pairs


def _place(file: Path) -> tuple[str, str] | None:
    """Pair and role of a file by its name; ``None`` for a file that is no tensor file."""
    home = file.parent.resolve().name
    if proto := _PROTO.fullmatch(file.name):
        return home, f"{proto['role']}s"
    if match := _FILE.fullmatch(file.name):
        return match["name"] or home, _ROLES[match["role"]]
    if file.suffix in (".npz", ".npy", ".pb"):
        msg = f"{file}: belongs to no pair; name it NAME.inputs.npz or NAME.outputs.npz."
        raise UserInputError(msg)
    return None


def _grouped(name: str, roles: dict[str, list[Path]]) -> PairSource:
    made: dict[str, Source] = {}
    for role, files in roles.items():
        if len(files) > 1 and not all(_PROTO.fullmatch(file.name) for file in files):
            names = listed([file.name for file in files])
            msg = f"{files[0].parent}: pair {name!r} has {role} twice; keep one of {names}."
            raise UserInputError(msg)
        made[role] = Source(str(files[0]), tuple((None, file) for file in files))
    return PairSource(name, made.get("inputs"), made.get("outputs"))


def _joined(pairs: list[PairSource], trusted: list[PairSource]) -> list[PairSource]:
    """Give each pair its trusted outputs: by name if all names agree, else by order."""
    if doubled := [pair.name for pair in pairs if pair.outputs is not None]:
        msg = f"Pair {doubled[0]!r} brings its own outputs; give no others for it."
        raise UserInputError(msg)
    if not pairs and len(trusted) == 1:
        return [replace(trusted[0], inputs=None)]
    if len(pairs) != len(trusted):
        msg = (
            f"{len(pairs)} inputs but {len(trusted)} reference outputs; give one for each, with "
            "a comma between the files of one pair."
        )
        raise UserInputError(msg)
    names = [pair.name for pair in pairs]
    by_name = {pair.name: pair for pair in trusted}
    if len(set(names)) == len(names) and set(names) == set(by_name):
        trusted = [by_name[name] for name in names]
    return [replace(pair, outputs=own.outputs) for pair, own in zip(pairs, trusted, strict=True)]


def _with_own_names(pairs: Iterable[PairSource]) -> tuple[PairSource, ...]:
    taken: set[str] = set()
    return tuple(replace(pair, name=own_name(pair.name, taken)) for pair in pairs)


def own_name(name: str, taken: set[str]) -> str:
    """A name that is not taken yet, short enough for a file's; it is added to ``taken``."""
    short = name[:40]
    candidates = (short if number == 1 else f"{short}-{number}" for number in range(1, 1 << 20))
    own = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(own)
    return own
