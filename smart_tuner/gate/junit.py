"""The outcome of the gate as JUnit XML, which every CI server reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from smart_tuner.gate.outcome import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.gate.outcome import GateOutcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcome: GateOutcome) -> str:
    """One suite with two cases: accuracy and performance."""
    cases = list(_cases(outcome))
    failures = sum(kind == "failure" for _, kind, _ in cases)
    skipped = sum(kind == "skipped" for _, kind, _ in cases)
    head = f'<testsuite name={_attribute("smart-tuner")} tests="{len(cases)}" '
    head += f'failures="{failures}" errors="0" skipped="{skipped}" time="{outcome.seconds:.3f}">'
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", head]
    for name, kind, text in cases:
        place = f"<testcase classname={_attribute(outcome.name)} name={_attribute(name)}>"
        inner = (
            f"<{kind} message={_attribute(text)}/>"
            if kind
            else f"<system-out>{_text(text)}</system-out>"
        )
        lines.append(f"{place}{inner}</testcase>")
    return "\n".join([*lines, "</testsuite>", "</testsuites>", ""])


def _cases(outcome: GateOutcome) -> Iterator[tuple[str, str, str]]:
    """Name, what stands in it (failure, skipped or nothing) and the text of each case."""
    if outcome.answer is Answer.DRY:
        yield "retuning", "", outcome.sentence
        return
    is_broken = outcome.answer is Answer.BROKEN
    yield "accuracy", "failure" if is_broken else "", outcome.broken or "within epsilon"
    kinds = {Answer.SLOWER: "" if outcome.is_good else "failure", Answer.PASSED: ""}
    kind = kinds.get(outcome.answer, "skipped")
    about = f" {outcome.comparison.sentence}" if outcome.comparison else ""
    yield "performance", kind, f"{outcome.sentence}{about}"


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("?", text))


def _attribute(text: str) -> str:
    return quoteattr(" ".join(_NOT_XML.sub("?", text).split()))
