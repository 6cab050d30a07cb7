"""Pages of --report in Chromium, as people meet them: pictures beside goldens,
keys alone, contrast, a phone. `--update-goldens` writes the pictures anew.
"""
import os
import subprocess

import pytest

from browser import CHROMIUM, Browser
from pictures import Picture, differences
from report_pages import LLAMA_1B, LLAMA_8B, NAMES, PLAIN, TARGET, write_pages

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
SCHEMES = ("light", "dark")
WIDTH, HEIGHT = 800, 5400  # pixels of a picture: whole pages
MAX_BYTES = 200_000  # of a golden

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="pages of --report are not looked at: there is no "
    "chromium (tools/setup installs it)")


@pytest.fixture(scope="session")
def pages(program, tmp_path_factory):
    with open(program, "rb") as f:
        if b"chart.js" not in f.read().lower():
            pytest.skip("accel-opt was built without the charts of --report")
    return write_pages(program, str(tmp_path_factory.mktemp("pages")))


@pytest.fixture(scope="session")
def browser():
    with Browser() as opened:
        yield opened


def look(browser, path, dark=False, script=""):
    """(picture, messages of the console), after a script."""
    with browser.page(path, WIDTH, dark=dark) as page:
        if script:
            page.run(script)
            page.frame()
        return Picture.of(page, WIDTH, HEIGHT), page.messages()


def golden_path(name, scheme):
    return os.path.join(GOLDENS, f"{name}-{scheme}.png")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", NAMES)
def test_picture(browser, pages, name, scheme, request, tmp_path):
    picture, messages = look(browser, pages[name], scheme == "dark")
    assert not messages
    path = golden_path(name, scheme)
    if request.config.getoption("--update-goldens"):
        picture.write(path)
    assert os.path.getsize(path) < MAX_BYTES
    wrong = differences(Picture.read(path), picture)
    if wrong:
        picture.write(tmp_path / "now.png")
    assert not wrong, f"{wrong}; it looks like {tmp_path / 'now.png'} now, and " \
        f"{path} is how it looked (--update-goldens)"


@pytest.mark.parametrize("name", NAMES)
def test_picture_of_a_mutant(browser, pages, name):
    """Each chart that is missing or empty is seen; other fonts are not."""
    golden = Picture.read(golden_path(name, "light"))
    with browser.page(pages[name], WIDTH) as page:
        charts = page.run("charts.length")
    assert charts or name == "lint"
    seen = sum(is_chart for *_, is_chart in golden.areas)
    for i in range(seen):
        for script in (f"charts[{i}].canvas.style.visibility = 'hidden'",
                       f"(() => {{ const c = charts[{i}].chart; c.data.datasets"
                       ".forEach(d => { d.data = []; }); c.update(); })()",
                       f"charts[{i}].canvas.closest('figure').remove()"):
            mutant, _ = look(browser, pages[name], script=script)
            assert differences(golden, mutant), script
    dark, _ = look(browser, pages[name], dark=True)
    assert differences(golden, dark)
    for font in ("DejaVu Serif", "Liberation Sans", "DejaVu Sans Mono"):
        other, _ = look(browser, pages[name], script=(
            f"document.body.style.fontFamily = {font!r};"
            f"if (charts.length) {{ Chart.defaults.font.family = {font!r}; "
            "drawCharts(); }"))
        assert not differences(golden, other), font


