"""From base and route to the effective settings of one session."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.onnxruntime.cuda_options import CUDA_OPTION_BY_NAME, PREFIX
from smart_tuner.backends.onnxruntime.option import Acts, Kind
from smart_tuner.backends.onnxruntime.options import LEVELS, MODES, OPTION_BY_NAME, ORDERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROVIDERS = ("cpu", "cuda")
IO = ("host", "device")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Everything that decides how a session is built and run.

    Attributes:
        provider: ``cpu`` or ``cuda``.
        graph_optimization_level: A key of ``LEVELS``.
        execution_mode: A key of ``MODES``.
        execution_order: A key of ``ORDERS``.
        intra_threads: Threads within a node; 0 lets the runtime take what it sees fit.
        inter_threads: Threads across nodes, likewise.
        switches: On/off attributes of ``SessionOptions``, sorted.
        disabled_optimizers: Graph optimizers and rewrite rules that are off, sorted.
        config_entries: Session configuration entries off their default, sorted.
        run_entries: Run configuration entries off their default, sorted.
        provider_options: Options of the CUDA provider, sorted.
        free_dimensions: Sizes of symbolic dimensions, sorted by symbol.
        custom_op_library: Absolute path of a library with custom operators, or empty.
        io: Where inputs come from and outputs go in a timed run, a key of ``IO``; with the CUDA
            provider only.
    """

    provider: str = "cpu"
    graph_optimization_level: str = "all"
    execution_mode: str = "sequential"
    execution_order: str = "default"
    intra_threads: int = 0
    inter_threads: int = 0
    switches: tuple[tuple[str, bool], ...] = field(
        default_factory=lambda: tuple(
            sorted(
                (option.target, option.default == "on")
                for option in OPTION_BY_NAME.values()
                if option.kind is Kind.ATTRIBUTE and option.default in {"on", "off"}
            )
        )
    )
    disabled_optimizers: tuple[str, ...] = ()
    config_entries: Pairs = ()
    run_entries: Pairs = ()
    provider_options: Pairs = ()
    free_dimensions: tuple[tuple[str, int], ...] = ()
    custom_op_library: str = ""
    io: str = "host"

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SessionSettings:
        """Read what ``to_json`` wrote; earlier versions had no ``io``.

        Raises:
            ValueError: A field is missing, unknown, or not what it should be.
        """
        data = {"io": "host", **data}
        known = set(cls.__slots__)
        if set(data) != known:
            odd = sorted(set(data) ^ known)
            msg = f"session settings with unknown or missing fields: {', '.join(odd)}"
            raise ValueError(msg)
        settings = cls(**{name: _tuples(value) for name, value in data.items()})
        for value, allowed in (
            (settings.provider, PROVIDERS),
            (settings.graph_optimization_level, LEVELS),
            (settings.execution_mode, MODES),
            (settings.execution_order, ORDERS),
            (settings.io, IO),
        ):
            if value not in allowed:
                msg = f"session settings with unknown value {value!r}"
                raise ValueError(msg)
        return settings


def _tuples(value: Any) -> Any:
    """JSON lists as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def effects(settings: SessionSettings, *, graph_is_known: bool) -> dict[str, Any]:
    """The settings that can still change a run, given what is known of the optimized graph.

    Args:
        settings: Effective settings.
        graph_is_known: Whether the compiled artefact is in the fingerprint; then settings that
            act only through the graph say nothing new.
    """
    data = settings.to_json()
    if settings.provider == "cpu":
        del data["io"]
    data["provider_options"] = tuple(_acting_on_provider(settings))
    if graph_is_known:
        del data["graph_optimization_level"], data["disabled_optimizers"]
    parallel = settings.execution_mode == "parallel"
    if not parallel:
        del data["inter_threads"]
    else:
        # The runtime plans no memory pattern when nodes may run side by side.
        data["switches"] = tuple(
            (name, value) for name, value in settings.switches if name != "enable_mem_pattern"
        )
    data["config_entries"] = tuple(
        _acting(settings, parallel=parallel, graph_is_known=graph_is_known)
    )
    return data


def _acting_on_provider(settings: SessionSettings) -> Iterator[tuple[str, str]]:
    """The provider's options off their default; kernels are tuned only where they are used."""
    given = dict(settings.provider_options)
    for key, value in given.items():
        option = CUDA_OPTION_BY_NAME.get(f"{PREFIX}{key}")
        in_vain = key == "tunable_op_tuning_enable" and given.get("tunable_op_enable") != "1"
        if not in_vain and (option is None or value != option.default):
            yield key, value


def _acting(
    settings: SessionSettings, *, parallel: bool, graph_is_known: bool
) -> Iterator[tuple[str, str]]:
    """The configuration entries that can change a run."""
    acts = {option.target: option.acts for option in OPTION_BY_NAME.values()}
    entries = dict(settings.config_entries)
    silent = {Acts.LOADING}
    if graph_is_known:
        silent.add(Acts.GRAPH)
    if settings.intra_threads == 1:
        silent.add(Acts.WORKERS)
    if not parallel:
        silent.add(Acts.PARALLEL)
    for key, value in entries.items():
        pool = key.partition(".spin_")[0]
        spins = entries.get(f"{pool}.allow_spinning") != "0"
        if acts.get(key, Acts.RUN) not in silent and (".spin_" not in key or spins):
            yield key, value
