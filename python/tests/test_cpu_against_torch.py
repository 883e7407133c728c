"""What bench/cpu_against_torch.py takes for the same result."""

import importlib.util
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).parents[2] / "bench" / "cpu_against_torch.py"
    spec = importlib.util.spec_from_file_location("cpu_against_torch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_that_cancel_do_not_differ(bench):
    nothing = torch.zeros(1, 2, 1, 64)
    rounding = torch.full((1, 2, 1, 64), 1e-7)
    most = bench.MOST_DIFFERENCE["fp32"]
    assert bench.difference(nothing.transpose(1, 2), nothing) == 0
    assert bench.difference(rounding.transpose(1, 2), nothing) < most
    assert bench.difference(nothing.transpose(1, 2), rounding) < most


def test_what_is_wrong_differs(bench):
    right = torch.randn(1, 2, 40, 64, generator=torch.Generator().manual_seed(0))
    ours = right.transpose(1, 2).clone()
    assert bench.difference(ours, right) == 0
    ours[0, :20, 1] = 0  # of one head
    assert bench.difference(ours, right) > 0.5
    assert bench.difference(torch.ones(1, 1, 2, 64), torch.zeros(1, 2, 1, 64)) > 0.5
    ours[0, 0, 0, 0] = math.nan
    assert math.isnan(bench.difference(ours, right))
