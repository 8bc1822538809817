"""Run the examples without a screen and keep their pictures."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt


def picture(example, folder):
    """Run one example; return the file that its picture went to."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{example.stem}.png"
    plt.show = lambda: plt.savefig(file)
    print(f"== {example.name}")
    runpy.run_path(example)
    plt.close("all")
    return file


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    made = [picture(e, folder) for e in sorted(Path(__file__).parent.glob("plot_*.py"))]
    print("", *made, sep="\n")
