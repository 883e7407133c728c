import numpy as np
import pytest


@pytest.fixture
def draw():
    """draw(2, 37, 4, 32): fresh numbers in float32."""
    generator = np.random.default_rng(20240607)

    def numbers(*shape):
        return generator.standard_normal(shape, dtype=np.float32)

    return numbers
