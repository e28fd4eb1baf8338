"""Finding past studies in folders, the nearest networks first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.priors.distance import computing
from smart_tuner.priors.files import SUFFIX
from smart_tuner.priors.sources import is_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_DEPTH = 5
MAX_FOLDERS = 20_000
SKIPPED = frozenset({"trials", "engines", "references", "winner", "node_modules", "__pycache__"})


def find_evidence(folder: Path, *, without: Path | None = None) -> Iterator[Path]:
    """Study folders and prior files below a folder, sorted; hidden folders are left out.

    Args:
        folder: Where to look.
        without: A study folder that is left out: the one that is about to begin.
    """
    start = folder.absolute()
    seen = 0
    for place, folders, names in os.walk(start):
        here = Path(place)
        seen += 1
        if seen > MAX_FOLDERS:
            return
        if without is not None and here == without:
            folders.clear()
            continue
        yield from (here / name for name in sorted(names) if name.endswith(SUFFIX))
        if is_study(here):
            folders.clear()
            yield here
            continue
        deep = len(here.relative_to(start).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(n for n in folders if _is_open(n))


def nearest_networks(
    networks: Sequence[Mapping[str, int]], target: Mapping[str, int], count: int
) -> list[tuple[int, float]]:
    """The networks whose operators are most alike, as position and overlap, nearest first.

    Half the Manhattan distance of two histograms that sum to one is what they do not share, so
    the neighbours are those of :func:`smart_tuner.priors.distance.operator_overlap`.

    Args:
        networks: Operator histograms; empty ones are left out.
        target: Operator histogram.
        count: How many.
    """
    from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415, it takes a second
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415

    histograms = [computing(network) for network in networks]
    known = [place for place, network in enumerate(histograms) if network]
    if not (known and computing(target)):
        return []
    vectorizer = DictVectorizer(sparse=False)
    rows = [*(_shares(histograms[place]) for place in known), _shares(computing(target))]
    table = vectorizer.fit_transform(rows)
    search = NearestNeighbors(n_neighbors=min(count, len(known)), metric="manhattan")
    distances, places = search.fit(table[:-1]).kneighbors(table[-1:])
    return [
        (known[int(place)], 1 - float(distance) / 2)
        for distance, place in zip(distances[0], places[0], strict=True)
    ]


def _shares(network: Mapping[str, int]) -> dict[str, float]:
    total = sum(network.values())
    return {name: number / total for name, number in network.items()}


def _is_open(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED
