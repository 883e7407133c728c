import os

import numpy as np
import pytest

# JAX would take most of a GPU's memory for itself, and leave too little to the others.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@pytest.fixture
def draw():
    """draw(2, 37, 4, 32): fresh numbers in float32."""
    generator = np.random.default_rng(20240607)

    def numbers(*shape):
        return generator.standard_normal(shape, dtype=np.float32)

    return numbers
