"""Real handwritten digits: 1797 images of 8x8 pixels that scikit-learn ships (NIST, by way of the UCI repository)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

TEST = 360
"""How many of the last images are kept back for the test."""


class Digits(NamedTuple):
    """Images, float32[count, 8, 8, 1] with values from 0 to 1, and their labels, int32[count]."""

    images: NDArray[np.float32]
    labels: NDArray[np.int32]

    def batches(self, size: int, epochs: int, seed: int = 0) -> Iterator["Digits"]:
        """Shuffled batches of one size; what is left over at the end of an epoch is dropped."""
        generator = np.random.default_rng(seed)
        for _ in range(epochs):
            order = generator.permutation(len(self.labels))
            for begin in range(0, len(order) - size + 1, size):
                chosen = order[begin : begin + size]
                yield Digits(self.images[chosen], self.labels[chosen])


def load() -> tuple[Digits, Digits]:
    """The images to train with, and those to test with."""
    bunch = load_digits()
    images = (bunch.images[..., None] / 16).astype(np.float32)
    labels = bunch.target.astype(np.int32)
    return Digits(images[:-TEST], labels[:-TEST]), Digits(images[-TEST:], labels[-TEST:])
