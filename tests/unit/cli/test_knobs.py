"""``knobs`` and ``routes`` on a machine without the compiler whose knobs are asked for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.unit.cli.calling import call
from tests.unit.precision.networks import mixed_network, saved

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

BUNDLED = ("--database", "tensorrt-2.19.45")


def test_the_bundled_database_is_listed_in_groups() -> None:
    ended = call("knobs", *BUNDLED)
    assert ended.code == 0
    lines = ended.out.splitlines()
    heads = [line for line in lines if line.startswith("# ")]
    assert "# build route, kgen: 40 knobs" in heads
    assert "# build route, mha_fusion: 49 knobs" in heads
    start = lines.index("# build route, kgen: 40 knobs") + 1
    assert all(line.startswith(("kgen:", "    ")) for line in lines[start : start + 40])
    assert lines[-1] == "209 of 209 knobs, tuner 2.19.45; 6 off unless asked for"


def test_the_bundled_database_can_be_searched_and_printed_as_data() -> None:
    ended = call("knobs", *BUNDLED, "topk_algo", "--json")
    (knob,) = json.loads(ended.out)["knobs"]
    assert knob["name"] == "kgen:topk_algo"
    assert knob["values"] == ["16", "32", "64"]
    assert knob["source"] == "build route"


def test_routes_over_open_knobs_are_planned_from_the_bundled_database() -> None:
    expression = "-kgen:topk_algo=[16|32] -copy_ppg=[on|off]"
    ended = call("routes", *BUNDLED, "--expression", expression, "--mode", "full", "--json")
    assert json.loads(ended.out)["count"] == 2 * 2 + 1  # and the default route


def test_a_file_of_that_name_comes_before_the_bundled_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    option = {"option": "-x", "allowed_values": "-x=[on|off]", "default_value": "on"}
    text = json.dumps({"tuner_version": "9", "tuner_options": [option]})
    (tmp_path / BUNDLED[1]).write_text(text, encoding="utf-8")
    assert call("knobs", *BUNDLED).out.endswith("1 of 1 knobs, tuner 9\n")


def test_without_the_compiler_the_error_names_both_ways_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("tensorrt", "tensorrt_bindings"):
        # What Python does for a module that is not there.
        monkeypatch.setitem(sys.modules, module, None)
    for command in (("knobs",), ("routes", "--expression", "-x=on")):
        ended = call(*command, "--backend", "tensorrt")
        assert ended.code == 3
        assert "pip install 'smart-tuner[tensorrt]'" in ended.err
        assert "--database tensorrt-2.19.45" in ended.err
        assert len(ended.err.splitlines()) == 1


def test_regions_of_a_network_are_listed_with_what_they_may_be(tmp_path: Path) -> None:
    model = saved(mixed_network(), tmp_path / "mixed.onnx")
    ended = call("knobs", "--model", model, "--regions", "2", "precision.")
    lines = ended.out.splitlines()
    assert lines[0] == "# precision: 2 knobs"
    assert lines[1].startswith("precision.stem/conv = keep | fp16 | int8")
    assert "Conv" in lines[2]
    assert call("knobs", "--regions", "2").code == 2
    refused = call("knobs", "--model", model, "--regions", "9")
    assert refused.code == 2
    assert "from 1 to 5" in refused.err
