from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.backends.onnxruntime.optimizer_log import parse_optimizer_log

NEW_FORM = """
2026 [V:onnxruntime:] Applying 2 graph transformer(s) for level 1 for up to 10 step(s).
2026 [V:onnxruntime:] Applying graph transformer ConstantFolding on step 1.
2026 [I:onnxruntime:] GraphTransformer ConstantFolding modified: 1 with status: OK
2026 [V:onnxruntime:] Applying graph transformer ReshapeFusion on step 1.
2026 [I:onnxruntime:] GraphTransformer ReshapeFusion modified: 0 with status: OK
2026 [V:onnxruntime:] Applying graph transformer ConstantFolding on step 2.
2026 [I:onnxruntime:] GraphTransformer ConstantFolding modified: 0 with status: OK
2026 [V:onnxruntime:] Applying 1 graph transformer(s) for level 3 for up to 10 step(s).
2026 [V:onnxruntime:] Applying graph transformer NchwcTransformer on step 1.
2026 [I:onnxruntime:] GraphTransformer MemcpyTransformer modified: 1 with status: OK
"""


def test_levels_and_changes_are_read_from_the_announcements() -> None:
    log = parse_optimizer_log(NEW_FORM)
    assert dict(log.levels) == {"ConstantFolding": 1, "ReshapeFusion": 1, "NchwcTransformer": 3}
    assert log.changed == {"ConstantFolding"}
    assert log.has_functions


def test_old_logs_without_announcements_are_read_from_the_results() -> None:
    old = "\n".join(line for line in NEW_FORM.splitlines() if "Applying" not in line)
    log = parse_optimizer_log(old)
    assert dict(log.levels) == {"ConstantFolding": 0, "ReshapeFusion": 0}
    assert log.changed == {"ConstantFolding"}


@given(st.lists(st.sampled_from([*NEW_FORM.splitlines(), "\x00", "GraphTransformer modified: 1"])))
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    log = parse_optimizer_log("\n".join(lines))
    assert log.changed <= log.levels.keys()


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert parse_optimizer_log(text).changed == frozenset()
