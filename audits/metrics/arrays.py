"""Names for the array types used throughout."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def floats(values: npt.ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def sums_by(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Return the sum of ``values`` for every index below ``size``."""
    return np.bincount(index, weights=values, minlength=size).astype(np.float64)
