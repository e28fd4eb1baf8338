"""Which operators a knob concerns: a soft, shipped hint that needs no earlier study."""

from __future__ import annotations

import fnmatch
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RULES_FILE = "relevance-1.toml"
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """What some knobs concern.

    Attributes:
        about: For people.
        names: Shell patterns of knob names.
        needs: Groups of operators; all of one group must occur.
    """

    about: str
    names: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...]

    def matches(self, knob: str) -> bool:
        """Whether a knob is one of these."""
        return any(fnmatch.fnmatchcase(knob, pattern) for pattern in self.names)

    def acts_on(self, operators: Iterable[str]) -> bool:
        """Whether a network with these operators, domains left aside, has what they need."""
        known = set(operators)
        return any(known.issuperset(group) for group in self.needs)

    @property
    def sentence(self) -> str:
        """Why a knob of this rule is unlikely to act."""
        groups = [" with ".join(group) for group in self.needs]
        more = " ..." if len(groups) > SHOWN else ""
        return f"concerns {self.about}, and the network has no {', '.join(groups[:SHOWN])}{more}"


@lru_cache(maxsize=1)
def relevance_rules() -> tuple[Rule, ...]:
    """The shipped rules, the first that matches a name counts."""
    text = (files("smart_tuner.priors") / "data" / RULES_FILE).read_text(encoding="utf-8")
    return tuple(
        Rule(rule["about"], tuple(rule["names"]), tuple(map(tuple, rule["needs"])))
        for rule in tomllib.loads(text)["rules"]
    )


@lru_cache(maxsize=1)
def relevance_version() -> int:
    """Version of the shipped rules; it goes up whenever a rule changes."""
    text = (files("smart_tuner.priors") / "data" / RULES_FILE).read_text(encoding="utf-8")
    return int(tomllib.loads(text)["version"])


def rule_of(knob: str) -> Rule | None:
    """What a knob concerns; ``None`` where its name does not say."""
    return next((rule for rule in relevance_rules() if rule.matches(knob)), None)


def unlikely(knobs: Iterable[str], operators: Mapping[str, int]) -> dict[str, str]:
    """Knobs that are unlikely to act on a network, each with the reason.

    Args:
        knobs: Knob names.
        operators: How often each operator occurs, ``domain::Op`` outside the ONNX domain; an
            empty histogram says nothing.
    """
    if not operators:
        return {}
    plain = {name.rpartition("::")[2] for name in operators}
    found = {}
    for knob in knobs:
        rule = rule_of(knob)
        if rule is not None and not rule.acts_on(plain):
            found[knob] = rule.sentence
    return found
