"""Run the test suite as it would run on other processors; `make test-cpus`.

OpenBLAS, NumPy and Numba each choose their code by the processor, and sums then differ in the
last digits. Each setting below makes all three choose as on an older or a newer machine; those
that this one cannot run are skipped. Arguments are passed on to pytest.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import NamedTuple

import numpy as np


class Setting(NamedTuple):
    """What stands for one kind of processor."""

    name: str
    blas: str  # a core of OpenBLAS
    compiled_for: str  # a processor of LLVM
    needs: frozenset[str]  # one of these features of NumPy, unless empty
    allows: frozenset[str]  # features of NumPy that are left on
    threads: str = ""  # of OpenBLAS; as many as there are by default


AVX2 = frozenset({"AVX2", "FMA3", "AVX", "F16C", "X86_V3"})
AVX512 = frozenset({"AVX512F", "AVX512CD", "AVX512_SKX", "X86_V4"})
SETTINGS = {
    "x86_64": [
        Setting("sse", "Nehalem", "generic", frozenset(), frozenset(), threads="1"),
        Setting("avx2", "Haswell", "haswell", AVX2, AVX2),
        Setting("avx512", "SkylakeX", "skylake-avx512", AVX512, AVX2 | AVX512),
    ],
    "aarch64": [Setting("armv8", "ARMV8", "generic", frozenset(), frozenset(), threads="1")],
}
ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}


def found_features() -> set[str]:
    """Features beyond the baseline that NumPy uses on this machine."""
    return set(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))


def environment(setting: Setting, features: set[str]) -> dict[str, str]:
    """Build the variables that make all three libraries choose as the setting says."""
    chosen = {
        "OPENBLAS_CORETYPE": setting.blas,
        "NUMBA_CPU_NAME": setting.compiled_for,
        # Those of the processor that is named; Numba would add those of this machine.
        "NUMBA_CPU_FEATURES": "",
    }
    if disabled := sorted(features - setting.allows):
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled)
    if setting.threads:
        chosen["OPENBLAS_NUM_THREADS"] = setting.threads
    return chosen


def main() -> int:
    """Run pytest once per setting and say how each went."""
    machine = platform.machine().lower()
    settings = SETTINGS.get(ALIASES.get(machine, machine), [])
    if not settings:
        print(f"no settings are known for a machine of the kind {machine!r}")
        return 1
    features, went = found_features(), {}
    for setting in settings:
        if setting.needs and not setting.needs & features:
            went[setting.name] = "skipped: this machine has no such instructions"
            continue
        chosen = environment(setting, features)
        print(
            f"--- {setting.name}: {' '.join(f'{k}={v!r}' for k, v in chosen.items())}", flush=True
        )
        code = subprocess.run(
            [sys.executable, "-m", "pytest", *sys.argv[1:]],
            env={**os.environ, **chosen},
            check=False,
        ).returncode
        went[setting.name] = "passed" if code == 0 else f"FAILED (exit code {code})"
    for name, how in went.items():
        print(f"{name:8} {how}")
    return int(any(how.startswith("FAILED") for how in went.values()))


if __name__ == "__main__":
    sys.exit(main())
