"""Libraries that speak DLPack and are neither NumPy nor PyTorch."""

import numpy as np
import pytest

import strobe
from arrays import OnDevice, SpeaksDLPack


def test_gives_back_what_it_was_given(draw):
    q, k = draw(2, 37, 4, 32), draw(2, 41, 2, 32)
    out, lse = strobe.attention(*(SpeaksDLPack(array) for array in (q, k, k)), return_lse=True)
    expected, expected_lse = strobe.attention(q, k, k, return_lse=True)
    assert type(out) is type(lse) is SpeaksDLPack
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(lse.numpy(), expected_lse)


def test_results_outlive_the_call(draw):
    q = draw(2, 300, 4, 64)
    expected = strobe.attention(q, q, q)
    results = [strobe.attention(*[SpeaksDLPack(q)] * 3).numpy() for _ in range(20)]
    assert all(np.array_equal(result, expected) for result in results)


def test_arguments_may_be_of_several_libraries(draw):
    q = draw(1, 5, 2, 8)
    expected = strobe.attention(q, q, q)
    np.testing.assert_array_equal(strobe.attention(q, SpeaksDLPack(q), memoryview(q)), expected)
    mixed = strobe.attention(SpeaksDLPack(q), q, memoryview(q))
    np.testing.assert_array_equal(mixed.numpy(), expected)


@pytest.mark.skipif(bool(strobe.info()["gpus"]), reason="there is a GPU")
def test_says_what_a_gpu_lacks(draw):
    q = OnDevice(draw(1, 5, 2, 8))
    with pytest.raises(NotImplementedError, match="driver"):
        strobe.attention(q, q, q)