# Contrast by WCAG 2.2: 4.5 for text (1.4.3), 3 for large text and for what one
# must see to understand a picture or a control (1.4.11).
CONTRAST = """
(() => {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d', {willReadFrequently: true});
  canvas.width = canvas.height = 1;
  const rgba = colour => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map(
      (c, i) => c * top[3] + below[i] * (1 - top[3]));
  const luminance = c => c.slice(0, 3).map(x => x / 255).map(
      x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
      .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = e => e === null ? rgba(getComputedStyle(document.body)
      .backgroundColor).slice(0, 3) : over(rgba(
          getComputedStyle(e).backgroundColor), behind(e.parentElement));
  const found = [];
  const test = (what, colour, background, least) => {
    const r = ratio(over(rgba(colour), background), background);
    if (r < least) found.push(`${what}: ${r.toFixed(2)} of ${least}`);
  };
  for (const d of document.querySelectorAll('details')) d.open = true;
  let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, range = document.createRange();
    range.selectNodeContents(node);
    if (!node.data.trim() || !range.getClientRects().length) continue;
    ++texts;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    if (style.opacity !== '1') found.push(`${node.data}: opacity`);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    test(`'${node.data.trim().slice(0, 40)}'`, style.color, behind(e),
         large ? 3 : 4.5);
  }
  const page = behind(null);
  for (const c of charts) {
    test('ticks', Chart.defaults.color, page, 4.5);
    for (const d of c.chart.data.datasets) {
      const best = [d.borderColor, d.backgroundColor].filter(Boolean).map(
          colour => ratio(over(rgba(colour), page), page));
      if (!best.some(r => r >= 3))
        found.push(`chart's ${d.label}: ${best} of 3`);
    }
  }
  for (const square of document.querySelectorAll('.rank i, .axis i'))
    test('square', getComputedStyle(square).borderTopColor,
         behind(square.parentElement), 3);
  return {texts, found};
})()
"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", NAMES)
def test_contrast(browser, pages, name, scheme):
    with browser.page(pages[name], WIDTH, dark=scheme == "dark") as page:
        result = page.run(CONTRAST)
        assert result["texts"] > 30
        assert not result["found"]
        # What it is for is seen.
        page.run("document.querySelector('h2').style.color = " +
                 ("'#666'" if scheme == "dark" else "'#888'"))
        assert len(page.run(CONTRAST)["found"]) == 1


# What a pointer may use; of boxes that arrow keys choose among, one.
REACHABLE = """
[...document.querySelectorAll('a[href], button, input, select, textarea, summary,'
    + ' [tabindex], [onclick], canvas')].filter(e => e.tabIndex >= 0
    && e.checkVisibility({visibilityProperty: true}))
"""
FOCUSED = f"""
(() => {{
  const e = document.activeElement, style = getComputedStyle(e);
  if (e === document.body) return null;
  return {{index: {REACHABLE}.indexOf(e), tag: e.tagName,
          text: e.textContent.slice(0, 40),
          closed: e.tagName === 'SUMMARY' && !e.parentElement.open,
          outline: e.matches(':focus-visible') && style.outlineStyle === 'solid'
              ? parseFloat(style.outlineWidth) : 0,
          seen: (r => r.bottom > 0 && r.top < innerHeight)(
              e.getBoundingClientRect())}};
}})()
"""


def accessible_name(page):
    found = page.call("Runtime.evaluate", expression="document.activeElement")
    nodes = page.call("Accessibility.getPartialAXTree", fetchRelatives=False,
                      objectId=found["result"]["objectId"])["nodes"]
    return nodes[0].get("name", {}).get("value", "")


@pytest.mark.parametrize("name", NAMES)
def test_keys_reach_everything(browser, pages, name):
    with browser.page(pages[name], WIDTH) as page:
        page.call("Accessibility.enable")
        # Each box of a mesh is reached, by Tab or by arrows.
        assert page.run("[...document.querySelectorAll('canvas, button, input, "
                        "summary')].every(e => e.tabIndex >= 0 || "
                        "e.classList.contains('rank'))")
        closed = page.run("document.querySelectorAll('details:not([open])')"
                          ".length")
        assert closed or name == "lint"
        order, opened = [], 0
        for _ in range(1000):
            page.press("Tab")
            at = page.run(FOCUSED)
            if at is None:
                break
            assert at["outline"] >= 2 and at["seen"], at
            assert accessible_name(page).strip(), at
            if at["closed"]:
                page.press("Enter")
                assert not page.run(FOCUSED)["closed"], at
                page.press(" ")
                assert page.run(FOCUSED)["closed"], at
                page.press("Enter")
                opened += 1
            order.append(page.run(FOCUSED)["index"])
        assert opened == closed
        assert order == list(range(page.run(REACHABLE + ".length"))), order
        assert not page.messages()


def test_keys_read_charts(browser, pages):
    """What a pointer is shown, in words; digits hide and show."""
    with browser.page(pages["fits"], WIDTH) as page:
        page.run("charts[0].canvas.focus()")
        said = "charts[0].canvas.closest('figure').querySelector("\
            "'figcaption').textContent"
        page.press("End")
        page.press("ArrowRight")
        last = page.run(said)
        assert "parameters: " in last and "together: " in last, last
        page.press("Home")
        assert page.run(said) != last
        page.press("1", 49, "1")
        assert page.run(said) == "parameters: hidden"
        assert not page.run("charts[0].chart.isDatasetVisible(0)")
        page.press("1", 49, "1")
        assert page.run(said) == "parameters: shown"
    with browser.page(pages["validate"], WIDTH) as page:
        page.run("charts[1].canvas.focus()")
        seen = set()
        for _ in range(4):
            page.press("ArrowRight")
            seen.add(page.run("charts[1].canvas.closest('figure').querySelector("
                              "'figcaption').textContent"))
        assert any(text.startswith("tt2; ") for text in seen), seen


def test_changes_are_whole(browser, program, tmp_path):
    """Of a set of changes, the file's lines and the script's arguments."""
    subprocess.run([program, "plan", os.path.join(LLAMA_8B, "fsdp.yaml"), "--model",
                    LLAMA_8B, "--micro-batch", "4", "--seq-len", "8192", *TARGET,
                    "--report", "page.html"], cwd=tmp_path, capture_output=True)
    with browser.page(tmp_path / "page.html", WIDTH) as page:
        row = page.run("document.querySelector('tbody tr').innerText")
        assert "fsdp_activation_checkpointing: true" in row, row
        assert "per_device_train_batch_size=1" in row, row


def groups(page):
    """{axis: ranks whose square is filled}."""
    return page.run("""
