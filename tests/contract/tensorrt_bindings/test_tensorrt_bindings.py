"""Everything that the TensorRT backend touches is there in NVIDIA's own bindings, old and new.

The list of what is touched is the one that the backend itself is typed with
(``smart_tuner/backends/tensorrt/api.py``), so nothing can be missing from it.
"""

from __future__ import annotations

import ast
import re
import typing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder_settings import (
    FLAGS,
    LIBRARIES,
    NUMBERS,
    PRECISION_FLAGS,
    PREVIEW_FEATURES,
    TACTIC_SOURCES,
)
from smart_tuner.backends.tensorrt.contract import SURFACES, Surface, members
from smart_tuner.backends.tensorrt.settings import COMPATIBILITIES
from tests.contract.tensorrt_bindings.bindings import (
    Looked,
    NotAtHand,
    look_at_installed,
    look_at_wheel,
)
from tests.contract.tensorrt_bindings.signatures import Parameter, declared, documented, fits
from tests.unit.cli.calling import call_process

if TYPE_CHECKING:
    from collections.abc import Iterator

RTX = "tensorrt-rtx"
ROUTES = ("11.1.0.106", "11.4.0.106")
WHEELS = {
    "8.6.1": "tensorrt-bindings",
    "10.13.3.9": "tensorrt-cu12-bindings",
    **dict.fromkeys(ROUTES, "tensorrt-cu13-bindings"),
}
VERSIONS = (*WHEELS, RTX)
BACKEND = Path(api.__file__).parent

# The SDK calls these by name in a class that derives from its own, which need not have them.
CALLED_BACK = ("IOutputAllocator",)

# Some groups of optional members, and exactly the versions here that have them.
SINCE = {
    "HasBuildRoutes": {*ROUTES, RTX},
    "HasComputeCapabilities": {RTX},
    "HasProgressMonitor": {*VERSIONS} - {"8.6.1"},
    "HasTiling": {*VERSIONS} - {"8.6.1"},
    "HasTacticLimit": {*VERSIONS} - {"8.6.1"},
    "HasParserRefitter": {*VERSIONS} - {"8.6.1"},
    "HasAllocatorClass": {*VERSIONS},
}


@lru_cache
def looked(version: str, cache: Path) -> Looked | NotAtHand:
    """Look once; a failure is remembered too, since a network that is away costs half a minute."""
    try:
        if version == RTX:
            return look_at_installed("tensorrt_rtx_bindings")
        return look_at_wheel(WHEELS[version], version, cache)
    except NotAtHand as reason:
        return reason


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    """A folder that outlives the session, so that wheels are fetched once."""
    found: Path = pytestconfig.cache.mkdir("tensorrt_bindings")
    return found


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def look_or_skip(version: str, cache: Path) -> Looked:
    found = looked(version, cache)
    if isinstance(found, NotAtHand):
        pytest.skip(str(found))
    return found


@pytest.fixture
def bindings(version: str, cache: Path) -> Looked:
    return look_or_skip(version, cache)


def is_weakly_typed(bindings: Looked) -> bool:
    """Whether flags may still change the types of a network."""
    return "FP16" in bindings.enums["BuilderFlag"]


def missing(protocol: type, surface: Surface, bindings: Looked) -> list[str]:
    """Members of a protocol that the bindings lack or have otherwise, with what is wrong."""
    real = bindings.classes[surface.name]
    faults = (
        fault(protocol, name, real[name], is_member=bool(surface.name))
        if name in real
        else f"{name}: missing"
        for name in members(protocol)
    )
    # Where the network alone says types, the code that would set one is never reached.
    excused = "" if is_weakly_typed(bindings) else "dtype: read-only"
    return [found for found in faults if found and (surface.name, found) != ("ITensor", excused)]


def fault(protocol: type, name: str, theirs: dict[str, Any], *, is_member: bool) -> str:
    """What is wrong with a member; empty when it is as we declare it."""
    ours = vars(protocol).get(name)
    if isinstance(ours, property) or name in protocol.__annotations__:
        if is_member and not theirs["property"]:
            return f"{name}: no property"
        is_set = is_member and not isinstance(ours, property)
        return f"{name}: read-only" if is_set and not theirs["writable"] else ""
    if not theirs["callable"]:
        return f"{name}: not callable"
    overloads = documented(name, theirs["doc"])
    if any(fits(declared(ours), overload) for overload in overloads):
        return ""
    return f"{name}: takes {overloads}"


def test_the_version_is_the_one_asked_for(version: str, bindings: Looked) -> None:
    assert bindings.version == version or version == RTX


@pytest.mark.parametrize("surface", SURFACES, ids=lambda found: found.name or "module")
def test_every_class_has_what_the_backend_touches(
    surface: Surface, version: str, bindings: Looked
) -> None:
    if surface.name not in bindings.classes:
        assert surface.is_optional
        return
    if surface.name in CALLED_BACK:
        code = Path(bindings.library).read_bytes()
        assert [name for name in members(surface.always) if name.encode() not in code] == []
        return
    assert missing(surface.always, surface, bindings) == []
    for protocol in surface.sometimes:
        lacking = missing(protocol, surface, bindings)
        there = set(members(protocol)) & bindings.classes[surface.name].keys()
        assert lacking == [] or not there, protocol.__name__
        if protocol.__name__ in SINCE:
            assert (not lacking) == (version in SINCE[protocol.__name__]), protocol.__name__


