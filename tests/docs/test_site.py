"""The site: it builds without a warning, its links lead somewhere, its snippets run."""

import fcntl
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ("index.md", "start.md", "pages.md", "gpu.md", "scale.md")


@pytest.mark.parametrize("name", PAGES)
def test_snippets_run_and_print_what_they_say(name, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    for page, library in (("gpu.md", "torch"), ("scale.md", "distributed")):
        if name == page:
            pytest.importorskip(library)
    text = (DOCS / name).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    code = "\n".join(blocks)
    script = tmp_path / "snippet.py"  # workers import it
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin"}
        | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )  # fmt: skip
    said = [
        line.split("# ", 1)[1]
        for line in code.splitlines()
        if line.lstrip().startswith("print") and "# " in line
    ]
    assert done.stdout.splitlines() == said


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        if "id" in held:
            self.ids.add(held["id"])
        for name in ("href", "src"):
            if held.get(name):
                self.links.append(held[name])


def built(folder):
    """Build the site, and leave a mark when it is whole."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html",
         str(DOCS), str(folder)],
        capture_output=True, text=True, check=False, env=None,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (folder / "whole").touch()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, which one of the processes of a run builds."""
    for name in ("sphinx", "sphinx_gallery", "myst_parser", "numpydoc", "scanpy",
                 "pydata_sphinx_theme", "sphinx_copybutton", "leidenalg"):  # fmt: skip
        pytest.importorskip(name)
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # the processes' own folders lie there
    with open(place / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "site" / "whole").exists():
            built(place / "site")
    return place / "site"


def pages_of(site):
    """Return the pages with their links; a theme's own files are not pages."""
    found = (page for page in site.rglob("*.html") if "_static" not in page.parts)
    return {page: Links(page.read_text()) for page in found}


@pytest.mark.first
def test_every_link_leads_somewhere(site):
    pages = pages_of(site)
    assert len(pages) > 50
    wrong = []
    for page, held in pages.items():
        for link in held.links:
            if re.match(r"[a-z]+:", link) or link in ("#", ""):
                continue
            place, _, part = link.partition("#")
            target = page if not place else page.parent / unquote(place.split("?")[0])
            target = target.resolve()
            if not target.exists() or (
                part and target in pages and unquote(part) not in pages[target].ids
            ):
                wrong.append((page.name, link))
    assert wrong == []


def clicks(pages, start, wanted):
    """Return how many clicks in the text lead from a page to another."""
    seen, now, count = {start}, {start}, 0
    while now and wanted not in now:
        links = {(page.parent / link.partition("#")[0]).resolve()
                 for page in now for link in pages[page].links}  # fmt: skip
        now = {page for page in links if page in pages} - seen
        seen |= now
        count += 1
    return count if wanted in now else None


@pytest.mark.first
@pytest.mark.parametrize(
    ("aim", "page"),
    [
        ("cluster a CSV", "start.html"),
        ("which files can be read", "files.html"),
        ("scale a Hi-C map", "gallery/plot_contact_map.html"),
        ("cite a theorem", "theory/marcus.html"),
        ("add a method", "extend.html"),
        ("what a message means", "troubleshooting.html"),
        ("every parameter", "generated/bistochastic.ANCMM.html"),
    ],
)
def test_three_clicks_lead_there(site, aim, page):
    pages = pages_of(site)
    found = clicks(pages, site / "index.html", site / page)
    assert found is not None, aim
    assert found <= 3, aim


@pytest.mark.first
def test_every_public_name_has_a_page(site):
    import bistochastic
    import bistochastic.io
    import bistochastic.plot
    import bistochastic.tables

    public = (
        bistochastic,
        bistochastic.io,
        bistochastic.plot,
        bistochastic.tables,
    )
    for module in public:
        for name in module.__all__:
            if module.__name__ == "bistochastic.io" and name in ("Column", "Table"):
                continue
            assert (site / "generated" / f"{module.__name__}.{name}.html").is_file(), (
                name
            )


@pytest.mark.first
def test_the_gallery_has_its_pictures(site):
    index = Links((site / "gallery" / "index.html").read_text())
    shown = {link for link in index.links if "thumb" in link}
    assert len(shown) >= 10
    for example in (ROOT / "examples").glob("plot_*.py"):
        page = (site / "gallery" / f"{example.stem}.html").read_text()
        assert "<img" in page, example.name


@pytest.mark.first
def test_it_asks_nothing_of_the_network(site):
    for page in pages_of(site):
        loaded = re.findall(
            r'<(?:script|img|iframe)[^>]*\ssrc="([^"]*)"', page.read_text()
        )
        assert not [link for link in loaded if link.startswith(("http", "//"))], page
