"""Builder knobs: settings of ``IBuilderConfig`` and its flags, whatever the version has of them.

Nothing is read off a version number: a setting is a knob if the installed SDK has it, its default
is what a fresh configuration says, and its values are those that read back as they were set.

Names: ``builder:...`` for numbers, ``flag:...``, ``tactic_source:...`` and ``preview:...`` for
members of the SDK's enums, in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder_settings import (
    AUTO,
    FLAGS,
    NUMBERS,
    PRECISION_FLAGS,
    PREVIEW_FEATURES,
    SWITCH,
    TACTIC_SOURCES,
    TILING_HELP,
    WORKSPACE_HELP,
    WORKSPACE_VALUES,
    Number,
    Switch,
)
from smart_tuner.errors import NotApplied, UserInputError
from smart_tuner.knobs.text import did_you_mean, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smart_tuner.backends.tensorrt.sdk import Sdk

PREFIXES = ("builder:", "flag:", "tactic_source:", "preview:")
PRECISION_KNOBS = tuple(f"flag:{name.lower()}" for name in PRECISION_FLAGS)

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class BuilderKnob:
    """One setting of a configuration.

    Attributes:
        name: Knob name.
        values: Values to offer; the SDK may refuse some.
        about: What it does, and when it does nothing.
        read: Its value on a configuration.
        write: Sets a value other than ``auto``, which is the state of a fresh configuration.
        is_open: Whether any whole number may be given.
        default: ``auto`` where a fresh configuration's reading depends on the machine; else empty.
    """

    name: str
    values: tuple[str, ...]
    about: Switch
    read: Callable[[api.BuilderConfig], str]
    write: Callable[[api.BuilderConfig, str], None]
    is_open: bool = False
    default: str = ""

    def check(self, value: str) -> None:
        """Refuse what is no value of this knob in any version.

        Raises:
            UserInputError: Names the knob and what it takes.
        """
        is_number = self.is_open and (value == AUTO or value.isdecimal())
        if value not in self.values and not is_number:
            takes = f"{AUTO} or a whole number" if self.is_open else ", ".join(self.values)
            msg = f"{self.name}={shown(value)}: it takes {takes}."
            raise UserInputError(msg)


def is_builder_knob(name: str) -> bool:
    """Whether a setting of a base or route is a builder knob, in any version."""
    return name.startswith(PREFIXES)


def wants_weak_types(settings: Mapping[str, str]) -> bool:
    """Whether a precision flag is on, which a strongly typed network would refuse."""
    return any(settings.get(name) == "on" for name in PRECISION_KNOBS)


def builder_knobs(module: api.Module, config: api.BuilderConfig) -> Iterator[BuilderKnob]:
    """The settings that this SDK has, in a fixed order."""
    yield from (_number(number) for number in NUMBERS if hasattr(config, number.attribute))
    if isinstance(config, api.HasTiling) and isinstance(module, api.HasTilingLevels):
        yield _tiling(module.TilingOptimizationLevel)
    pool = api.member(module.MemoryPoolType, "WORKSPACE")
    if pool is not None:
        yield _workspace(pool)
    for name, about in FLAGS.items():
        flag = api.member(module.BuilderFlag, name)
        if flag is not None:
            yield _flag(flag, about)
    for name, source in module.TacticSource.__members__.items():
        sentence = TACTIC_SOURCES.get(name, f"Try the kernels of {name}.")
        yield _tactic_source(source, Switch(sentence))
    for name, feature in module.PreviewFeature.__members__.items():
        yield _preview(feature, PREVIEW_FEATURES.get(name, Switch(f"Preview feature {name}.")))


def apply_builder_knobs(sdk: Sdk, config: api.BuilderConfig, settings: Mapping[str, str]) -> None:
    """Set builder knobs on a fresh configuration and read each one back.

    Args:
        sdk: The SDK that made the configuration.
        config: Nothing was set on it yet.
        settings: Builder knob to value, base and route together.

    Raises:
        UserInputError: The installed version has no such knob, or the text is no value of it.
        NotApplied: A knob reads back otherwise.
    """
    known = {knob.name: knob for knob in builder_knobs(sdk.module, config)}
    for name, value in settings.items():
        if name not in known:
            msg = f"Unknown knob: {shown(name)} ({sdk}). {did_you_mean(name, known)}"
            raise UserInputError(msg)
        known[name].check(value)
        if value not in (AUTO, known[name].read(config)):
            read = set_and_read(known[name], config, value)
            if read != value:
                msg = f"{sdk} did not take {name}={value}: it reads back as {read}"
                raise NotApplied(msg)


def set_and_read(knob: BuilderKnob, config: api.BuilderConfig, value: str) -> str:
    """Set a value and return what the configuration says then."""
    try:
        knob.write(config, value)
    except (RuntimeError, TypeError, ValueError) as error:
        return f"an error ({' '.join(str(error).split())})"
    return knob.read(config)


def _number(number: Number) -> BuilderKnob:
    def read(config: api.BuilderConfig) -> str:
        value = int(getattr(config, number.attribute))
        return str(value) if value >= 0 else AUTO

    def write(config: api.BuilderConfig, value: str) -> None:
        setattr(config, number.attribute, int(value))

    name = f"builder:{number.attribute.removeprefix('builder_')}"
    return BuilderKnob(name, number.values, Switch(number.help), read, write, is_open=True)


def _tiling(levels: api.EnumType) -> BuilderKnob:
    members = {name.lower(): level for name, level in levels.__members__.items()}

    def read(config: api.BuilderConfig) -> str:
        return _tiled(config).tiling_optimization_level.name.lower()

    def write(config: api.BuilderConfig, value: str) -> None:
        _tiled(config).tiling_optimization_level = members[value]

    name = "builder:tiling_optimization_level"
    return BuilderKnob(name, tuple(members), Switch(TILING_HELP), read, write)


def _tiled(config: api.BuilderConfig) -> api.HasTiling:
    if not isinstance(config, api.HasTiling):
        msg = "this configuration has no tiling level"
        raise TypeError(msg)
    return config


def _workspace(pool: api.EnumMember) -> BuilderKnob:
    def read(config: api.BuilderConfig) -> str:
        return str(config.get_memory_pool_limit(pool) // _MIB)

    def write(config: api.BuilderConfig, value: str) -> None:
        config.set_memory_pool_limit(pool, int(value) * _MIB)

    name, about = "builder:workspace_mib", Switch(WORKSPACE_HELP)
    return BuilderKnob(name, WORKSPACE_VALUES, about, read, write, is_open=True, default=AUTO)


def _flag(flag: api.EnumMember, about: Switch) -> BuilderKnob:
    def read(config: api.BuilderConfig) -> str:
        return SWITCH[config.get_flag(flag)]

    def write(config: api.BuilderConfig, value: str) -> None:
        (config.set_flag if value == "on" else config.clear_flag)(flag)

    return BuilderKnob(f"flag:{flag.name.lower()}", SWITCH, about, read, write)


def _tactic_source(source: api.EnumMember, about: Switch) -> BuilderKnob:
    bit = 1 << int(source)

    def read(config: api.BuilderConfig) -> str:
        return SWITCH[bool(config.get_tactic_sources() & bit)]

    def write(config: api.BuilderConfig, value: str) -> None:
        mask = config.get_tactic_sources() & ~bit
        config.set_tactic_sources(mask | bit if value == "on" else mask)

    return BuilderKnob(f"tactic_source:{source.name.lower()}", SWITCH, about, read, write)


def _preview(feature: api.EnumMember, about: Switch) -> BuilderKnob:
    def read(config: api.BuilderConfig) -> str:
        return SWITCH[config.get_preview_feature(feature)]

    def write(config: api.BuilderConfig, value: str) -> None:
        config.set_preview_feature(feature, value == "on")

    return BuilderKnob(f"preview:{feature.name.lower()}", SWITCH, about, read, write)
