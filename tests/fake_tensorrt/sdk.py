"""Classes and a module that look like TensorRT's to the backend, over a simulated compiler."""

from __future__ import annotations

import json
import os
import time
from enum import IntEnum
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from smart_tuner.backends.tensorrt.builder_knobs import builder_knobs
from smart_tuner.backends.tensorrt.sdk import Sdk
from smart_tuner.simulate.effects import Failure
from tests.fake_tensorrt.config import Config, NewerConfig, RoutedConfig
from tests.fake_tensorrt.enums import make_enums
from tests.fake_tensorrt.memory import Memory
from tests.fake_tensorrt.network import Network, OnnxParser, Profile

if TYPE_CHECKING:
    from tests.fake_tensorrt.scenario import Scenario

INSTALLED = "tests.fake_tensorrt.installed"
MAGIC = "fake plan 1"


class Severity(IntEnum):
    """How bad a message is."""

    INTERNAL_ERROR = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    VERBOSE = 4


class ILogger:
    """A class to derive from."""

    Severity = Severity

    def log(self, severity: Any, msg: str) -> None:
        raise NotImplementedError


class IProgressMonitor:
    """A class to derive from."""


class IOutputAllocator:
    """A class to derive from."""


class Builder:
    """Makes configurations and plans."""

    def __init__(self, logger: Any, scenario: Scenario, module: Any) -> None:
        self._logger = logger
        self._scenario = scenario
        self._module = module

    def create_network(self, flags: int = 0) -> Network:
        return Network(flags)

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def create_builder_config(self) -> Config:
        if self._scenario.asks_to_die:
            os.abort()
        if self._scenario.routes is not None:
            return RoutedConfig(self._scenario, self._module, self._logger)
        kind = Config if self._scenario.has_precision_flags else NewerConfig
        return kind(self._scenario, self._module, self._logger)

    def build_serialized_network(self, network: Network, config: Config) -> Memory | None:
        values = self._values(config)
        compiler = self._scenario.compiler
        failure = compiler.failure(values)
        if isinstance(config, RoutedConfig) and config.build_route and self._scenario.confirms:
            said = f"[TuningBuildRoute] Using build route: {config.build_route}"
            self._logger.log(Severity.INFO, said)
        self._break(failure)
        if failure is Failure.BUILD_ERROR or not self._report(config):
            self._logger.log(Severity.ERROR, "Error Code 10: Internal Error (no implementation)")
            return None
        plan = {
            "magic": MAGIC,
            "version": self._scenario.version,
            "model": str(network.model),
            "effects": compiler.settings_in_effect(values),
            "is_mistimed": self._is_mistimed(network, config),
            "profiles": [profile.shapes for profile in config.profiles],
        }
        return Memory(json.dumps(plan, sort_keys=True).encode())

    def _is_mistimed(self, network: Network, config: Config) -> bool:
        """Take kernels' timings from the cache; returns whether they were another route's."""
        cache = config.get_timing_cache()
        if cache is None:
            return False
        route = config.build_route if isinstance(config, RoutedConfig) else ""
        key = " ".join(network.operators)
        return (
            cache.look_up(key if self._scenario.timings_leak else f"{key} {route}", route) != route
        )

    def _values(self, config: Config) -> dict[str, str]:
        """Route and builder settings that differ from a fresh configuration's."""
        fresh = type(config)(self._scenario, self._module, self._logger)
        found: dict[str, str] = {}
        if isinstance(config, RoutedConfig):
            pairs = (word[1:].partition("=") for word in config.build_route.split())
            found = {name: value for name, _, value in pairs}
        for knob in builder_knobs(self._module, fresh):  # type: ignore[arg-type]  # the fake's own
            if knob.read(config) != knob.read(fresh):  # type: ignore[arg-type]  # the fake's own
                found[knob.name] = knob.read(config)  # type: ignore[arg-type]  # the fake's own
        effects = {(effect.knob, effect.value) for effect in self._scenario.compiler.effects}
        return {name: value for name, value in found.items() if (name, value) in effects}

    def _break(self, failure: Failure | None) -> None:
        if failure in (Failure.ABORT, Failure.SEGFAULT):
            self._logger.log(Severity.ERROR, "a native assertion failed")
            os.abort()
        if failure is Failure.HANG:
            _hang()

    def _report(self, config: Config) -> bool:
        """Tell a progress monitor; returns whether it lets the build go on."""
        monitor = getattr(config, "progress_monitor", None)
        if monitor is None:
            return True
        monitor.phase_start("Building Engine", None, 1)
        goes_on: bool = monitor.step_complete("Building Engine", 0)
        monitor.phase_finish("Building Engine")
        return goes_on


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


class Inspector:
    """Describes an engine."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan

    def get_engine_information(self, _form: Any) -> str:
        return json.dumps({"Layers": self._plan["effects"]})


class Engine:
    """A plan in use."""

    refittable = False

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan

    def create_engine_inspector(self) -> Inspector:
        return Inspector(self.plan)


class Runtime:
    """Loads plans of its own version."""

    def __init__(self, logger: Any, scenario: Scenario) -> None:
        self._logger = logger
        self._version = scenario.version

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> Engine | None:
        try:
            plan = json.loads(serialized_engine)
        except ValueError:
            plan = {}
        if plan.get("magic") != MAGIC or plan["version"] != self._version:
            self._logger.log(Severity.ERROR, "Error Code 1: Serialization (version tag mismatch)")
            return None
        return Engine(plan)


class PluginRegistry:
    """Loads nothing."""

    def load_library(self, plugin_path: str) -> object:
        raise RuntimeError(f"cannot open {plugin_path}")


def make_module(scenario: Scenario) -> ModuleType:
    """A module of one scenario; child processes import it under the name that it tells."""
    module: Any = ModuleType(INSTALLED)
    vars(module).update(make_enums(has_precision_flags=scenario.has_precision_flags))
    module.__version__ = scenario.version
    module.ILogger = ILogger
    module.IOutputAllocator = IOutputAllocator
    if not scenario.has_precision_flags:
        module.IProgressMonitor = IProgressMonitor
    module.Builder = lambda logger: Builder(logger, scenario, module)
    module.OnnxParser = lambda network, logger: OnnxParser(network, logger, module.DataType)
    module.Runtime = lambda logger: Runtime(logger, scenario)
    module.get_plugin_registry = PluginRegistry
    module.init_libnvinfer_plugins = lambda logger, namespace: True
    found: ModuleType = module
    return found


def make_sdk(scenario: Scenario) -> Sdk:
    """The SDK of one scenario, as the backend holds it."""
    return Sdk(make_module(scenario), "tensorrt", scenario.version)
