"""A page whose names and labels try to break out of it."""

from sklearn.datasets import make_blobs

from bistochastic import ANCMM
from bistochastic.report import write_page

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'`><svg onload=window.hacked=1>",
    "{{ 7 * 7 }}{% raw %}",
    "%{x}<b>bold</b>&amp;",
    "<!--",
    "]]>",
    "🍷 Ünïcode ‮ right to left",
    "a" * 10_000,
    "\x00\x1b[31m\n\t",
    "\ud800",
]


def hostile(folder, n=60):
    X, y = make_blobs(n, len(HOSTILE), centers=3, random_state=0)
    model = ANCMM(3, random_state=0).fit(X)
    place = folder / "hostile.html"
    write_page(
        place, model, X, names=HOSTILE, ids=[HOSTILE[i % 12] for i in range(n)],
        truth=[HOSTILE[i] for i in y], title=HOSTILE[0],
        more={"file": HOSTILE[1], "notes": HOSTILE, "warnings": HOSTILE,
              "command": HOSTILE[1]},
    )  # fmt: skip
    return place
