"""
Segments of an image
====================

Every pixel is a point with five columns: red, green, blue, and its place. ANCMM cuts
the graph of these points where it is thinnest, so that a segment is a region that one
can walk through by small steps of color and place, as from the dark to the bright
petals of the flower. K-Means on the same columns has no such notion: it puts colors
into bins, and a shaded thing falls into several of them.

What is better depends on what it is for. The regions of ANCMM lie in fewer pieces;
K-Means has the smaller error of color, and is the one to take to reduce the number of
colors. A smooth sky is cut by both, because six segments were asked for: no method
here knows what a sky is, and in an image of another size the cut is elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import label
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from bistochastic import ANCMM

SEGMENTS = 6
STEP = 7  # pixels on each side that become one


def small(name):
    """Load an image with fewer pixels, each the mean of a block."""
    image = load_sample_image(name) / 255.0
    height, width = (side // STEP for side in image.shape[:2])
    image = image[: STEP * height, : STEP * width]
    blocks = image.reshape(height, STEP, width, STEP, 3)
    return blocks.mean(axis=(1, 3))


def columns(image):
    """Return color and place of each pixel; the width of the image counts as 1.

    One unit is also the way from no red to full red. A larger weight of the place
    makes rounder segments, a smaller one lets them reach over the whole image.
    """
    height, width = image.shape[:2]
    place = np.mgrid[:height, :width].reshape(2, -1).T / width
    return np.c_[image.reshape(-1, 3), place]


def pieces(segments):
    """Count the connected pieces of all segments."""
    return sum(label(segments == number)[1] for number in np.unique(segments))


# %%
# The two photographs that come with scikit-learn. The number of neighbors is given
# here to save time; ``n_neighbors="auto"`` takes some five times as long.

palette = plt.get_cmap("tab10")(range(SEGMENTS))[:, :3]
figure, axes = plt.subplots(2, 4, figsize=(13, 4.8), layout="constrained")
for row, name in zip(axes, ("china.jpg", "flower.jpg"), strict=True):
    image = small(name)
    X = columns(image)
    shape = image.shape[:2]
    methods = {
        "ANCMM": ANCMM(SEGMENTS, n_neighbors=20, random_state=0),
        "K-Means": KMeans(SEGMENTS, n_init=5, random_state=0),
    }
    shown = [("The image", image)]
    for method, model in methods.items():
        labels = model.fit_predict(X)
        means = np.array([X[labels == c, :3].mean(axis=0) for c in range(SEGMENTS)])
        error = np.sqrt(np.mean((X[:, :3] - means[labels]) ** 2))
        n_pieces = pieces(labels.reshape(shape))
        print(
            f"{name:<10} {method:<8} {SEGMENTS} segments in {n_pieces:3d} pieces, "
            f"error of color {error:.3f}"
        )
        if method == "ANCMM":
            shown.append(("Segments of ANCMM", palette[labels].reshape(*shape, 3)))
        title = f"{method}: {n_pieces} pieces, error {error:.2f}"
        shown.append((title, means[labels].reshape(*shape, 3)))
    for ax, (title, picture) in zip(row, shown, strict=True):
        ax.imshow(picture)
        ax.set(title=title, xticks=[], yticks=[])
plt.show()
