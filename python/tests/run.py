"""Runs the tests with what this interpreter has; status 77 where that is too little.

run.py [FILE...]   of this folder; all of them if none is named
"""

import importlib.util
import os
import sys

for module in ("numpy", "pytest"):
    if importlib.util.find_spec(module) is None:
        print(f"{sys.executable} has no {module}")
        sys.exit(77)

import pytest  # noqa: E402

folder = os.path.dirname(os.path.abspath(__file__))
files = [os.path.join(folder, name) for name in sys.argv[1:]] or [folder]
sys.exit(pytest.main([*files, "-p", "no:cacheprovider", "-r", "s"]))
