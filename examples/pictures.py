"""Run the examples without a screen and keep their pictures."""

import os
import runpy
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

os.environ.setdefault("BISTOCHASTIC_POINTS", "100000")  # of plot_million.py


def pictures(example, folder):
    """Run one example; return the files that its pictures went to."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []

    def keep():
        for number in plt.get_fignums():
            file = folder / f"{example.stem}-{number}.png"
            plt.figure(number).savefig(file)
            made.append(file)
        plt.close("all")

    plt.show = keep
    print(f"== {example.name}")
    runpy.run_path(example)
    keep()
    return made


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    made = []
    for example in sorted(Path(__file__).parent.glob("plot_*.py")):
        try:
            made += pictures(example, folder)
        except ImportError as error:
            print(f"left out: {error}")
    print("", *made, sep="\n")
