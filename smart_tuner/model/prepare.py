"""From a user's options to a workload whose tensor files lie in one folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.read import read_inputs, read_outputs
from smart_tuner.model.shapes import format_shapes, resolve_shapes
from smart_tuner.model.sources import find_pairs, own_name
from smart_tuner.model.store import PairDigests, write_workload
from smart_tuner.model.synthetic import check_ranges, synthetic_inputs
from smart_tuner.model.tensors import save_tensors, tensors_digest
from smart_tuner.model.workload import ReferencePair, Workload, WorkloadPoint
from smart_tuner.model.workload_file import read_workload_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.model.dtypes import Array
    from smart_tuner.model.shapes import ResolvedShapes
    from smart_tuner.model.sources import PairSource
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.model.synthetic import Range

DEFAULT_POINT = "default"
DEFAULT_SYNTHETIC_PAIRS = 2


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What the user says about inputs.

    Attributes:
        shapes: Sizes by input name, from ``parse_shapes``.
        inputs: Sources of inputs (see ``sources``), one a pair; relative to the current folder.
        references: Sources of trusted outputs, one for each of ``inputs``.
        held_out: Sources of inputs that the search never sees.
        held_out_references: Their trusted outputs.
        ranges: Ranges of synthetic inputs, from ``parse_ranges``.
        seed: Where synthetic inputs come from.
        synthetic_pairs: How many are made up for a point without inputs, at least 1.
        workload: A workload file, in place of all the above but ``seed`` and
            ``synthetic_pairs``.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    held_out_references: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)
    seed: int = 0
    synthetic_pairs: int = DEFAULT_SYNTHETIC_PAIRS
    workload: Path | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """One point, before anything is read."""

    name: str
    weight: float
    shapes: Mapping[str, tuple[int, ...]]
    ranges: Mapping[str, Range]
    pairs: tuple[PairSource, ...]
    held_out: tuple[PairSource, ...]


@dataclass(slots=True)
class _Writer:
    """Writes the pairs of one point, whose shapes the first pair settles."""

    model: ModelSpec
    plan: _Plan
    folder: Path
    taken: set[str] = field(default_factory=set)
    pairs: list[ReferencePair] = field(default_factory=list)
    digests: dict[tuple[str, str], PairDigests] = field(default_factory=dict)
    resolved: ResolvedShapes | None = None

    def add_source(self, source: PairSource, *, held_out: bool) -> None:
        tensors: Mapping[str, Array] = {}
        if source.inputs is None:
            if self.model.inputs:
                msg = f"Pair {source.name!r} has reference outputs but no inputs; add its inputs."
                raise UserInputError(msg)
            resolved = resolve_shapes(self.model, {})
        else:
            tensors, resolved = read_inputs(self.model, source.inputs, self.plan.shapes)
        if self.resolved is not None and resolved.shapes != self.resolved.shapes:
            msg = (
                f"Pair {source.name!r} has shapes {format_shapes(resolved.shapes)}, other pairs "
                f"{format_shapes(self.resolved.shapes)}; make a --workload file with a point "
                "for each."
            )
            raise UserInputError(msg)
        self.resolved = self.resolved or resolved
        trusted = source.outputs
        outputs = None if trusted is None else read_outputs(self.model, trusted, resolved)
        self.write(source.name, tensors, outputs, held_out=held_out)

    def write(
        self,
        name: str,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array] | None,
        *,
        held_out: bool,
    ) -> None:
        name = own_name(name, self.taken)
        pair = ReferencePair(
            name, self.folder / f"{name}.inputs", self.folder / f"{name}.outputs", held_out
        )
        save_tensors(pair.inputs, inputs)
        if outputs is None:
            # An older file of that name would pass for this pair's trusted outputs.
            pair.outputs.unlink(missing_ok=True)
        else:
            save_tensors(pair.outputs, outputs)
        digest = None if outputs is None else tensors_digest(outputs)
        self.digests[self.plan.name, name] = PairDigests(tensors_digest(inputs), digest)
        self.pairs.append(pair)


def prepare_workload(
    model: ModelSpec, options: InputOptions, folder: Path
) -> tuple[Workload, tuple[str, ...]]:
    """Read, check or make up all inputs, and write them with trusted outputs into ``folder``.

    The same model and options give the same files. Outputs of pairs without trusted ones are
    named, not written: the backend makes them. ``workload.json`` is written last, so a folder
    without it holds nothing that counts.

    Args:
        model: What is tuned.
        options: What the user said.
        folder: Made if missing; ``POINT/PAIR.inputs`` and ``POINT/PAIR.outputs`` go into it.

    Returns:
        The workload, and what the user should hear about it.

    Raises:
        UserInputError: Options contradict each other or the model, or a file is unfit.
        EnvironmentNotFit: The folder cannot be written.
    """
    folder = folder.absolute()
    if options.synthetic_pairs < 1:
        raise UserInputError("At least 1 synthetic pair is needed; ask for 1 or more.")
    points: list[WorkloadPoint] = []
    digests: dict[tuple[str, str], PairDigests] = {}
    notes: list[str] = []
    plans = _plans(options)
    for plan in plans:
        point, own_digests, own_notes = _prepare_point(model, plan, options, folder)
        points.append(point)
        digests.update(own_digests)
        prefix = f"Point {plan.name}: " if len(plans) > 1 else ""
        notes.extend(prefix + note for note in own_notes)
    workload = Workload(model, tuple(points))
    write_workload(folder, workload, digests)
    return workload, tuple(notes)


def _plans(options: InputOptions) -> tuple[_Plan, ...]:
    """The points to prepare; all sources are found before the first file is written."""
    if options.workload is None:
        here = Path.cwd()
        pairs = find_pairs(options.inputs, options.references, here)
        held_out = find_pairs(options.held_out, options.held_out_references, here)
        return (_Plan(DEFAULT_POINT, 1.0, options.shapes, options.ranges, pairs, held_out),)
    clashes = (options.shapes, options.inputs, options.references, options.held_out)
    if any((*clashes, options.held_out_references, options.ranges)):
        msg = f"{options.workload}: a workload file says all about inputs; leave the other options out."
        raise UserInputError(msg)
    path = options.workload.absolute()
    return tuple(
        _Plan(
            name=table.name,
            weight=table.weight,
            shapes={name: tuple(sizes) for name, sizes in table.shapes.items()},
            ranges={name: (low, high) for name, (low, high) in table.ranges.items()},
            pairs=find_pairs(table.inputs, table.outputs, path.parent),
            held_out=find_pairs(table.held_out, table.held_out_outputs, path.parent),
        )
        for table in read_workload_file(path)
    )


def _prepare_point(
    model: ModelSpec, plan: _Plan, options: InputOptions, folder: Path
) -> tuple[WorkloadPoint, dict[tuple[str, str], PairDigests], list[str]]:
    synthetic = not plan.pairs and bool(model.inputs)
    if plan.ranges and not synthetic:
        raise UserInputError("Ranges are for synthetic inputs only; leave them out beside inputs.")
    check_ranges(model, plan.ranges)
    if not plan.pairs and not plan.held_out:
        resolve_shapes(model, plan.shapes)  # refuses before a folder is made
    home = folder / plan.name
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{home}: cannot be made: {error.strerror or error}; choose a folder that can."
        raise EnvironmentNotFit(msg) from error
    writer = _Writer(model, plan, home)
    for held_out, sources in ((False, plan.pairs), (True, plan.held_out)):
        for source in sources:
            writer.add_source(source, held_out=held_out)
    resolved = writer.resolved or resolve_shapes(model, plan.shapes)
    notes = list(resolved.notes)
    if not plan.pairs:
        notes.extend(_write_synthetic(writer, resolved, options))
    pairs = sorted(writer.pairs, key=lambda pair: pair.held_out)
    point = WorkloadPoint(plan.name, plan.weight, resolved.shapes, tuple(pairs), synthetic)
    return point, writer.digests, notes


def _write_synthetic(
    writer: _Writer, resolved: ResolvedShapes, options: InputOptions
) -> tuple[str, ...]:
    if not writer.model.inputs:
        writer.write("no-inputs", {}, None, held_out=False)
        return ()
    count = options.synthetic_pairs
    for number in range(count):
        name = f"synthetic-{number}"
        key = (options.seed, writer.plan.name, name)
        made = synthetic_inputs(writer.model, resolved.shapes, writer.plan.ranges, key)
        writer.write(name, made, None, held_out=False)
    note = (
        f"Inputs are synthetic (seed {options.seed}, {count} pairs): speed and accuracy on real "
        "data may differ, so the verdict stays provisional; give --inputs."
    )
    return (note,)