(() => {
  const axes = [...document.querySelectorAll('.axis')].map(a => a.textContent);
  const boxes = [...document.querySelectorAll('.rank')];
  return Object.fromEntries(axes.map((axis, i) => [axis, boxes.filter(b =>
      b.querySelectorAll('i')[i].classList.contains('in')).map(
          b => Number(b.dataset.rank))]));
})()""")


def test_mesh(browser, pages):
    """Groups are those of torch's mesh: the last axis is of neighbours."""
    import torch
    mesh = torch.arange(16).reshape(2, 4, 2)
    with browser.page(pages["fits"], WIDTH) as page:
        page.run("document.querySelector('.rank').focus()")
        for key, rank in (("", 0), ("ArrowRight", 1), ("ArrowDown", 9),
                          ("End", 15), ("Home", 0)):
            if key:
                page.press(key)
            i, j, k = (mesh == rank).nonzero()[0].tolist()
            assert groups(page) == {
                "dp_replicate": mesh[:, j, k].tolist(),
                "dp_shard": mesh[i, :, k].tolist(),
                "tp": mesh[i, j, :].tolist()}
            said = page.run("document.getElementById('mesh-rank').textContent")
            assert said.startswith(f"Rank {rank} shares dp_replicate with "), said
        text = page.run("document.querySelector('.mesh').closest('section')"
                        ".textContent")
        assert "16 ranks on 2 nodes: dp_replicate 2 × dp_shard 4 × tp 2." in text
        assert "tp 1: ranks 1, 3, 5, 7, 9, 11, 13, 15" in text
        assert "self_attn.q_proj.weight (16 times)0, of 2,048tp 0: 0 to 1,023" \
            "tp 1: 1,024 to 2,047" in text


def test_large_mesh_is_folded(browser, program, tmp_path):
    (tmp_path / "big.yaml").write_text(
        PLAIN.replace("num_processes: 16", "num_processes: 16384").replace(
            "num_machines: 2", "num_machines: 2048") + "parallelism_config:\n"
        "  parallelism_config_dp_replicate_size: 2048\n"
        "  parallelism_config_dp_shard_size: 8\n")
    subprocess.run([program, "plan", "big.yaml", "--model", LLAMA_1B,
                    "--seq-len", "1024", *TARGET, "--report", "big.html"],
                   cwd=tmp_path, check=True, capture_output=True)
    with browser.page(tmp_path / "big.html", 390) as page:
        assert page.run("document.querySelectorAll('.rank').length") == 8
        text = page.run("document.querySelector('.mesh').closest('section')"
                        ".textContent")
        assert "2,047 nodes more" in text
        assert "0, 8, 16 … 16,376 (2,048 ranks)" in text
        assert not page.messages()


@pytest.mark.parametrize("name", NAMES)
def test_phone(browser, pages, name):
    """Tables scroll in their place; the page does not."""
    with browser.page(pages[name], 390) as page:
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert not page.messages()


@pytest.mark.parametrize("name", NAMES)
def test_paper(browser, pages, name):
    """Everything is there, as wide as the paper; nothing of it is cut."""
    with browser.page(pages[name], 700) as page:
        page.call("Emulation.setEmulatedMedia", media="print")
        page.run("dispatchEvent(new Event('beforeprint'))")
        page.frame()
        cut = page.run("""
            [...document.querySelectorAll('main details:not([open])'),
             ...[...document.querySelectorAll('main *')].filter(e =>
                 e.getBoundingClientRect().right > innerWidth)].map(
                     e => e.outerHTML.slice(0, 80))""")
        assert not cut
        closed = page.run("dispatchEvent(new Event('afterprint')); "
                          "document.querySelectorAll('main details:not([open])')"
                          ".length")
        assert bool(closed) == (name not in ("lint", "validate", "diff"))
