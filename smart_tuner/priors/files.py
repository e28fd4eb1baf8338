"""Reading and writing prior files: strict about content, bounded in size, never a path inside."""

from __future__ import annotations

import hashlib
import json
import stat
import sys
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import tomli_w
from pydantic import ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import clean_sentence, shown
from smart_tuner.model.files import whole_file
from smart_tuner.priors.document import KIND, SCHEMA_VERSION, Prior

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.priors.document import Baseline

MAX_BYTES = 16 << 20
"""A prior of ten studies over 209 knobs has half a megabyte."""

SUFFIX = ".prior.toml"
SCHEMA_FILE = "prior-1.schema.json"


def read_prior(path: Path) -> Prior:
    """Read a prior file, TOML, or JSON if its name ends so.

    Raises:
        UserInputError: One line that names the place: no regular file, too large, no TOML or JSON,
            another form, or a figure that is not possible.
    """
    place = clean_sentence(str(path))
    data = _bytes(path, place)
    try:
        text = data.decode("utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except UnicodeDecodeError:
        msg = f"The prior {place} is not text: `smart-tuner priors build` makes one."
        raise UserInputError(msg) from None
    except RecursionError:
        msg = f"The prior {place} is nested too deeply: no prior file is."
        raise UserInputError(msg) from None
    except ValueError as error:
        form = "JSON" if path.suffix == ".json" else "TOML"
        msg = f"The prior {place} is not valid {form}: {shown(str(error))}."
        raise UserInputError(msg) from None
    return prior_of(content, place)


def prior_of(content: object, place: str) -> Prior:
    """Check the content of a prior file.

    Args:
        content: As TOML or JSON gives it.
        place: Where it comes from, for messages.

    Raises:
        UserInputError: It is no prior, or newer than this version, or a figure is not possible.
    """
    if not isinstance(content, dict) or content.get("kind") != KIND:
        msg = f'{place} is no prior file: one begins with `kind = "{KIND}"`.'
        raise UserInputError(msg)
    version = content.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        msg = (
            f"The prior {place} was written by a newer smart_tuner (schema {version}, this one "
            f"knows {SCHEMA_VERSION}): upgrade smart_tuner."
        )
        raise UserInputError(msg)
    try:
        return Prior.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = shown(".".join(str(part) for part in first["loc"]))
        more = error.error_count() - 1
        rest = f" (and {more} more)" if more else ""
        what = shown(first["msg"].removeprefix("Value error, "))
        msg = f"The prior {place} is wrong{f' at {where}' if where else ''}: {what}{rest}."
        raise UserInputError(msg) from None


def write_prior(path: Path, prior: Prior) -> None:
    """Write a prior file; ``read_prior`` gives an equal one back.

    Raises:
        EnvironmentNotFit: It cannot be written.
    """
    with whole_file(path) as file:
        file.write(prior_text(prior).encode())


def prior_text(prior: Prior) -> str:
    """The TOML of a prior: its studies first, then one line a study under each value."""
    return "\n".join(_lines(prior))


def prior_digest(prior: Prior) -> str:
    """SHA-256 of what a prior says, whatever its file looks like."""
    return hashlib.sha256(prior_text(prior).encode()).hexdigest()


def prior_schema() -> dict[str, Any]:
    """The JSON Schema of prior files, as the package ships it.

    It leaves out what a schema cannot say: that names can be part of routes, that every line
    names a listed study, and the size of the file.
    """
    schema: dict[str, Any] = json.loads(_shipped())
    return schema


@lru_cache(maxsize=1)
def _shipped() -> str:
    return (files("smart_tuner.priors") / "data" / SCHEMA_FILE).read_text(encoding="utf-8")


def _bytes(path: Path, place: str) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            msg = f"The prior {place} is no file: `smart-tuner priors build` makes one."
            raise UserInputError(msg)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"Cannot read the prior {place}: {error.strerror}."
        raise UserInputError(msg) from None
    except ValueError:
        msg = f"Cannot read the prior {place}: no file can have this name."
        raise UserInputError(msg) from None
    if len(data) > MAX_BYTES:
        msg = f"The prior {place} is over {MAX_BYTES >> 20} MiB: no prior file is."
        raise UserInputError(msg)
    return data


def _lines(prior: Prior) -> Iterator[str]:
    head = prior.model_dump(include={"kind", "schema_version", "created", "notes"})
    yield tomli_w.dumps(head)
    for study in prior.studies:
        yield "[[studies]]"
        yield tomli_w.dumps(study.model_dump(exclude={"network", "best", "baseline"})).rstrip()
        for route in study.best:
            yield "[[studies.best]]"
            yield f"effect = {_figure(route.effect)}"
            yield f"values = {_inline(dict(route.values))}"
        yield from _baseline(study.baseline)
        network = study.network.model_dump(exclude={"operators"})
        yield "[studies.network]"
        yield tomli_w.dumps(network).rstrip()
        yield f"operators = {_inline(dict(study.network.operators))}"
        yield ""
    for name, knob in prior.knobs.items():
        yield f"[knobs.{_key(name)}]"
        yield tomli_w.dumps(knob.model_dump(include={"default", "notes"})).rstrip()
        for value, entry in knob.values.items():
            yield f"[knobs.{_key(name)}.values.{_key(value)}]"
            if entry.notes:
                yield tomli_w.dumps({"notes": entry.notes}).rstrip()
            yield f"[knobs.{_key(name)}.values.{_key(value)}.evidence]"
            for study_id, evidence in entry.evidence.items():
                yield f"{_key(study_id)} = {_inline(evidence.model_dump(exclude_none=True))}"
        yield ""


def _baseline(baseline: Baseline) -> Iterator[str]:
    """What is known of it: files of before it was kept stay as they are."""
    known = {name: fact for name, fact in baseline.model_dump().items() if fact}
    if known:
        yield "[studies.baseline]"
    for name, fact in known.items():
        yield f"{name} = {_inline(fact) if isinstance(fact, dict) else _scalar(fact)}"


def _inline(values: dict[str, Any]) -> str:
    return (
        "{" + ", ".join(f"{_key(key)} = {_scalar(value)}" for key, value in values.items()) + "}"
    )


def _scalar(value: object) -> str:
    if isinstance(value, float):
        return _figure(value)
    return tomli_w.dumps({"x": value}).partition(" = ")[2].strip()


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).partition(" = 0\n")[0]


def _figure(value: float) -> str:
    return tomli_w.dumps({"x": float(value)}).partition(" = ")[2].strip()
