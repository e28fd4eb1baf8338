"""Reading base and route into session settings, with errors that name the nearest knob."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.backends.onnxruntime.cuda_options import CUDA_OPTION_BY_NAME, PREFIX
from smart_tuner.backends.onnxruntime.option import SWITCH, Kind
from smart_tuner.backends.onnxruntime.settings import IO, PROVIDERS, SessionSettings
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue
    from smart_tuner.backends.onnxruntime.option import Option
    from smart_tuner.route.build_route import BuildRoute

FREE_DIMENSION = "free_dimension_override:"
PASS_THROUGH = ("io", "custom_op_library", f"{FREE_DIMENSION}NAME")


@dataclass(slots=True)
class _Draft:
    """Settings while they are read."""

    fields: dict[str, object] = field(default_factory=dict)
    switches: dict[str, bool] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    config: dict[str, str] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, str] = field(default_factory=dict)
    free_dimensions: dict[str, int] = field(default_factory=dict)


def resolve_settings(
    base: Mapping[str, str], route: BuildRoute, catalogue: Catalogue
) -> SessionSettings:
    """Combine base and route; the route wins.

    Args:
        base: Knob or pass-through name to value.
        route: Knob values on top.
        catalogue: What the installed runtime knows.

    Raises:
        UserInputError: A name is unknown, or a value is not one that it takes.
    """
    draft = _Draft()
    for name, value in {**base, **route.values}.items():
        _read(draft, name, value, catalogue)
    if draft.fields.get("provider") != "cuda":
        of_cuda = [f"{PREFIX}{name}" for name in draft.provider_options]
        if "io" in draft.fields:
            of_cuda.append("io")
        if of_cuda:
            msg = f"{min(of_cuda)} needs --backend onnxruntime-cuda."
            raise UserInputError(msg)
    switches = {**dict(SessionSettings().switches), **draft.switches}
    return SessionSettings(
        **draft.fields,  # type: ignore[arg-type]  # one field each, checked where they are read
        switches=tuple(sorted(switches.items())),
        disabled_optimizers=tuple(sorted(draft.disabled)),
        config_entries=tuple(sorted(draft.config.items())),
        run_entries=tuple(sorted(draft.run.items())),
        provider_options=tuple(sorted(draft.provider_options.items())),
        free_dimensions=tuple(sorted(draft.free_dimensions.items())),
    )


def reference_settings(settings: SessionSettings) -> SessionSettings:
    """The most literal session of the same model: nothing optimized, one thread, CPU."""
    switches = {**dict(SessionSettings().switches), "use_deterministic_compute": True}
    return SessionSettings(
        graph_optimization_level="disable",
        intra_threads=1,
        inter_threads=1,
        switches=tuple(sorted(switches.items())),
        free_dimensions=settings.free_dimensions,
        custom_op_library=settings.custom_op_library,
    )


def _read(draft: _Draft, name: str, value: str, catalogue: Catalogue) -> None:
    """Enter one setting."""
    option = catalogue.option(name)
    kind, _, rest = name.partition(":")
    if option is not None:
        _read_option(draft, option, value)
    elif name in {"threads:intra", "threads:inter"}:
        draft.fields[f"{rest}_threads"] = _threads(name, value)
    elif (kind == "optimizer" and rest in catalogue.optimizers) or (
        kind == "rule" and rest in catalogue.rules
    ):
        if not _is_on(name, value):
            draft.disabled.add(rest)
    elif name in CUDA_OPTION_BY_NAME:
        cuda = CUDA_OPTION_BY_NAME[name]
        draft.provider_options[cuda.key] = _one_of(name, value, cuda.values)
    else:
        _read_pass_through(draft, name, value, catalogue)


def _read_option(draft: _Draft, option: Option, value: str) -> None:
    if not (option.is_open and value.isdecimal()):
        _one_of(option.name, value, option.values)
    if option.kind is Kind.ATTRIBUTE and option.values == SWITCH:
        draft.switches[option.target] = value == "on"
    elif option.kind is Kind.ATTRIBUTE:
        draft.fields[option.target] = value
    elif value != option.default:
        if option.kind is Kind.RUN:
            # The one run option that is a knob takes a list of arenas.
            draft.run[option.target] = "cpu:0"
        else:
            draft.config[option.target] = {"on": "1", "off": "0"}.get(value, value)


def _read_pass_through(draft: _Draft, name: str, value: str, catalogue: Catalogue) -> None:
    """Settings of a base that are no knobs."""
    if name == "provider":
        draft.fields["provider"] = _one_of(name, value, PROVIDERS)
    elif name == "io":
        draft.fields["io"] = _one_of(name, value, IO)
    elif name == "custom_op_library":
        path = Path(value).expanduser().absolute()
        if not path.is_file():
            msg = f"custom_op_library: no file {path}."
            raise UserInputError(msg)
        draft.fields["custom_op_library"] = str(path)
    elif name.startswith(FREE_DIMENSION) and len(name) > len(FREE_DIMENSION):
        if not value.isdecimal():
            msg = f"{name}={value}: a size is a whole number."
            raise UserInputError(msg)
        draft.free_dimensions[name.removeprefix(FREE_DIMENSION)] = int(value)
    else:
        raise UserInputError(_unknown(name, catalogue))


def _unknown(name: str, catalogue: Catalogue) -> str:
    names = (*catalogue.names, *CUDA_OPTION_BY_NAME, *PASS_THROUGH)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"near: {', '.join(near)}" if near else "`smart-tuner knobs` lists them"
    return f"Unknown knob or base setting: {name} ({catalogue.version}); {hint}."


def _one_of(name: str, value: str, values: tuple[str, ...]) -> str:
    if value not in values:
        msg = f"{name}={value}: not one of {', '.join(values)}."
        raise UserInputError(msg)
    return value


def _is_on(name: str, value: str) -> bool:
    return _one_of(name, value, SWITCH) == "on"


def _threads(name: str, value: str) -> int:
    """A number of threads within the CPU quota; ``auto`` is 0, the runtime's own choice."""
    if value == "auto":
        return 0
    quota = cpu_quota()
    if not value.isdecimal() or not 1 <= int(value) <= quota:
        msg = f"{name}={value}: not auto or a number from 1 to {quota}, this process's CPU quota."
        raise UserInputError(msg)
    return int(value)
