"""The page of a prior lets a stranger decide what to try, what to leave, and what is unknown."""

from collections.abc import Mapping

from smart_tuner.priors.document import Baseline, Evidence, KnobEntry, Prior, ValueEntry
from smart_tuner.report.prior_card import card
from tests.unit.priors.planting import entry

BOTH = {"a": "Intel(R) Xeon(R) Processor", "b": "AMD EPYC"}
SAME = dict.fromkeys("abc", "Some CPU")


def seen(effect: float, active: float = 0.99, measured: int = 20) -> Evidence:
    return Evidence(
        tried=20,
        measured=measured,
        failed=20 - measured,
        active=active,
        effect=effect,
        spread=0.005,
        failure=0.02,
    )


def page(devices: Mapping[str, str], found: Mapping[str, Mapping[str, Evidence]]) -> str:
    """Of studies by device, and of what they found of each switch."""
    baseline = Baseline(
        latency_ms=27.97, half_width=0.05, values={"threads": "4"}, processors="4 <b>"
    )
    studies = tuple(entry(n, device=device, baseline=baseline) for n, device in devices.items())
    knobs = {
        name: KnobEntry(default="off", values={"on": ValueEntry(evidence=dict(lines))})
        for name, lines in found.items()
    }
    return "\n".join(card(Prior(studies=studies, knobs=knobs)))


def section(text: str, title: str) -> str:
    assert f"\n## {title}\n" in text
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def cells(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| `{name}=on`"))
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def everywhere(effect: float, active: float = 0.99) -> dict[str, Evidence]:
    return {study: seen(effect, active) for study in SAME}


def test_only_what_is_clearly_likelier_faster_is_to_be_tried_first() -> None:
    mixed = {"a": seen(-0.05), "b": seen(0.2), "c": seen(0.2)}
    found = {"large": everywhere(-0.2), "small": everywhere(-0.05), "mixed": mixed}
    text = page(SAME, {**found, "idle": everywhere(0.0, 0.01), "tiny": everywhere(-0.004)})
    first = section(text, "Try these first")
    assert first.index("`large=on`") < first.index("`small=on`")
    assert [f"`{name}=on`" in first for name in ("mixed", "idle", "tiny")] == [False] * 3
    assert "Nothing else has a good chance" in first
    assert "--route -large=on" in text


def test_without_hope_it_says_so_instead_of_filling_a_list() -> None:
    text = page(SAME, {"bad": everywhere(0.2), "idle": everywhere(0.0, 0.01)})
    first = section(text, "Try these first")
    assert "No value here has a good chance" in first
    assert "=on" not in first
    assert "0 values to try first, 0 more if trials are cheap, 1 better left alone" in text
    assert (
        "Try first: nothing. If trials are cheap: nothing. Leave alone above all: `bad=on`."
        in text
    )
    assert "--route -KNOB=VALUE" in text


def test_a_row_has_the_chance_of_all_three_and_sizes_both_ways() -> None:
    text = page(SAME, {"good": everywhere(-0.05)})
    name, faster, slower, same, told = cells(section(text, "Try these first"), "good")
    assert name == "`good=on` instead of `off`"
    shares = [int(cell.partition(" %")[0]) for cell in (faster, slower, same)]
    assert 99 <= sum(shares) <= 101
    assert faster.endswith("by -4.7 %")
    assert slower.endswith("\\*")
    assert told == "a -4.9 % (20), b -4.9 % (20), c -4.9 % (20)"


def test_what_each_study_found_is_told_with_its_doubts() -> None:
    lines = {"a": seen(-0.05), "b": seen(-0.02, 0.3), "c": seen(0.0, 0.02)}
    text = page(SAME, {"good": lines, "gone": {"a": seen(0.3), "b": seen(0.0, 0.2, 0)}})
    assert cells(text, "good")[-1] == "a -4.9 % (20), b -2.0 %? (20), c 0 % (20)"
    assert cells(text, "gone")[-1] == "a +35 % (20), b failed"
    other = page(SAME, {"moved": {"a": seen(0.3), "b": seen(0.0)}})
    assert cells(other, "moved")[-1] == "a +35 % (20), b other default (20)"


def test_platforms_that_disagree_are_not_averaged_in_silence() -> None:
    text = page(BOTH, {"x": {"a": seen(0.45), "b": seen(-0.05)}, "y": {"a": seen(0.1)}})
    row = cells(section(text, "Worth a try only if trials are cheap"), "x")[-1]
    assert row.startswith("**platforms disagree: Intel Xeon 57 % slower, AMD EPYC 5 % faster**")
    assert row.endswith("Intel Xeon: a +57 % (20); AMD EPYC: b -4.9 % (20)")
    assert "These studies come from 2 platforms" in text
    assert text.count("**platforms disagree") == 1
    assert "If trials are cheap: `x=on` (platforms disagree)." in text
    assert "platforms" not in page(SAME, {"x": everywhere(-0.1)}).split("## What it does not")[0]


def test_what_to_leave_alone_is_in_order_of_the_expected_slow_down() -> None:
    sizes = {f"k{n}": 0.05 * n for n in range(1, 13)}
    found = {name: everywhere(size) for name, size in sizes.items()}
    rare = {"rare": everywhere(0.9, 0.11)}
    left = section(page(SAME, {**found, **rare}), "Better left alone")
    places = [left.index(f"`k{n}=on`") for n in range(12, 0, -1)]
    assert places == sorted(places)
    assert "chance of slower times size, comes first" in left
    assert left.index("<details>") < left.index("`k1=on`")


def test_what_does_nothing_is_folded_and_named() -> None:
    text = page(SAME, {f"k{n}": everywhere(0.0, 0.01) for n in range(9)})
    assert "<details><summary>9 values probably do nothing</summary>\n\n`k0=on`, `k1=on`" in text


def test_it_says_what_effects_are_relative_to_and_what_it_does_not_know() -> None:
    text = page(SAME, {"good": everywhere(-0.05)})
    row = "| a | Some | 4 &lt;b&gt; | 27.97 ms | `threads=4` | 10 nodes: 8 Conv, 2 Relu |"
    assert row in section(text, "Compared with what")
    unknown = section(text, "What it does not know")
    for matter in (
        "a +-5.1 %",
        "the models' own shapes",
        "mostly Conv, Relu",
        "only work together",
    ):
        assert matter in unknown
    for word in ("routes", "good hope", "lets go", "sign "):
        assert word not in text
