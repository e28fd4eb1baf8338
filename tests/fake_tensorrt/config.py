"""The fake ``IBuilderConfig``: takes settings, and gives them back as the real one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_tuner.knobs.read import read_database
from tests.fake_tensorrt.memory import Memory

if TYPE_CHECKING:
    from tests.fake_tensorrt.scenario import Scenario

WHOLE_GPU = 80 << 30
HIGHEST_LEVEL = 5


class TimingCache:
    """Timings that one version wrote."""

    def __init__(self, data: bytes, version: str) -> None:
        lines = data.decode(errors="replace").splitlines()
        self.is_own = not lines or lines[0] == version
        pairs = (line.partition("\t") for line in lines[1:] if self.is_own)
        self._timings = {key: route for key, _, route in pairs}
        self._version = version

    def serialize(self) -> Memory:
        lines = (f"{key}\t{route}" for key, route in self._timings.items())
        return Memory("\n".join((self._version, *lines)).encode())

    def look_up(self, key: str, route: str) -> str:
        """The route whose timing stands under a key; this one's if there was none."""
        return self._timings.setdefault(key, route)

    def queryKeys(self) -> list[object]:  # noqa: N802
        return list(self._timings)


class Config:
    """Settings that every version has."""

    def __init__(self, scenario: Scenario, module: Any, logger: Any) -> None:
        self.scenario = scenario
        self.module = module
        self.logger = logger
        self.avg_timing_iterations = 1
        self.hardware_compatibility_level = module.HardwareCompatibilityLevel.NONE
        self.profiling_verbosity = module.ProfilingVerbosity.LAYER_NAMES_ONLY
        self.profiles: list[Any] = []
        self._level = 3
        self._streams = -1
        self._flags = {module.BuilderFlag.TF32}
        self._pools = dict.fromkeys(module.MemoryPoolType, WHOLE_GPU)
        self._sources = sum(1 << int(source) for source in module.TacticSource)
        self._features = {module.PreviewFeature.RUNTIME_ACTIVATION_RESIZE_10_10}
        self._cache: TimingCache | None = None

    @property
    def builder_optimization_level(self) -> int:
        return self._level

    @builder_optimization_level.setter
    def builder_optimization_level(self, level: int) -> None:
        self._level = min(level, HIGHEST_LEVEL)

    @property
    def max_aux_streams(self) -> int:
        return self._streams

    @max_aux_streams.setter
    def max_aux_streams(self, count: int) -> None:
        if count >= 0:
            self._streams = count

    def set_flag(self, flag: Any) -> None:
        self._flags.add(flag)

    def clear_flag(self, flag: Any) -> None:
        self._flags.discard(flag)

    def get_flag(self, flag: Any) -> bool:
        return flag in self._flags

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        self._pools[pool] = pool_size

    def get_memory_pool_limit(self, pool: Any) -> int:
        return self._pools[pool]

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        self._sources = tactic_sources
        return True

    def get_tactic_sources(self) -> int:
        return self._sources

    def set_preview_feature(self, feature: Any, enable: bool) -> None:
        (self._features.add if enable else self._features.discard)(feature)

    def get_preview_feature(self, feature: Any) -> bool:
        return feature in self._features

    def add_optimization_profile(self, profile: Any) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1

    def create_timing_cache(self, serialized_timing_cache: bytes) -> TimingCache:
        return TimingCache(serialized_timing_cache, self.scenario.version)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        if cache.is_own or ignore_mismatch:
            self._cache = cache
        return cache.is_own

    def get_timing_cache(self) -> TimingCache | None:
        return self._cache


class NewerConfig(Config):
    """Has what came with version 10."""

    def __init__(self, scenario: Scenario, module: Any, logger: Any) -> None:
        super().__init__(scenario, module, logger)
        self.l2_limit_for_tiling = 0
        self.max_num_tactics = -1
        self.progress_monitor: Any = None
        self.tiling_optimization_level = module.TilingOptimizationLevel.NONE


class RoutedConfig(NewerConfig):
    """Has build routes; the setter never says whether it took one."""

    _route = ""

    @property
    def all_build_routes(self) -> str:
        return self.scenario.routes or ""

    @property
    def build_route(self) -> str:
        return self._route

    @build_route.setter
    def build_route(self, text: str) -> None:
        words = text.split()
        if not self.scenario.routes or set(words) & set(self.scenario.rejected):
            said = (
                f"[config.cpp::setBuildRoute::1] Error Code 3: API Usage Error (bad route: {text})"
            )
            self.logger.log(self.module.ILogger.Severity.ERROR, said)
            return
        database = read_database(self.scenario.routes)
        kept = []
        for word in words:
            name = word[1:].partition("=")[0]
            is_kept = word not in self.scenario.overridden
            kept.append(word if is_kept else f"-{name}={database[name].default}")
        self._route = " ".join(kept)
