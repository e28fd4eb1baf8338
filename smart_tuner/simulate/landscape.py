"""The noise-free truth about every route, as fast look-up tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.effects import Failure, ValueEffect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smart_tuner.knobs.knob import Knob
    from smart_tuner.simulate.effects import Gate, PairEffect

_SEVERITY = {failure: rank for rank, failure in enumerate(Failure)}


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about one route.

    Attributes:
        log_latency: Natural logarithm of latency over the default route's latency.
        loss: Sum of the accuracy losses.
        log_build: Natural logarithm of build time over the default route's build time.
        failure: How the route breaks; the other figures are what it would have been without.
        changed: Whether the engine differs from the default's.
    """

    log_latency: float
    loss: float
    log_build: float
    failure: Failure | None
    changed: bool


class Landscape:
    """Look-up tables over knobs and effects; cheap to ask, never changed after construction."""

    __slots__ = ("defaults", "effects", "gates", "pairs")

    def __init__(
        self,
        knobs: Iterable[Knob],
        effects: Iterable[ValueEffect],
        pairs: Iterable[PairEffect],
        gates: Iterable[Gate],
    ) -> None:
        """Check the parts against each other and index them.

        Raises:
            UserInputError: A knob is listed twice or cannot be simulated, or an effect, pair or
                gate names what no knob has.
        """
        self.defaults: dict[str, str] = {}
        self.effects: dict[str, dict[str, ValueEffect]] = {}
        self.pairs: dict[tuple[str, str], list[PairEffect]] = {}
        self.gates: dict[str, Gate] = {}
        for knob in knobs:
            self._add_knob(knob)
        for effect in effects:
            self._add_effect(effect)
        for pair in pairs:
            self._add_pair(pair)
        for gate in gates:
            self._add_gate(gate)

    def active(self, values: Mapping[str, str]) -> dict[str, ValueEffect]:
        """Return the settings that reach the engine: no defaults, no no-ops, no closed gates.

        Two routes give the same engine exactly when these are equal.

        Args:
            values: Value by knob name; knobs left out have their default.

        Raises:
            UserInputError: A knob or value that this compiler does not have.
        """
        found = {}
        for name, value in values.items():
            if self.defaults.get(name) == value:
                continue
            try:
                effect = self.effects[name][value]
            except KeyError:
                raise self._unknown(name, value) from None
            if not effect.noop and (name not in self.gates or self._is_open(name, values)):
                found[name] = effect
        return found

    def truth(self, values: Mapping[str, str]) -> Truth:
        """Add up what the active settings do.

        Raises:
            UserInputError: A knob or value that this compiler does not have.
        """
        active = self.active(values)
        log_latency = loss = log_build = 0.0
        failures = []
        for effect in active.values():
            log_latency += effect.log_latency
            loss += effect.loss
            log_build += effect.log_build
            if effect.failure is not None:
                failures.append(effect.failure)
        for pair in self._joined(active):
            log_latency += pair.log_latency
            if pair.failure is not None:
                failures.append(pair.failure)
        first = min(failures, key=_SEVERITY.__getitem__) if failures else None
        return Truth(log_latency, loss, log_build, first, bool(active))

    def _joined(self, active: Mapping[str, ValueEffect]) -> Iterator[PairEffect]:
        if not self.pairs:
            return
        for name, effect in active.items():
            for pair in self.pairs.get((name, effect.value), ()):
                other = active.get(pair.second[0])
                if other is not None and other.value == pair.second[1]:
                    yield pair

    def _is_open(self, name: str, values: Mapping[str, str]) -> bool:
        gate = self.gates.get(name)
        while gate is not None:
            if values.get(gate.parent, self.defaults[gate.parent]) != gate.opened_by:
                return False
            gate = self.gates.get(gate.parent)
        return True

    def _unknown(self, name: str, value: str) -> UserInputError:
        if name not in self.effects:
            return UserInputError(
                f"Unknown knob: {name}; this simulated compiler does not list it."
            )
        legal = ", ".join((self.defaults[name], *self.effects[name]))
        return UserInputError(f"Invalid value for knob: {name}={value}; it takes {legal}.")

    def _add_knob(self, knob: Knob) -> None:
        if knob.name in self.defaults:
            msg = f"The simulated compiler lists the knob {knob.name!r} twice; keep one."
            raise UserInputError(msg)
        if knob.is_open or not knob.values:
            msg = f"The simulated knob {knob.name!r} has no list of values; give it at least one."
            raise UserInputError(msg)
        self.defaults[knob.name] = knob.default
        self.effects[knob.name] = {
            value: ValueEffect(knob.name, value) for value in knob.choices[1:]
        }

    def _add_effect(self, effect: ValueEffect) -> None:
        self._require(effect.knob, effect.value)
        if self.effects[effect.knob][effect.value] != ValueEffect(effect.knob, effect.value):
            msg = f"Two effects for {effect.knob}={effect.value}; keep one."
            raise UserInputError(msg)
        if effect.loss < 0:
            msg = f"The loss of {effect.knob}={effect.value} is negative; a loss is at least 0."
            raise UserInputError(msg)
        if effect.noop and effect != ValueEffect(effect.knob, effect.value, noop=True):
            msg = f"{effect.knob}={effect.value} is a no-op and yet does something; drop one of both."
            raise UserInputError(msg)
        self.effects[effect.knob][effect.value] = effect

    def _add_pair(self, pair: PairEffect) -> None:
        self._require(*pair.first)
        self._require(*pair.second)
        if pair.first[0] == pair.second[0]:
            msg = f"A pair needs two knobs, this one has {pair.first[0]!r} twice."
            raise UserInputError(msg)
        if any(self.effects[name][value].noop for name, value in (pair.first, pair.second)):
            msg = (
                f"The pair of {pair.first[0]!r} and {pair.second[0]!r} contains a no-op; drop it."
            )
            raise UserInputError(msg)
        self.pairs.setdefault(pair.first, []).append(pair)

    def _add_gate(self, gate: Gate) -> None:
        legal = {self.defaults.get(gate.parent), *self.effects.get(gate.parent, ())}
        if gate.child not in self.defaults or gate.opened_by not in legal:
            msg = f"The gate {gate.parent}={gate.opened_by} -> {gate.child} names an unknown setting."
            raise UserInputError(msg)
        # A child's name extends its parent's: this is the form, and it rules cycles out.
        if not gate.child.startswith(f"{gate.parent}:") or gate.child in self.gates:
            msg = f"The child {gate.child!r} needs one parent, whose name its own extends by a colon."
            raise UserInputError(msg)
        self.gates[gate.child] = gate

    def _require(self, name: str, value: str) -> None:
        if value not in self.effects.get(name, ()):
            msg = f"An effect names {name}={value}, which is no value besides the default."
            raise UserInputError(msg)
