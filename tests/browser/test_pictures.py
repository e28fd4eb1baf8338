"""The README's pictures are those that the product makes today, as far as a glance can tell."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from tests.screenshots.screens import NAMES, make_pictures

KEPT = Path(__file__).parents[2] / "studies" / "pictures"
MOST_BYTES = 200_000
WORDS = {
    "tune.svg": ("time", "best", "noise", "tried", "now", "trial", "gain", "outcome", "route"),
    "status.svg": ("trials:", "budget:", "baseline:", "noise:", "verdict:"),
}
"""What a picture of the terminal says, whatever its figures."""

PIXELS = """async source => {
  const bitmap = await createImageBitmap(await (await fetch(source)).blob());
  const canvas = new OffscreenCanvas(24, 16), pen = canvas.getContext('2d');
  pen.imageSmoothingQuality = 'high';
  pen.drawImage(bitmap, 0, 0, 24, 16);
  return [bitmap.width, bitmap.height, ...pen.getImageData(0, 0, 24, 16).data];
}"""
"""Width, height and a stamp of 24 x 16 pixels of a picture."""

MOST_APART = 24
"""Mean difference of a channel, of 255: other figures move points, another page moves all."""


def stamp(browser: Any, path: Path) -> tuple[list[int], list[int]]:
    """Size and pixels of a picture, shrunken until only its layout is left."""
    page = browser.new_page()
    source = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    figures = page.evaluate(PIXELS, source)
    page.close()
    return figures[:2], figures[2:]


def words(path: Path) -> str:
    """The text of a drawing."""
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", path.read_text("utf-8")).split())


@pytest.mark.timeout(300)
def test_the_pictures_are_todays(browser: Any, tmp_path: Path) -> None:
    made = make_pictures(tmp_path, browser)
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(NAMES)
    for path in made:
        kept = KEPT / path.name
        assert max(kept.stat().st_size, path.stat().st_size) < MOST_BYTES
        if path.suffix == ".svg":
            for picture in (kept, path):
                missing = [word for word in WORDS[path.name] if word not in words(picture)]
                assert missing == [], picture
                assert "@font-face" not in picture.read_text("utf-8"), "it asks the network"
            continue
        (size, now), (kept_size, then) = stamp(browser, path), stamp(browser, kept)
        assert size == kept_size
        apart = sum(abs(one - other) for one, other in zip(now, then, strict=True)) / len(now)
        assert apart < MOST_APART, path.name
