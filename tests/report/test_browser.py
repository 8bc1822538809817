"""Pages in a real browser: drawn, hovered, filtered, on phones, in the dark."""

import shutil

import pytest
from sklearn.datasets import make_blobs

from bistochastic import ANCMM
from bistochastic.report import write_page
from pages import hostile

pytest.importorskip("playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("there is no chromium to look at pages with", allow_module_level=True)

ARGS = [
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip
SIZES = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844}, "is_mobile": True,
        "has_touch": True, "device_scale_factor": 2,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def playwright():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as held:
        yield held


@pytest.fixture(scope="module")
def browser(playwright):
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    X, y = make_blobs(240, 2, centers=3, cluster_std=1.4, random_state=2)
    model = ANCMM(3, random_state=0).fit(X)
    place = tmp_path_factory.mktemp("pages") / "small.html"
    write_page(
        place, model, X, names=["length", "width"], truth=y,
        ids=[f"leaf {i}" for i in range(240)],
    )  # fmt: skip
    return place


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    X, _ = make_blobs(6000, 4, centers=5, random_state=2)
    model = ANCMM(5, n_neighbors=10, random_state=0).fit(X)
    place = tmp_path_factory.mktemp("pages") / "large.html"
    write_page(place, model, X)
    return place


class Visit:
    def __init__(self, browser, place, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda m: self.errors.append(m.text) if m.type == "error" else None,
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(place.as_uri())
        self.page.wait_for_selector("html[data-drawn]", timeout=60_000)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", ["small", "large"])
def test_pages_are_drawn_without_errors_or_requests(browser, which, size, request):
    place = request.getfixturevalue(which)
    with Visit(browser, place, **SIZES[size]) as visit:
        page = visit.page
        assert visit.errors == []
        assert visit.requests == [place.as_uri()]
        for name in ("plane", "matrix", "confidence", "agreement", "convergence"):
            if page.query_selector(f"#{name}"):
                assert page.query_selector(f"#{name} .main-svg"), name
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= page.viewport_size["width"]
        colors = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " document.querySelector('#plane .xtitle').style.fill]"
        )
        dark = size == "dark"
        assert (colors[0] == "rgb(21, 23, 27)") == dark
        assert (colors[1] == "rgb(230, 232, 235)") == dark


def shown(page):
    """Return how many rows are drawn in full color."""
    return page.evaluate("document.getElementById('plane').data.at(-1).x.length")


def test_a_cluster_alone_by_list_button_and_click(browser, small):
    with Visit(browser, small, **SIZES["desktop"]) as visit:
        page = visit.page
        assert shown(page) == 240
        page.select_option("#isolate", "1")
        first = shown(page)
        assert 0 < first < 240
        assert page.get_attribute("button.only >> nth=1", "aria-pressed") == "true"
        visible = page.locator("#rows tbody tr:visible")
        assert set(
            visible.evaluate_all("rows => rows.map(r => r.dataset.cluster)")
        ) == {"1"}
        page.click("#reset")
        assert shown(page) == 240
        page.focus("button.only >> nth=2")
        page.keyboard.press("Enter")
        assert page.input_value("#isolate") == "2"
        page.keyboard.press("Enter")
        assert page.input_value("#isolate") == ""
        page.uncheck("#edges")
        assert page.evaluate("document.getElementById('plane').data.length") == 1
        place = point(page, 0)
        page.mouse.move(*place)
        page.wait_for_selector("#tip", state="visible")
        said = page.inner_text("#tip")
        assert said.startswith("leaf 0 · cluster 0 · confidence")
        page.mouse.down()
        page.mouse.up()
        page.wait_for_function("document.getElementById('isolate').value === '0'")
        assert visit.errors == []


def point(page, at):
    """Return where a row is drawn on the screen."""
    page.locator("#plane").scroll_into_view_if_needed()
    return page.evaluate(
        """at => {
          const plot = document.getElementById("plane"), l = plot._fullLayout;
          const box = plot.getBoundingClientRect(), trace = plot.data.at(-1);
          return [box.x + l.xaxis._offset + l.xaxis.d2p(trace.x[at]),
                  box.y + l.yaxis._offset + l.yaxis.d2p(trace.y[at])];
        }""",
        at,
    )


def test_hover_names_a_row_drawn_by_webgl(browser, large):
    with Visit(browser, large, **SIZES["desktop"]) as visit:
        page = visit.page
        page.uncheck("#edges")
        page.mouse.move(*point(page, 17))
        page.wait_for_selector("#tip", state="visible")
        assert "cluster" in page.inner_text("#tip")
        assert visit.errors == []


def test_rows_are_sorted_and_filtered(browser, small):
    with Visit(browser, small, **SIZES["desktop"]) as visit:
        page = visit.page

        def names():
            return page.locator("#rows tbody tr:visible td:first-child")

        page.fill("#filter", "leaf 11")
        found = names().all_inner_texts()
        assert found
        assert all("leaf 11" in name for name in found)
        assert page.inner_text("#counted").startswith(f"{len(found)} of 240")
        page.fill("#filter", "")
        page.click("#rows th button >> nth=0")
        assert names().all_inner_texts()[:3] == ["leaf 0", "leaf 1", "leaf 2"]
        assert page.get_attribute("#rows th >> nth=0", "aria-sort") == "ascending"
        page.click("#rows th button >> nth=2")
        page.click("#rows th button >> nth=2")
        sure = page.locator("#rows tbody td:nth-child(3)").all_inner_texts()
        assert [float(s) for s in sure] == sorted(map(float, sure), reverse=True)


def test_the_theme_may_change_and_the_page_be_printed(browser, small):
    with Visit(browser, small, **SIZES["desktop"]) as visit:
        page = visit.page
        title = "document.querySelector('#plane .xtitle').style.fill"
        before = page.evaluate(title)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{title} !== '{before}'")
        assert len(page.pdf()) > 50_000
        assert visit.errors == []


def test_hostile_names_run_nothing(browser, tmp_path):
    place = hostile(tmp_path)
    with Visit(browser, place, **SIZES["phone"]) as visit:
        page = visit.page
        assert page.evaluate("window.hacked") is None
        assert page.inner_text("h1") == "<script>window.hacked=1</script>"
        assert page.title() == "<script>window.hacked=1</script>"
        cells = page.locator("#rows td.name").all_inner_texts()
        assert "<img src=x onerror=window.hacked=1>" in cells
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        page.fill("#filter", "<script>")
        assert page.locator("#rows tbody tr:visible").count() > 0
        assert visit.errors == []
        assert visit.requests == [place.as_uri()]


def test_text_can_be_read_on_its_ground(browser, small):
    """The contrast of all text, by the rule of WCAG: 4.5 to 1."""
    for size in ("desktop", "dark"):
        with Visit(browser, small, **SIZES[size]) as visit:
            worst = visit.page.evaluate(CONTRAST)
            assert worst[0] >= 4.5, worst


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const c = parse(getComputedStyle(at).backgroundColor);
      layers.push([c[0], c[1], c[2], c.length > 3 ? c[3] : 1]);
    }
    return layers.reverse().reduce((under, over) => under.map(
      (v, at) => over[3] * over[at] + (1 - over[3]) * v), [255, 255, 255]);
  };
  let worst = [99, ""];
  for (const node of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || node.closest("svg, script, noscript, .tip, .skip, option")) continue;
    const a = light(parse(getComputedStyle(node).color)), b = light(ground(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.tagName + " " + node.textContent];
  }
  return worst;
}"""


def test_large_coordinates_keep_their_places(browser, tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * 30 + np.repeat([[0], [400]], 100, axis=0)
    X[:, 0] += 1.7e9
    place = tmp_path / "seconds of 2024, ä.html"
    write_page(place, ANCMM(2).fit(X), X)
    with Visit(browser, place, **SIZES["desktop"]) as visit:
        number = "new Set(document.getElementById('plane').data.at(-1).x).size"
        assert visit.page.evaluate(number) > 150
        assert visit.errors == []


def test_print_shows_what_the_screen_does(browser, small):
    with Visit(browser, small, **SIZES["desktop"]) as visit:
        page = visit.page
        page.click("#rows th button >> nth=2")
        page.click("#rows th button >> nth=2")
        page.emulate_media(media="print")
        sure = page.locator("#rows tbody tr:visible td:nth-child(3)").all_inner_texts()
        assert len(sure) == 40
        assert set(sure) == {"1.00"}


def test_without_webgl_some_rows_are_drawn(playwright, large):
    chromium = playwright.chromium.launch(
        executable_path=CHROMIUM,
        args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
    )
    with Visit(chromium, large, **SIZES["desktop"]) as visit:
        assert 4900 < shown(visit.page) <= 5100
        assert visit.page.inner_text("#less").startswith("Without WebGL, ")
    chromium.close()
