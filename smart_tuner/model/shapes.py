"""Concrete input shapes: what the user gives, what the model fixes, what is taken as 1."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.names import format_name, listed, option_text, split_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.model.spec import Dimension, ModelSpec, TensorSpec

SCALAR = "scalar"
"""How the shape of a 0-d tensor is written."""

_FORM = "name:1x3x640x640 (name:scalar for 0-d)"
_LETTERS = {1: "L", 2: "NL", 3: "NCL", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True, slots=True)
class ResolvedShapes:
    """A concrete shape for every model input.

    Attributes:
        shapes: Sizes by input name, in the model's order.
        notes: What was taken without being given, and how to give it.
        symbols: Size of every symbol that the inputs settle.
    """

    shapes: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()
    symbols: Mapping[str, int] = field(default_factory=dict)


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read ``name:1x3x640x640`` texts; see ``names`` for how to quote hostile names.

    Args:
        texts: One text for each use of the option; each holds one item or more, with commas
            between them. ``name:scalar`` is a 0-d tensor.

    Raises:
        UserInputError: A text is not of that form, or a name has two shapes.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        for name, value in split_items(text, _FORM):
            shape = _parse_shape(name, value.strip())
            if shapes.setdefault(name, shape) != shape:
                both = f"{format_shape(shapes[name])} and {format_shape(shape)}"
                raise UserInputError(f"Input {name!r} is given two shapes, {both}; give one.")
    return shapes


def _parse_shape(name: str, value: str) -> tuple[int, ...]:
    if value == SCALAR:
        return ()
    if not re.fullmatch(r"[0-9]{1,15}(x[0-9]{1,15})*", value):
        msg = f"{value!r} is no shape for input {name!r}; write sizes as {_FORM}."
        raise UserInputError(msg)
    return tuple(int(size) for size in value.split("x"))


def format_shape(shape: Sequence[int]) -> str:
    """The text that ``parse_shapes`` reads back."""
    return "x".join(map(str, shape)) if shape else SCALAR


def format_shapes(shapes: Mapping[str, Sequence[int]]) -> str:
    """Names and shapes as one text that ``parse_shapes`` reads back."""
    return ",".join(f"{format_name(name)}:{format_shape(sizes)}" for name, sizes in shapes.items())


def resolve_shapes(model: ModelSpec, given: Mapping[str, tuple[int, ...]]) -> ResolvedShapes:
    """Settle the shape of every input.

    Sizes come from the model, from ``given``, and from equal symbols, which must get equal
    sizes. A first dimension that is still free is taken as 1, which is said in a note; any other
    free dimension is asked for, since a made-up one gives the latency of nothing.

    Raises:
        UserInputError: ``given`` names no input, contradicts the model or itself, or leaves sizes
            open; the message shows what to type.
    """
    by_name = {spec.name: spec for spec in model.inputs}
    if unknown := [name for name in given if name not in by_name]:
        msg = f"The model has no input {unknown[0]!r}; its inputs: {listed(list(by_name))}."
        raise UserInputError(msg)
    symbols: dict[str, int] = {}
    for name, shape in given.items():
        _bind(by_name[name], shape, symbols)
    sized = {spec.name: _known_sizes(spec, given, symbols) for spec in model.inputs}
    batched = _take_first_as_one(model, sized, symbols)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, sizes in sized.items():
        settled = tuple(size for size in sizes or () if isinstance(size, int))
        if sizes is None or len(settled) < len(sizes):
            raise _open_sizes(model, sized)
        shapes[name] = settled
    notes = (_batch_note(batched, shapes),) if batched else ()
    return ResolvedShapes(shapes, notes, symbols)


def _bind(spec: TensorSpec, sizes: tuple[int, ...], symbols: dict[str, int]) -> None:
    """Check given sizes against one input and learn its symbols from them."""
    if spec.shape is None:
        return
    text = f"Input {spec.name!r} is {_declared(spec)} in the model, {format_shape(sizes)} given"
    if len(sizes) != len(spec.shape):
        msg = f"{text}: {len(spec.shape)} dimensions are needed, {len(sizes)} were given."
        raise UserInputError(msg)
    for axis, (declared, size) in enumerate(zip(spec.shape, sizes, strict=True)):
        if isinstance(declared, int) and declared != size:
            raise UserInputError(f"{text}: dimension {axis} has to be {declared}.")
        if isinstance(declared, str) and symbols.setdefault(declared, size) != size:
            msg = (
                f"{text}: dimension {axis} is {declared!r}, which is {symbols[declared]} "
                "elsewhere; give equal sizes."
            )
            raise UserInputError(msg)


def _known_sizes(
    spec: TensorSpec, given: Mapping[str, tuple[int, ...]], symbols: Mapping[str, int]
) -> list[Dimension] | None:
    """Sizes of one input as far as they are known; symbols that are still free stay symbols."""
    if spec.name in given:
        return list(given[spec.name])
    if spec.shape is None:
        return None
    return [symbols.get(size, size) if isinstance(size, str) else size for size in spec.shape]


def _take_first_as_one(
    model: ModelSpec, sized: dict[str, list[Dimension] | None], symbols: dict[str, int]
) -> list[str]:
    """Take free first dimensions as 1; return the inputs for which that was done.

    A symbol that also stands further back is a length, not a batch: it stays open.
    """
    lengths = {size for sizes in sized.values() for size in (sizes or ())[1:]}
    taken: list[str] = []
    for spec in model.inputs:
        sizes = sized[spec.name]
        if not sizes or isinstance(sizes[0], int):
            continue
        if isinstance(sizes[0], str):
            if sizes[0] in lengths:
                continue
            symbols[sizes[0]] = 1
        sizes[0] = 1
        taken.append(spec.name)
    return taken


def _batch_note(names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> str:
    hint = option_text("--shapes", [format_shapes({name: shapes[name]}) for name in names[:1]])
    return (
        f"{listed(names, 4)}: first dimension taken as 1 (batch); give {hint} with another size "
        "if that is not what you run."
    )


def _declared(spec: TensorSpec) -> str:
    if spec.shape is None:
        return "of unknown rank"
    sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"({sizes})" if sizes else SCALAR


def _open_sizes(model: ModelSpec, sized: Mapping[str, list[Dimension] | None]) -> UserInputError:
    items: list[str] = []
    texts: list[str] = []
    letters: dict[str, None] = {}
    for spec in model.inputs:
        sizes = sized[spec.name]
        if sizes is not None and all(isinstance(size, int) for size in sizes):
            continue
        words = _words(sizes)
        items.append(f"{format_name(spec.name)}:{'x'.join(words)}")
        texts.append(f"{spec.name!r} is {_declared(spec)}")
        letters.update(dict.fromkeys(word for word in words if not word.isdigit()))
    return UserInputError(
        f"The model leaves sizes of its inputs open ({'; '.join(texts[:4])}); give "
        f"{option_text('--shapes', items)} with numbers in place of {', '.join(letters)}."
    )


def _words(sizes: list[Dimension] | None) -> list[str]:
    """A shape to type, with a word for every size that is the user's to choose."""
    if sizes is None:
        return ["A", "B", "C"]
    return [_word(size, axis, len(sizes)) for axis, size in enumerate(sizes)]


def _word(declared: Dimension, axis: int, rank: int) -> str:
    if isinstance(declared, int):
        return str(declared)
    if isinstance(declared, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,15}", declared):
        return declared.upper()
    return _LETTERS[rank][axis] if rank in _LETTERS else f"D{axis}"
