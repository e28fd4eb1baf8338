"""The module that child processes import: the SDK of the scenario that the environment names."""

from __future__ import annotations

from tests.fake_tensorrt.scenario import current_scenario
from tests.fake_tensorrt.sdk import make_module

# Written out, not looked up on demand: since Python 3.12 protocols ask for what stands in a module.
globals().update(vars(make_module(current_scenario())))
