"""Pictures of pages, compared so that another font is no difference and a chart
that is missing is one.

A picture is cut into areas: the page's sections, which other fonts move, and
its charts. Each is averaged into blocks of 32 x 32 pixels of the golden's, so
that glyphs become grey; a block differs by its channel that differs most, 0 to
1. Of a chart the share of coloured pixels is compared too: points and lines are
few in any block.
"""
import io
import json

import numpy
from PIL import Image, PngImagePlugin

BLOCK = 32
# Of an area. In three other fonts the pages differ by up to 0.03 in the mean and
# 0.61 at most; without charts that fill their place by 0.07 and more in the mean.
MEAN, MOST = 0.05, 0.7
SIZES = 1.5  # height of an area to the golden's, or the reverse
INK = 1.5  # coloured pixels of a chart to the golden's, or the reverse
COLOURS = 96

# [name, x, y, width, height, is a chart] of each; what is above the first
# section is the "top".
AREAS = """
(() => {
  const all = [...document.querySelectorAll('section')];
  const rounded = list => list.map(
      x => typeof x === 'number' ? Math.round(x) : x);
  const area = (name, e) => {
    const r = e.getBoundingClientRect();
    return rounded([name, r.left, r.top + scrollY, r.width, r.height, false]);
  };
  // Inside of its axes: no legend, no ticks.
  const plot = (name, canvas) => {
    const r = canvas.getBoundingClientRect();
    const {left, top, width, height} =
        charts.find(c => c.canvas === canvas).chart.chartArea;
    return rounded([name, r.left + left, r.top + scrollY + top, width, height,
                    true]);
  };
  const name = s => s.querySelector('h2').textContent;
  return [['top', 0, 0, innerWidth, area('', all[0])[2], false],
          ...all.flatMap(s => [area(name(s), s),
              ...[...s.querySelectorAll('canvas')].map(
                  c => plot(`chart of ${name(s)}`, c))])];
})()
"""


class Picture:
    def __init__(self, image, areas):
        self.image = image.convert("RGB")
        self.areas = [a for a in areas if a[2] + a[4] <= image.height]

    @classmethod
    def of(cls, page, width, height):
        """The page as far as `height`; areas that are cut do not count."""
        areas = page.run(AREAS)
        height = min(height, max(a[2] + a[4] for a in areas) + 40)
        shown = Image.open(io.BytesIO(page.picture(width, height)))
        return cls(shown, areas)

    @classmethod
    def read(cls, path):
        image = Image.open(path)
        return cls(image, json.loads(image.text["areas"]))

    def write(self, path):
        info = PngImagePlugin.PngInfo()
        info.add_text("areas", json.dumps(self.areas))
        self.image.quantize(COLOURS).save(path, optimize=True, pnginfo=info)

    def part(self, area):
        _, x, y, width, height, _ = area
        return self.image.crop((x, y, x + max(1, width), y + max(1, height)))

    def blocks(self, area, shape):
        part = self.part(area).resize(shape, Image.Resampling.BOX)
        return numpy.asarray(part, dtype=float) / 255

    def ink(self, area):
        """The share of pixels that have a colour."""
        pixels = numpy.asarray(self.part(area), dtype=int)
        return float((numpy.ptp(pixels, axis=2) > 60).mean())


def unlike(a, b, factor):
    return max(a, b) > factor * min(a, b)


def differences(golden, picture):
    """[what is wrong]: empty where the picture is as the golden."""
    def names(p):
        return [a[0] for a in p.areas]

    # Those at the end may be cut in one and whole in the other.
    common = min(len(golden.areas), len(picture.areas))
    if abs(len(golden.areas) - len(picture.areas)) > 2 or \
            names(golden)[:common] != names(picture)[:common]:
        return [f"areas {names(picture)}, expected {names(golden)}"]
    wrong = []
    for old, new in zip(golden.areas, picture.areas):
        name, _, _, width, height, is_chart = old
        if unlike(height, new[4], SIZES):
            wrong.append(f"{name}: {new[4]} px high, and was {height}")
            continue
        shape = (max(1, width // BLOCK), max(1, height // BLOCK))
        blocks = abs(golden.blocks(old, shape) -
                     picture.blocks(new, shape)).max(axis=2)
        if blocks.mean() > MEAN or blocks.max() > MOST:
            wrong.append(f"{name}: blocks differ by {blocks.mean():.3f} in the "
                         f"mean (at most {MEAN}), {blocks.max():.3f} at most "
                         f"({MOST})")
        inks = golden.ink(old), picture.ink(new)
        if is_chart and unlike(*inks, INK):
            wrong.append(f"{name}: {inks[1]:.4f} of it are coloured, and "
                         f"{inks[0]:.4f} were")
    return wrong
