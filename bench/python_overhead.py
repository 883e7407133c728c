#!/usr/bin/env python3
"""What importing the package takes, and what a call from Python takes more than the C++ call within
it, on the CPU, for each library that is installed: python3 bench/python_overhead.py

The import is that of a fresh interpreter, of which no other library is there yet. Of a call, both
are timed in turns, many calls at a time, on the same arrays; the figure is the difference of
the fastest turns, which others on the machine disturbed least. One query and one key leave almost
nothing else to time.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time

import strobe
from strobe import _native
from strobe._libraries import library_of

CALLS, TURNS = 50, 401  # a turn is shorter than what the scheduler gives a process at a time
IMPORTS = 20


def seconds_of_import() -> list[float]:
    """Of each of some interpreters, the fastest first."""
    program = (
        "import time; start = time.perf_counter(); import strobe; "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", program]
    return sorted(float(subprocess.check_output(command)) for _ in range(IMPORTS))


def seconds_from_python(arrays: dict) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        strobe.attention(**arrays, threads=1)
    return (time.perf_counter() - start) / CALLS


def measure(q) -> tuple[float, float]:
    """Seconds of the call from Python, and of the C++ call."""
    arrays = {"q": q, "k": q, "v": q}
    library = library_of(q, "q")
    from_python, alone = [], []
    for _ in range(TURNS):
        from_python.append(seconds_from_python(arrays))
        alone.append(_native.time_alone(library, arrays, {"threads": 1}, CALLS))
    return min(from_python), min(alone)


times = seconds_of_import()
print(f"import strobe: {times[0] * 1e3:.1f} ms, median {times[IMPORTS // 2] * 1e3:.1f} ms\n")
print(f"{'library':10} {'Python':>9} {'C++':>9} {'overhead':>9}")
for name in ("numpy", "torch", "jax.numpy"):
    try:
        library = importlib.import_module(name)
    except ImportError:
        print(f"{name:10} is not installed")
        continue
    python, cpp = measure(library.ones((1, 1, 1, 64), dtype=library.float32))
    print(f"{name:10} {python * 1e6:6.2f} µs {cpp * 1e6:6.2f} µs {(python - cpp) * 1e6:6.2f} µs")
