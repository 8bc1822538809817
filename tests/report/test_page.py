"""Pages as files: whole, escaped, small, one at a time."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

from bistochastic import ANCMM, CAN, DSDC, InputError
from bistochastic.core.errors import MissingError, OutputError
from bistochastic.report import check_installed, write_page
from bistochastic.report.page import as_data
from pages import hostile


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_nothing_of_the_data_becomes_a_tag(tmp_path):
    text = hostile(tmp_path).read_text(encoding="utf-8")
    seen = Seen()
    seen.feed(text)
    assert seen.tags.count("script") == 3
    assert not {"img", "svg", "b"} & set(seen.tags)
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert "{{ 7 * 7 }}" in text
    assert ">49<" not in text
    shown = text.split('<h2 id="data-in-a-plane"')[1].split('<h2 id="made"')[0]
    assert "a" * 59 in shown
    assert "a" * 60 not in shown


def held(text):
    found = re.search(r'id="held">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def test_only_the_scripts_that_are_meant_may_run(tmp_path):
    import base64
    import hashlib

    text = hostile(tmp_path).read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_data_cannot_end_their_script():
    text = as_data({"a": "</script><!--", "b": ["&"]})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!--", "b": ["&"]}
    with pytest.raises(ValueError, match="JSON"):
        as_data({"a": float("nan")})


def test_the_plane_holds_the_rows(tmp_path):
    X, _ = make_blobs(150, 2, centers=3, random_state=0)
    model = ANCMM(3, random_state=0).fit(X)
    write_page(tmp_path / "a.html", model, X, names=["across", "up"])
    plane = held((tmp_path / "a.html").read_text())["plane"]
    import base64

    steps = np.frombuffer(base64.b64decode(plane["x"]), "<u2") / 65535
    x = plane["low"][0] + steps * (plane["high"][0] - plane["low"][0])
    np.testing.assert_allclose(x, X[:, 0], atol=1e-3)
    labels = np.frombuffer(base64.b64decode(plane["label"]), "<u2")
    np.testing.assert_array_equal(labels, model.labels_)
    ends = np.frombuffer(base64.b64decode(plane["edges"]), "<u4").reshape(-1, 2)
    assert (model.affinity_matrix_.toarray()[ends[:, 0], ends[:, 1]] > 0).all()
    assert plane["axes"] == ["across", "up"]
    assert len(plane["colors"]) == 3


def test_what_is_left_out_is_said(tmp_path, monkeypatch):
    from bistochastic.report import charts

    monkeypatch.setattr(charts, "DRAWN", 100)
    monkeypatch.setattr(charts, "NAMES", 500)
    X, _ = make_blobs(300, 5, centers=3, random_state=0)
    model = ANCMM(3, random_state=0).fit(X)
    write_page(tmp_path / "a.html", model, X, ids=[f"name {i}" for i in range(300)])
    text = (tmp_path / "a.html").read_text()
    assert "100 of 300 rows are drawn, chosen at random." in text
    assert "Names are too long to be sent along" in text
    plane = held(text)["plane"]
    assert plane["n"] == 100
    assert plane["names"] is None
    assert re.search(r"\d+ of \d\S* edges are drawn", text)


@pytest.mark.parametrize("kind", ["CAN", "pairs", "sparse", "one", "all", "1d"])
def test_every_kind_of_result_has_a_page(kind, tmp_path):
    X, _ = make_blobs(80, 4, centers=3, random_state=0)
    if kind == "CAN":
        model = CAN(3).fit(X)
    elif kind == "pairs":
        X = pairwise_distances(X)
        model = ANCMM(3, metric="precomputed").fit(X)
    elif kind == "sparse":
        X = csr_array(np.where(X > 0, X, 0))
        model = ANCMM(3).fit(X)
    elif kind == "1d":
        X = X[:, :1]
        model = ANCMM(3).fit(X)
    else:
        model = ANCMM(1 if kind == "one" else 80).fit(X)
    place = tmp_path / "page.html"
    write_page(place, model, X)
    text = place.read_text()
    assert text.rstrip().endswith("</html>")
    assert len(held(text)["plane"]["colors"]) == model.labels_.max() + 1


def test_frames_name_their_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, _ = make_blobs(90, 3, centers=2, random_state=1)
    frame = pandas.DataFrame(X, columns=["height", "width", "depth"])
    model = ANCMM(2).fit(frame)
    write_page(tmp_path / "a.html", model, frame)
    assert "height" in (tmp_path / "a.html").read_text()


def test_files_are_not_written_over(tmp_path):
    X, _ = make_blobs(30, random_state=0)
    model = ANCMM(3).fit(X)
    place = tmp_path / "a.html"
    place.write_text("mine")
    with pytest.raises(OutputError, match="there already"):
        write_page(place, model, X)
    assert place.read_text() == "mine"
    write_page(place, model, X, force=True)
    with pytest.raises(InputError, match="DSDC has no graph to show"):
        write_page(tmp_path / "b.html", DSDC(3, random_state=0).fit(X), X)
    with pytest.raises(InputError, match="layout"):
        write_page(tmp_path / "b.html", model, X, layout="umap")
    assert not (tmp_path / "b.html").exists()


@pytest.mark.parametrize("name", ["plotly", "jinja2"])
def test_missing_libraries_are_named(name, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingError, match=rf"{name}.*bistochastic\[report\]"):
        check_installed()


def test_words_fit_the_estimator(tmp_path):
    from bistochastic import DoublyStochasticSpectral

    X, _ = make_blobs(80, 4, centers=3, random_state=0)
    texts = {}
    for model in (ANCMM(3), CAN(3), DoublyStochasticSpectral(3, random_state=0)):
        name = type(model).__name__
        write_page(tmp_path / f"{name}.html", model.fit(X), X)
        texts[name] = (tmp_path / f"{name}.html").read_text()
    assert "every row sums to one, and there is nothing between" in texts["ANCMM"]
    assert "every row sums to one" not in texts["CAN"]
    assert ">The matrix<" in texts["CAN"]
    assert "weights are between clusters" in texts["DoublyStochasticSpectral"]
    assert "steady over k" in texts["ANCMM"]
    write_page(tmp_path / "k.html", ANCMM(3, n_neighbors=9).fit(X), X)
    assert "steady over k" not in (tmp_path / "k.html").read_text()


def test_the_code_on_the_page_can_be_run(tmp_path):
    from html import unescape

    X, _ = make_blobs(80, 4, centers=3, random_state=0)
    write_page(tmp_path / "a.html", ANCMM(np.int64(3), tol=1e-9).fit(X), X)
    text = (tmp_path / "a.html").read_text()
    code = unescape(re.findall(r"<code>(.*?)</code>", text, re.DOTALL)[-1])
    held = {"X": X}
    exec(code, held)
    assert held["model"].get_params()["tol"] == 1e-9
    assert "np.int64" not in code


def test_names_of_axes_are_not_markup(tmp_path):
    X, _ = make_blobs(80, 2, centers=3, random_state=0)
    names = ['<a href="https://evil.example/">click</a>', "price <b>gross</b>"]
    write_page(tmp_path / "a.html", ANCMM(3).fit(X), X, names=names)
    axes = held((tmp_path / "a.html").read_text())["plane"]["axes"]
    assert not any("<" in name for name in axes)
