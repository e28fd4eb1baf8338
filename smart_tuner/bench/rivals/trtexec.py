"""trtexec's ``mixed`` search as version 11.1 ships it, faults and all.

``fast`` has no fault inside one session, so the product's own stands for it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.bench.rivals.history import AskTellSampler
from smart_tuner.errors import SearchExhausted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.bench.rivals.history import Choices, Told, Values


class MixedAsShipped(AskTellSampler):
    """One knob at a time, then every product of the knobs that had a positive value.

    Positive is what ran and was faster than the one measurement of the baseline, by whatever
    little, within epsilon or not. The products take whole lists of the positive knobs, have no
    cap, and try known routes again.
    """

    def __init__(self, choices: Choices, seed: int) -> None:
        super().__init__(choices, seed)
        self._positive: list[tuple[str, str]] = []
        self._routes = self._sweep()

    @override
    def tell(self, told: Told) -> None:
        changed = [item for item in told.values.items() if item not in self.default.items()]
        if len(changed) == 1 and told.measured is not None and told.measured < 0:
            self._positive.append(changed[0])

    @override
    def ask(self) -> Values:
        route = next(self._routes, None)
        if route is None:
            msg = "The sweep is complete: mixed, as shipped, has nothing more to propose."
            raise SearchExhausted(msg)
        return route

    def _sweep(self) -> Iterator[Values]:
        """Routes in trtexec's order; the second phase looks at the first when it begins."""
        for name, values in self.choices.items():
            for value in values[1:]:
                yield {**self.default, name: value}
        positive = {name for name, _ in self._positive} if len(self._positive) > 1 else set()
        lists = {name: values for name, values in self.choices.items() if name in positive}
        if lists:
            for chosen in itertools.product(*lists.values()):
                yield {**self.default, **dict(zip(lists, chosen, strict=True))}
