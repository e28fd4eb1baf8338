"""Names of free sizes that stand for different sizes.

Some exporters name every size that they do not know ``?``. To the compiler equal names are equal
sizes, and once parsed a name cannot be taken back; so such a model is parsed from a copy.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.model.external import external_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from smart_tuner.backends.tensorrt import api

    Point = Mapping[str, tuple[int, ...]]


def clashing_names(network: api.NetworkDefinition, points: Sequence[Point]) -> frozenset[str]:
    """Names of dimensions that have two sizes within one point.

    Args:
        network: The parsed network.
        points: Shapes of each workload point.
    """
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    named = [
        (tensor.name, axis, label)
        for tensor in inputs
        for axis, size in enumerate(tuple(tensor.shape))
        if size == -1 and (label := tensor.get_dimension_name(axis))
    ]
    clashing: set[str] = set()
    for point in points:
        sizes: dict[str, int] = {}
        for name, axis, label in named:
            # A shape of another rank is refused when profiles are settled.
            for size in point.get(name, ())[axis : axis + 1]:
                if sizes.setdefault(label, size) != size:
                    clashing.add(label)
    return frozenset(clashing)


@contextmanager
def without_names(model: Path, names: Collection[str], workdir: Path) -> Iterator[Path]:
    """Give a copy of a model whose inputs lack some dimension names, for as long as it is parsed.

    Args:
        model: The model; weights beside it are linked, not copied.
        names: Names to leave out.
        workdir: Where the copy may lie.
    """
    import onnx

    proto = onnx.load(model, load_external_data=False)
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in names:
                size.ClearField("dim_param")
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        for path in external_files(proto, model):
            link = Path(folder, path.relative_to(model.parent))
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        copy = Path(folder, model.name)
        copy.write_bytes(proto.SerializeToString())
        yield copy
