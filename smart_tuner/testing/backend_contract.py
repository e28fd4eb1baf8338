"""What every backend must do, as tests that its author inherits.

Subclass ``BackendContract`` in a test module and provide three fixtures::

    class TestMyBackend(BackendContract):
        @pytest.fixture
        def backend(self) -> Backend:
            return MyBackend()

        @pytest.fixture
        def model(self, tmp_path: Path) -> ModelSpec:
            return load_model(write_some_model(tmp_path))

        @pytest.fixture
        def inputs(self) -> Tensors:
            return {"x": np.ones((1, 16), np.float32)}

The default route of that model must build, and give the same outputs twice.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.engine.backend import API_VERSION
from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import BuildError, NotApplied, RunError, UserInputError
from smart_tuner.model.dtypes import UNKNOWN, type_name
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.backend import Backend, Tensors
    from smart_tuner.engine.build import Engine
    from smart_tuner.model.spec import ModelSpec, TensorSpec


class BackendContract:
    """Tests of one backend; see the module."""

    @pytest.fixture
    def backend(self) -> Backend:
        """Return the backend under test; override."""
        raise NotImplementedError

    @pytest.fixture
    def model(self) -> ModelSpec:
        """Return a small model that the backend builds quickly; override."""
        raise NotImplementedError

    @pytest.fixture
    def inputs(self) -> Tensors:
        """Return inputs for that model; override."""
        raise NotImplementedError

    @pytest.fixture
    def request_for(self, model: ModelSpec, inputs: Tensors) -> BuildRequest:
        """Return a request for the default route."""
        return BuildRequest(model.path, shapes=(_shapes(inputs),))

    @pytest.fixture
    def engine(self, backend: Backend, request_for: BuildRequest, tmp_path: Path) -> Engine:
        """Return an engine of the default route."""
        return backend.build(request_for, _folder(tmp_path, "default"))

    def test_it_names_itself(self, backend: Backend) -> None:
        """The name is not empty and the API version is this package's."""
        assert backend.name
        assert backend.api_version == API_VERSION

    def test_platform_is_stable_text(self, backend: Backend) -> None:
        """The platform is plain text, equal each time: studies compare it on resume."""
        platform = backend.platform()
        assert platform == backend.platform()
        texts = [platform.device, platform.driver, platform.backend_version]
        texts += [platform.tuner_version, *platform.details, *platform.details.values()]
        assert all(type(text) is str for text in texts)
        assert platform.backend_version

    def test_knobs_are_well_formed(self, backend: Backend, model: ModelSpec) -> None:
        """Names are unique, and each knob has text choices with its default among them."""
        database = backend.knobs(model)
        names = [knob.name for knob in database]
        assert names
        assert len(set(names)) == len(names)
        assert database.tuner_version
        for knob in database:
            assert knob.name
            assert len(set(knob.choices)) == len(knob.choices) >= 1
            assert all(type(value) is str for value in knob.choices)
            assert knob.allows(knob.default)

    def test_knobs_are_stable(self, backend: Backend, model: ModelSpec) -> None:
        """Asking twice gives the same knobs in the same order."""
        assert backend.knobs(model) == backend.knobs(model)

    def test_the_default_route_builds(self, engine: Engine, request_for: BuildRequest) -> None:
        """The engine is a file whose digest is stated."""
        assert engine.request == request_for
        assert engine.path.is_file()
        assert engine.sha256 == hashlib.sha256(engine.path.read_bytes()).hexdigest()
        assert engine.fingerprint
        assert math.isfinite(engine.build_seconds)
        assert engine.build_seconds >= 0

    def test_building_twice_gives_one_fingerprint(
        self, backend: Backend, engine: Engine, request_for: BuildRequest, tmp_path: Path
    ) -> None:
        """The same route gives the same fingerprint."""
        again = backend.build(request_for, _folder(tmp_path, "again"))
        assert again.fingerprint == engine.fingerprint

    def test_infer_returns_every_output(
        self, backend: Backend, engine: Engine, model: ModelSpec, inputs: Tensors
    ) -> None:
        """All outputs come by name, of the declared type and shape."""
        with backend.load(engine) as runner:
            outputs = runner.infer(inputs)
        assert set(outputs) == {spec.name for spec in model.outputs}
        for spec in model.outputs:
            assert spec.dtype in (type_name(outputs[spec.name]), UNKNOWN)
            assert _fits(outputs[spec.name].shape, spec)

    def test_infer_repeats_itself(self, backend: Backend, engine: Engine, inputs: Tensors) -> None:
        """The same inputs give the same outputs."""
        with backend.load(engine) as runner:
            _assert_equal(runner.infer(inputs), runner.infer(inputs))

    def test_infer_returns_fresh_copies(
        self, backend: Backend, engine: Engine, inputs: Tensors
    ) -> None:
        """What is returned does not share memory with the runner."""
        with backend.load(engine) as runner:
            outputs = runner.infer(inputs)
            kept = {name: array.copy() for name, array in outputs.items()}
            for array in outputs.values():
                array[...] = np.zeros_like(array)
            _assert_equal(runner.outputs(), kept)
            for array in runner.outputs().values():
                array[...] = np.zeros_like(array)
            _assert_equal(runner.outputs(), kept)

    def test_infer_leaves_the_inputs_alone(
        self, backend: Backend, engine: Engine, inputs: Tensors
    ) -> None:
        """Neither ``infer`` nor timing writes to the inputs."""
        before = {name: array.copy() for name, array in inputs.items()}
        with backend.load(engine) as runner:
            runner.infer(inputs)
            runner.time_block(3)
        _assert_equal(inputs, before)

    @pytest.mark.parametrize("iterations", [1, 7])
    def test_time_block_returns_milliseconds(
        self, backend: Backend, engine: Engine, inputs: Tensors, iterations: int
    ) -> None:
        """Positive, finite samples come back, one an iteration at most and at least one."""
        with backend.load(engine) as runner:
            runner.infer(inputs)
            samples = runner.time_block(iterations)
        assert 1 <= len(samples) <= iterations
        assert all(math.isfinite(sample) and sample > 0 for sample in samples)

    def test_timed_runs_leave_the_same_outputs(
        self, backend: Backend, engine: Engine, inputs: Tensors
    ) -> None:
        """The outputs after timing are those of ``infer``."""
        with backend.load(engine) as runner:
            outputs = runner.infer(inputs)
            runner.time_block(5)
            _assert_equal(runner.outputs(), outputs)

    def test_what_may_be_said_beside_is_well_formed(
        self, backend: Backend, engine: Engine, inputs: Tensors
    ) -> None:
        """Choices are texts, memory and size are bytes, a timing cache lies beside the engine.

        Each of them may be missing.
        """
        with backend.load(engine) as runner:
            runner.infer(inputs)
            decided = dict(getattr(runner, "decided", {}))
            memory = getattr(runner, "memory_bytes", None)
        assert all(type(text) is str for pair in decided.items() for text in pair)
        for size in (memory, engine.size_bytes):
            assert size is None or (type(size) is int and size >= 0)
        cache = engine.timing_cache
        assert cache is None or (cache.is_file() and cache.parent == engine.path.parent)

    def test_missing_inputs_do_not_run(self, backend: Backend, engine: Engine) -> None:
        """Inputs that are missing raise ``RunError``."""
        with backend.load(engine) as runner, pytest.raises(RunError):
            runner.infer({})

    def test_timing_needs_inputs_first(self, backend: Backend, engine: Engine) -> None:
        """``time_block`` before ``infer`` raises ``RunError``."""
        with backend.load(engine) as runner, pytest.raises(RunError):
            runner.time_block(1)

    def test_a_closed_runner_says_so(
        self, backend: Backend, engine: Engine, inputs: Tensors
    ) -> None:
        """Every method of a runner that was left raises ``RunError``."""
        with backend.load(engine) as runner:
            runner.infer(inputs)
        with pytest.raises(RunError):
            runner.infer(inputs)
        with pytest.raises(RunError):
            runner.time_block(1)
        with pytest.raises(RunError):
            runner.outputs()

    def test_an_engine_that_was_changed_does_not_load(
        self, backend: Backend, engine: Engine
    ) -> None:
        """A file with another digest than the engine's raises ``RunError``."""
        engine.path.write_bytes(engine.path.read_bytes() + b" ")
        with pytest.raises(RunError), backend.load(engine):
            pass

    def test_an_unknown_knob_does_not_build(
        self, backend: Backend, request_for: BuildRequest, tmp_path: Path
    ) -> None:
        """It raises ``BuildError``, ``NotApplied`` or ``UserInputError``."""
        _assert_refused(backend, request_for, ("no_such_knob", "1"), tmp_path)

    def test_an_unknown_value_does_not_build(
        self, backend: Backend, model: ModelSpec, request_for: BuildRequest, tmp_path: Path
    ) -> None:
        """It raises ``BuildError``, ``NotApplied`` or ``UserInputError``."""
        closed = next(knob for knob in backend.knobs(model) if not knob.is_open)
        _assert_refused(backend, request_for, (closed.name, "no such value"), tmp_path)

    def test_a_reference_build_runs(
        self, backend: Backend, model: ModelSpec, inputs: Tensors, tmp_path: Path
    ) -> None:
        """A build with every optimization off gives the same outputs by name."""
        request = BuildRequest(model.path, shapes=(_shapes(inputs),), reference=True)
        reference = backend.build(request, _folder(tmp_path, "reference"))
        with backend.load(reference) as runner:
            outputs = runner.infer(inputs)
        assert set(outputs) == {spec.name for spec in model.outputs}


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def _shapes(inputs: Tensors) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in inputs.items()}


def _fits(shape: tuple[int, ...], spec: TensorSpec) -> bool:
    return spec.shape is None or (
        len(shape) == len(spec.shape)
        and all(
            not isinstance(wanted, int) or wanted == size
            for wanted, size in zip(spec.shape, shape, strict=True)
        )
    )


def _assert_equal(actual: Tensors, expected: Tensors) -> None:
    assert set(actual) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array)


def _assert_refused(
    backend: Backend, request: BuildRequest, setting: tuple[str, str], folder: Path
) -> None:
    wrong = BuildRequest(request.model, BuildRoute((setting,)), shapes=request.shapes)
    with pytest.raises((BuildError, NotApplied, UserInputError)):
        backend.build(wrong, _folder(folder, "wrong"))
