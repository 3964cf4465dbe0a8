"""Arrays for the native module: in this machine's byte order, the last axis running fastest."""
from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from ._native import Error


def as_arrays(feed: Mapping[str, Any]) -> dict[str, np.ndarray]:
    arrays = {}
    for name, value in feed.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise Error(f"input {name} is an array of {array.dtype}, which no tensor is of")
        arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    return arrays