def test_every_optional_member_exists_in_some_version(cache: Path) -> None:
    found = {version: look_or_skip(version, cache) for version in VERSIONS}
    for surface in SURFACES:
        for protocol in surface.sometimes:
            having = [
                version
                for version, bindings in found.items()
                if surface.name in bindings.classes and not missing(protocol, surface, bindings)
            ]
            assert having, protocol.__name__


@pytest.mark.parametrize(
    "name", ["Builder", "OnnxParser", "Runtime", "Refitter", "OnnxParserRefitter"]
)
def test_classes_are_made_from_as_many_arguments_as_the_backend_gives(
    name: str, bindings: Looked
) -> None:
    owner = api.HasParserRefitter if name == "OnnxParserRefitter" else api.Module
    if name not in bindings.classes:
        assert owner is api.HasParserRefitter
        return
    alias = getattr(api, str(owner.__annotations__[name]))
    given = tuple(Parameter("arg0", has_default=False) for _ in typing.get_args(alias)[0])
    doc = bindings.classes[name]["__init__"]["doc"]
    overloads = documented("__init__", doc)
    assert overloads, doc
    assert any(
        len(given) <= len(real) and all(extra.has_default for extra in real[len(given) :])
        for real in overloads
    )


def all_enums(cache: Path) -> dict[str, set[str]]:
    """Members of every enum in any version that can be had here."""
    known: dict[str, set[str]] = {}
    for version in VERSIONS:
        for name, listed in look_or_skip(version, cache).enums.items():
            known.setdefault(name, set()).update(listed)
    return known


def asked_members() -> Iterator[tuple[str, str]]:
    """Enum and member of every ``member(module.Enum, "NAME")`` in the backend's code."""
    for path in sorted(BACKEND.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {
            ast.unparse(node.targets[0]): ast.unparse(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or len(node.args) != 2:
                continue
            called, enum, member = ast.unparse(node.func), *node.args
            if called == "api.member" and isinstance(member, ast.Constant):
                text = named.get(ast.unparse(enum), ast.unparse(enum))
                yield text.rpartition(".")[2], str(member.value)


def test_every_enum_member_that_the_code_names_exists_in_some_version(cache: Path) -> None:
    known = all_enums(cache)
    asked = list(asked_members())
    assert asked
    assert [(enum, name) for enum, name in asked if name not in known.get(enum, ())] == []


def test_every_text_in_capitals_is_a_member_of_some_enum(cache: Path) -> None:
    known = set().union(*all_enums(cache).values())
    texts = {
        node.value
        for path in BACKEND.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", node.value)
    }
    assert len(texts) > 40
    # A text that ends in an underscore is the beginning of several.
    unknown = [
        text
        for text in sorted(texts - known)
        if not text.endswith("_") or not any(name.startswith(text) for name in known)
    ]
    assert unknown == []


def test_every_level_of_compatibility_exists_in_some_version(cache: Path) -> None:
    levels = {level.upper() for level in COMPATIBILITIES}
    assert levels == all_enums(cache)["HardwareCompatibilityLevel"]


def test_no_protocol_is_left_out_of_what_is_looked_up() -> None:
    looked_up = {
        protocol for surface in SURFACES for protocol in (surface.always, *surface.sometimes)
    }
    protocols = {
        thing
        for thing in vars(api).values()
        if isinstance(thing, type) and getattr(thing, "_is_protocol", False)
    }
    assert protocols - looked_up == {Protocol, api.EnumMember, api.EnumType}


def test_every_setting_that_may_be_a_knob_exists_in_some_version(cache: Path) -> None:
    known = all_enums(cache)
    assert FLAGS.keys() | set(PRECISION_FLAGS) <= known["BuilderFlag"]
    assert TACTIC_SOURCES.keys() == known["TacticSource"]
    assert LIBRARIES.keys() <= known["TacticSource"]
    assert PREVIEW_FEATURES.keys() <= known["PreviewFeature"]


def test_every_number_that_may_be_a_knob_is_on_the_list_of_what_is_touched() -> None:
    listed = {
        *members(api.BuilderConfig),
        *members(api.HasTiling),
        *members(api.HasTacticLimit),
    }
    assert {number.attribute for number in NUMBERS} <= listed


@pytest.mark.parametrize("version", ROUTES)
def test_build_routes_are_text_to_set_and_text_to_read(bindings: Looked) -> None:
    config = bindings.classes["IBuilderConfig"]
    assert config["build_route"]["writable"]
    assert not config["all_build_routes"]["writable"]


@pytest.mark.parametrize("version", ["8.6.1", *ROUTES])
def test_without_a_gpu_the_real_bindings_lead_to_one_sentence_and_a_way_on(
    version: str, bindings: Looked
) -> None:
    folder = str(Path(bindings.library).parent.parent)
    ended = call_process(
        *("knobs", "--backend", "tensorrt"), PYTHONPATH=folder, LD_LIBRARY_PATH=folder
    )
    assert ended.code == 3
    (line,) = ended.err.splitlines()
    assert f"tensorrt {version} cannot be asked for its knobs: it gives no builder" in line
    assert "takes an NVIDIA GPU and its driver" in line
    assert "--database tensorrt-2.19.45" in line
