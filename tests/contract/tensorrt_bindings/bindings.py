"""Real Python bindings of TensorRT, imported over a library that only exports their symbols.

The bindings are on PyPI, the compiler itself is not. They load once nine C functions can be
linked; none of them is called by importing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

LOOK = Path(__file__).with_name("look.py")
SYMBOLS = (
    "createInferBuilder_INTERNAL",
    "createInferRefitter_INTERNAL",
    "createInferRuntime_INTERNAL",
    "createNvOnnxParserRefitter_INTERNAL",
    "createNvOnnxParser_INTERNAL",
    "getBuilderPluginRegistry",
    "getNvOnnxParserVersion",
    "getPluginRegistry",
    "initLibNvInferPlugins",
)
# Bindings of TensorRT 8 also link the parsers of two formats that are gone.
OLD_SYMBOLS = (
    "_ZN11nvuffparser15createUffParserEv",
    "_ZN11nvuffparser8FieldMapC1EPKcPKvNS_9FieldTypeEi",
    "_ZN14nvcaffeparser117createCaffeParserEv",
    "_ZN14nvcaffeparser123shutdownProtobufLibraryEv",
)


class NotAtHand(Exception):  # noqa: N818
    """The bindings cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Looked:
    """What one version of the bindings has.

    Attributes:
        version: E.g. ``11.4.0.106``.
        library: The extension module's file.
        classes: By class and member; the module's own members under the empty name.
        enums: Members by enum.
    """

    version: str
    library: str
    classes: dict[str, dict[str, dict[str, Any]]]
    enums: dict[str, list[str]]


def look_at_wheel(package: str, version: str, cache: Path) -> Looked:
    """Fetch bindings from PyPI, once per cache folder, and look at them.

    Raises:
        NotAtHand: PyPI or a C compiler cannot be reached, or PyPI has none for this Python.
    """
    python = sysconfig.get_config_var("py_version_nodot")
    folder = cache / f"{package}-{version}-{python}"
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            partial = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            _install(f"{package}=={version}", partial)
            _compile_stubs(partial, version.partition(".")[0])
            partial.rename(folder)
    return _look("tensorrt_bindings", {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder)})


def look_at_installed(module: str) -> Looked:
    """Look at bindings that are installed here, libraries and all.

    Raises:
        NotAtHand: They are not installed, as on processors that they are not made for.
    """
    if find_spec(module) is None:
        msg = f"{module} is not installed"
        raise NotAtHand(msg)
    return _look(module, {})


def _install(requirement: str, folder: Path) -> None:
    options = ("--quiet", "--no-deps", "--no-input", "--disable-pip-version-check", "--retries=1")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
        msg = f"{requirement} cannot be fetched: {last}"
        raise NotAtHand(msg)


def _compile_stubs(folder: Path, major: str) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        msg = "no C compiler for the stub library: install gcc"
        raise NotAtHand(msg)
    symbols = (*SYMBOLS, *(OLD_SYMBOLS if major == "8" else ()))
    source = folder / "stub.c"
    source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in symbols))
    for stem in ("nvinfer", "nvinfer_plugin", "nvonnxparser", "nvparsers"):
        library = f"lib{stem}.so.{major}"
        options = ["-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", str(folder / library)]
        subprocess.run([compiler, *options, str(source)], check=True)


def _look(module: str, environment: dict[str, str]) -> Looked:
    done = subprocess.run(
        [sys.executable, str(LOOK), module],
        env={**os.environ, **environment, "LD_BIND_NOW": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Looked(**json.loads(done.stdout))
