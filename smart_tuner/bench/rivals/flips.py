"""Random routes near the default: the bar that any search has to clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.bench.rivals.history import AskTellSampler

if TYPE_CHECKING:
    from smart_tuner.bench.rivals.history import Choices, Told, Values


class FlipSampler(AskTellSampler):
    """The default with a fixed number of knobs, drawn at random, set to another value."""

    def __init__(self, choices: Choices, flips: int, seed: int) -> None:
        super().__init__(choices, seed)
        self._flips = flips

    @override
    def tell(self, told: Told) -> None:
        """Nothing is learned."""

    @override
    def ask(self) -> Values:
        return self.near_default(self._flips)


def three_flips(choices: Choices, seed: int) -> FlipSampler:
    """Three flips: few routes break."""
    return FlipSampler(choices, 3, seed)


def eight_flips(choices: Choices, seed: int) -> FlipSampler:
    """Eight flips: each trial sees more values, and a third of the trials break."""
    return FlipSampler(choices, 8, seed)
