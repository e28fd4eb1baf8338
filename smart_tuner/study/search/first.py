"""Routes that are tried before the sampler is asked, such as the winner of an earlier study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.grammar import split_tokens
from smart_tuner.storages.ask import enqueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import optuna

REASON = "asked for"


def queue_first(
    study: optuna.Study, routes: Iterable[str], choices: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Queue routes in a study that has not begun; later sessions have them in the journal.

    Args:
        study: The study.
        routes: Texts such as ``-execution_mode=parallel``. What this space does not have is left
            out: the route may be of another version or model.
        choices: Choices by knob name, the default first.

    Returns:
        One line for each value that was left out.

    Raises:
        UserInputError: A text is no route.
    """
    wanted = [route_values(text) for text in routes]
    if study.get_trials(deepcopy=False):
        return ()
    lines: list[str] = []
    defaults = {name: values[0] for name, values in choices.items()}
    for values in wanted:
        known = {name: value for name, value in values.items() if value in choices.get(name, ())}
        if len(BuildRoute.of(known, defaults)):
            lines += enqueue(study, values, REASON, choices)
        else:
            lines.append("A route of --first is the default here; it was left out.")
    return tuple(lines)


def route_values(text: str) -> dict[str, str]:
    """Value by knob name of a route's text; whether the knobs exist is not asked.

    Raises:
        UserInputError: A part of it is no ``-knob=value``.
    """
    values: dict[str, str] = {}
    for token in split_tokens(text, "Cannot parse --first"):
        name, equals, value = token.text.partition("=")
        if not (equals and value and name.startswith("-") and len(name) > 1) or "[" in value:
            token.refuse(f"No part of a route: {token.shown}", "Write -knob=value.")
        values[name.removeprefix("-")] = value
    return values
