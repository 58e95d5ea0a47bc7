"""Environments in which other libraries still work, made once under .venv-peers/."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / ".venv-peers"


@dataclass(frozen=True)
class Peer:
    """A library and the versions that it works with."""

    name: str
    python: str  # the version of Python, major and minor
    pins: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return BASE / self.name

    @property
    def executable(self) -> Path:
        return self.folder / "bin" / "python"


# What this package needs, where it runs beside the other library.
OURS = ("numba", "highspy", "clarabel", "cloudpickle", "safetensors", "threadpoolctl")

PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "sklearn-lvq",
            "3.11",
            ("sklearn-lvq==1.1.1", "numpy==1.23.5", "scipy==1.10.1", "scikit-learn==1.3.1"),
        ),
        # Its `predict` for two classes needs `np.int`, which NumPy 1.24 took away.
        Peer(
            "sklvq",
            "3.11",
            ("sklvq==0.1.2", "numpy==1.23.5", "scipy==1.10.1", "scikit-learn==1.5.2"),
        ),
        # It imports `pkg_resources`, which setuptools 82 took away.
        Peer(
            "prototorch",
            "3.11",
            (
                "prototorch==0.7.6",
                "prototorch-models==0.7.1",
                "setuptools==79.0.1",
                "torch==2.15.0",
                "torchvision==0.29.2",
                "lightning==2.6.6",
                "numpy==2.4.6",
                "scikit-learn==1.9.1",
                *OURS,
            ),
        ),
        Peer(
            "prosemble",
            "3.11",
            (
                "prosemble==2.4.0",
                "jax==0.10.2",
                "chex==0.1.92",
                "optax==0.2.8",
                "numpy==2.4.6",
                "scikit-learn==1.9.1",
                *OURS,
            ),
        ),
        # The oldest that the exporter promises to run on.
        Peer("oldest", "3.7", ("numpy==1.17.5",)),
    )
}


def ready(peer: Peer) -> Path:
    """Return the interpreter of a peer's environment; build it if it is missing or other."""
    stamp = peer.folder / ".installed"
    wanted = hashlib.sha256("\n".join((peer.python, *peer.pins)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return peer.executable
    shutil.rmtree(peer.folder, ignore_errors=True)
    BASE.mkdir(exist_ok=True)
    (BASE / ".gitignore").write_text("*\n")
    _run([_python(peer.python), "-m", "venv", str(peer.folder)])
    _run([str(peer.executable), "-m", "pip", "install", "--quiet", *peer.pins])
    stamp.write_text(wanted)
    return peer.executable


class NoSuchPython(RuntimeError):
    """This machine has no Python of the version that a peer needs."""


def _python(version: str) -> str:
    """Find a Python of that version: named by the user, running, or on the path."""
    named = os.environ.get(f"PYTHON{version.replace('.', '')}")
    if named:
        return named
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "-V"], capture_output=True, check=False).returncode:
        raise NoSuchPython(
            f"there is no python{version} on the path; install it, or name one: "
            f"make test-peers PYTHON{version.replace('.', '')}=/path/to/python{version}"
        )
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
