"""How large pages are, how long they take to write, and to show a first picture.

    python benchmarks/pages.py [FOLDER]

Pages of Wine, digits, 100,000 blobs and a cloud without clusters go to FOLDER
(build/pages by default); Chromium, if it is there, opens each three times.
"""

import shutil
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.preprocessing import scale

from bistochastic import ANCMM
from bistochastic.report import write_page

ARGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def sets():
    wine, digits = load_wine(), load_digits()
    yield "Wine", scale(wine.data), 3, {"truth": wine.target}
    yield "digits", digits.data, 10, {"truth": digits.target}
    cloud = np.random.default_rng(0).normal(size=(1000, 10))
    yield "no clusters", cloud, 5, {}
    X, y = make_blobs(100_000, 16, centers=20, cluster_std=3.5, random_state=0)
    ids = [f"sample-{at:06d}" for at in range(len(X))]
    yield "blobs 100,000", X, 20, {"truth": y, "ids": ids}


def shown(browser, place):
    """Return seconds from opening to the first picture and to all of them."""
    found = []
    for _ in range(3):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(place.as_uri())
        page.wait_for_selector("html[data-drawn]", timeout=120_000)
        data = "document.documentElement.dataset"
        found.append([float(page.evaluate(f"{data}.{w}")) for w in ("first", "drawn")])
        page.close()
    return [statistics.median(part) / 1000 for part in zip(*found, strict=True)]


def main(folder="build/pages"):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    rows = []
    for name, X, c, more in sets():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            model = ANCMM(c, random_state=0).fit(X)
            fitted = time.perf_counter()
        place = folder / f"{name.replace(' ', '-').replace(',', '')}.html"
        write_page(place, model, X, force=True, **more)
        wrote = time.perf_counter()
        rows.append(
            [name, fitted - began, wrote - fitted, place.stat().st_size / 1e6, place]
        )
    print("| page | fit, s | written in, s | MB | first picture, s | all, s |")
    print("|---|---|---|---|---|---|")
    if chromium is None:
        for name, fit, write, size, _ in rows:
            print(f"| {name} | {fit:.2f} | {write:.2f} | {size:.2f} | no Chromium | |")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        for name, fit, write, size, place in rows:
            first, every = shown(browser, place)
            print(
                f"| {name} | {fit:.2f} | {write:.2f} | {size:.2f} | {first:.2f} | "
                f"{every:.2f} |"
            )
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
