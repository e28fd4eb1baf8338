"""Values for TensorRT's open integer knobs, which list none.

What such a knob takes stands in its help alone. The table below repeats what the help of tuner
2.19.45 says, knob by knob; a knob gets its values only if its help still says so, since a number
may mean something else in another version. Where the help names no numbers, as for the loop steps
of attention kernels, there are no values either, and a study varies the knob only with
``--values``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from smart_tuner.knobs.database import KnobDatabase


@dataclass(frozen=True, slots=True)
class IntegerValues:
    """What an open knob may be set to.

    Attributes:
        values: In the order of the help; the default need not be among them.
        says: Pattern that the help, in lower case, must match for the values to hold.
    """

    values: tuple[str, ...]
    says: str


_ACCUMULATION = IntegerValues(("1", "2"), r"1: fp16, 2: fp32")

INTEGER_VALUES = {
    # 0 the compiler decides, 1 no fusion, 2 and more the largest fusion.
    "peep:max": IntegerValues(("1", "2", "4"), r"1: no peep\w*.*, 2( and more|\+): max"),
    # 1 pointwise, 2 pointwise and reshape.
    "kgen:red_epilog_fusion:lvl": IntegerValues(("1", "2"), r"1: (pw|pointwise).*2: (pw|point)"),
    # A count: a quarter, half, double and four times the default of 20.
    "cask_fusion:num_tactics": IntegerValues(("5", "10", "40", "80"), r"tactics to (auto|time)"),
    # 0 automatic, 1 warp, 2 block, 4 tile.
    "kgen:reduction_algo": IntegerValues(("1", "2", "4"), r"1: warp.*2: block.*4: tile"),
    # 0 automatic, 16 reduction, 32 sort, 64 multi-CTA.
    "kgen:topk_algo": IntegerValues(("16", "32", "64"), r"16: reduc.*32: sort.*64: multi-cta"),
    # 0 automatic, 1 FP16, 2 FP32.
    "mha_fusion:v2:bmm1_acc": _ACCUMULATION,
    "mha_fusion:v2:bmm2_acc": _ACCUMULATION,
    # 0 automatic, 1 or 2 groups.
    "mha_fusion:v2:compute_groups": IntegerValues(("1", "2"), r"0: auto\w*, 1( or|,) 2\b"),
    # 0 automatic, 1 use it, 2 do without.
    "mha_fusion:v2:mutex": IntegerValues(("1", "2"), r"1: use, 2: do"),
    # A workaround: 0 automatic, 1 apply, 2 do not.
    "mha_fusion:v2:war": IntegerValues(("0", "1", "2"), r"0: auto\w*, 1: apply, 2: do"),
    # 0 automatic, 1 most work items, 2 fewer blocks, 3 by size.
    "mha_fusion:v2:ws:grid_strategy": IntegerValues(("1", "2", "3"), r"3: (size|by size)"),
}


def with_integer_values(database: KnobDatabase) -> KnobDatabase:
    """Give open knobs without values those of the table, where their help agrees with it."""
    return KnobDatabase(
        tuple(
            replace(knob, values=found.values)
            if (found := INTEGER_VALUES.get(knob.name)) is not None
            and knob.is_open
            and not knob.values
            and re.search(found.says, knob.help.lower())
            else knob
            for knob in database
        ),
        database.tuner_version,
    )
