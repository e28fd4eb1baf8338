"""Building an engine: from a request to a plan on disk."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.artefact import (
    PLAN_FILE,
    Facts,
    fingerprint,
    weights_digest,
    write_layers,
)
from smart_tuner.backends.tensorrt.builder import make_builder
from smart_tuner.backends.tensorrt.builder_knobs import (
    apply_builder_knobs,
    is_builder_knob,
    wants_weak_types,
)
from smart_tuner.backends.tensorrt.loader import loader_source
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.network import parse_model, set_formats
from smart_tuner.backends.tensorrt.pass_through import apply_pass_through, make_literal
from smart_tuner.backends.tensorrt.plan import deserialize
from smart_tuner.backends.tensorrt.platform import choose_target, find_gpu
from smart_tuner.backends.tensorrt.plugins import load_plugins
from smart_tuner.backends.tensorrt.precision import allow_integers
from smart_tuner.backends.tensorrt.profiles import (
    add_profiles,
    fixed_profile,
    network_inputs,
    plan_profiles,
)
from smart_tuner.backends.tensorrt.progress import Cancellation, attach_progress
from smart_tuner.backends.tensorrt.route import check_base, confirm_route, set_route
from smart_tuner.backends.tensorrt.run_settings import read_run_settings
from smart_tuner.backends.tensorrt.settings import read_settings
from smart_tuner.backends.tensorrt.symbols import clashing_names, without_names
from smart_tuner.backends.tensorrt.timing_cache import attach_cache, save_cache
from smart_tuner.engine.build import Engine
from smart_tuner.errors import BuildError, RunError
from smart_tuner.model.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.backends.tensorrt import api
    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.network import Parsed
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings
    from smart_tuner.engine.build import BuildRequest


@dataclass(frozen=True, slots=True)
class _Job:
    """A build that is ready to start; the order of fields is the order of making.

    ``notes`` say why a timing cache is not used; there are none if it is.
    """

    sdk: Sdk
    log: BuildLog
    settings: BuildSettings
    builder: api.Builder
    config: api.BuilderConfig
    facts: Facts
    route: str
    parsed: Parsed
    notes: tuple[str, ...]


def build_engine(sdk: Sdk, request: BuildRequest, workdir: Path) -> Engine:
    """Build ``engine.plan`` into ``workdir``, with ``engine.json`` and its timings beside it.

    Raises:
        BuildError: The compiler refuses the model, gives up, or was told to end.
        NotApplied: The compiler did not take a knob.
        UserInputError: Base or route name something unknown, or a profile is wrong.
        EnvironmentNotFit: There is no GPU to build for, or a plugin does not load.
    """
    started = time.perf_counter()
    job = _prepare(sdk, request, workdir)
    plan = _compile(job)
    confirm_route(sdk, job.route, job.log)
    path = workdir / PLAN_FILE
    with whole_file(path) as file:
        file.write(plan)
    job.facts.write(path)
    digest = hashlib.sha256(plan).hexdigest()
    structure, said = _inspect(job, plan, path)
    return Engine(
        path=path,
        sha256=digest,
        fingerprint=fingerprint(digest, job.facts),
        request=replace(request, timing_cache=None) if job.notes else request,
        build_seconds=time.perf_counter() - started,
        notes=(*job.notes, *said),
        loader=loader_source(sdk, job.facts, job.settings, request.model),
        size_bytes=len(plan),
        structure=structure,
        timing_cache=save_cache(job.config, workdir),
    )


def _prepare(sdk: Sdk, request: BuildRequest, workdir: Path) -> _Job:
    settings, rest = read_settings(request.base)
    read_run_settings(request.base)
    knobs = _literal(rest) if request.reference else {**rest, **request.route.values}
    log = make_log(sdk)
    if not settings.compute_capability:
        # Without a GPU no builder starts, and says less clearly why.
        find_gpu(sdk)
    builder, config = make_builder(sdk, log)
    digests = load_plugins(sdk, settings.plugins, log)
    check_base(sdk, config, (name for name in rest if not is_builder_knob(name)))
    route = _apply_knobs(sdk, config, knobs, log)
    apply_pass_through(sdk, config, settings)
    if request.reference:
        make_literal(sdk, config)
    target = choose_target(sdk, config, settings)
    weak = wants_weak_types(knobs)
    parsed = parse_model(sdk, builder, log, request.model, weak_types=weak)
    given = (settings.min_shapes, settings.opt_shapes, settings.max_shapes)
    clashing = clashing_names(parsed.network, (*request.shapes, *given))
    if clashing:
        with without_names(request.model, clashing, workdir) as copy:
            parsed = parse_model(sdk, builder, log, copy, weak_types=weak)
    allow_integers(sdk, config, request, is_strongly_typed=parsed.is_strongly_typed)
    set_formats(sdk, parsed, settings)
    inputs = network_inputs(parsed.network)
    profiles = plan_profiles(inputs, settings, request.shapes) or fixed_profile(parsed.network)
    add_profiles(builder, config, profiles)
    notes = attach_cache(config, request.timing_cache, workdir, log)
    facts = Facts(
        sdk=str(sdk),
        target=target,
        plugins=digests,
        settings={**request.base, **knobs},
        weights=weights_digest(request, is_stripped=settings.strip_plan),
        is_strongly_typed=parsed.is_strongly_typed,
    )
    return _Job(sdk, log, settings, builder, config, facts, route, parsed, notes)


def _literal(base: Mapping[str, str]) -> dict[str, str]:
    """What a reference keeps of the base's knobs: which libraries there are to call."""
    return {name: value for name, value in base.items() if name.startswith("tactic_source:")}


def _apply_knobs(
    sdk: Sdk, config: api.BuilderConfig, knobs: Mapping[str, str], log: BuildLog
) -> str:
    """Set all knobs; returns the text of the build route."""
    own = {name: value for name, value in knobs.items() if is_builder_knob(name)}
    apply_builder_knobs(sdk, config, own)
    return set_route(sdk, config, {n: v for n, v in knobs.items() if n not in own}, log)


def _compile(job: _Job) -> bytes:
    """Run the compiler; returns the plan."""
    since = job.log.position
    with Cancellation() as cancellation:
        monitor = attach_progress(job.sdk, job.config, cancellation)
        try:
            plan = job.builder.build_serialized_network(job.parsed.network, job.config)
        except (RuntimeError, MemoryError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BuildError(reason) from error
        del monitor  # until here it had to live
    if cancellation.is_requested:
        msg = "the build was cancelled by a signal"
        raise BuildError(msg)
    if plan is None:
        hint = ""
        if not job.facts.target.is_at_hand and (job.settings.refit or job.settings.strip_plan):
            hint = " (refit and strip_plan need the GPU at hand)"
        msg = f"{job.sdk} built nothing: {job.log.reason(since)}{hint}"
        raise BuildError(msg)
    return bytes(plan)  # type: ignore[call-overload, no-any-return]  # it has the buffer protocol


def _inspect(job: _Job, plan: bytes, path: Path) -> tuple[str, tuple[str, ...]]:
    """Write the inspector's view beside the plan; returns its digest, or why there is none."""
    if not job.facts.target.is_at_hand:
        return "", (f"built for {job.facts.target}, which is not at hand: it was not inspected",)
    try:
        _, engine = deserialize(job.sdk, plan, job.log, host_code=job.settings.version_compatible)
        return write_layers(job.sdk, engine, path), ()
    except (RunError, RuntimeError, UnicodeError) as error:
        return "", (f"the engine was not inspected: {error}",)
