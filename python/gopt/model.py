"""Models that run."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from . import _native
from ._arrays import as_arrays

if TYPE_CHECKING:
    import numpy as np

Functions = Mapping[str, Callable[..., Any]]

# Element types by the names that ONNX Runtime gives them.
_RUNTIME_NAMES = {"f16": "float16", "f32": "float", "f64": "double", "i8": "int8", "i16": "int16", "i32": "int32",
                  "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
                  "string": "string", "bf16": "bfloat16"}


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or output, as ONNX Runtime describes it."""

    name: str
    type: str  # "tensor(float)"
    shape: list[int | str] | None  # symbols by name; None where the rank is unknown


class Model:
    """A model that runs, with the methods that ONNX Runtime's InferenceSession has. One run at a time."""

    def __init__(self, native: _native.Model) -> None:
        self._native = native
        self._outputs = [name for name, _, _ in native.outputs()]

    @property
    def engine(self) -> str:
        """"cpu", code that was made for it, or "interpreter", the definitions as they stand (slow)."""
        return self._native.engine()

    def get_inputs(self) -> list[Value]:
        return [value_of(*row) for row in self._native.inputs()]

    def get_outputs(self) -> list[Value]:
        return [value_of(*row) for row in self._native.outputs()]

    def answer(self, functions: Functions) -> None:
        """Functions for operators without definition, by operator or node, from arrays to an array or several."""
        self._native.answer({name: _as_lists(function) for name, function in functions.items()})

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[np.ndarray]:
        """The outputs of these names, in that order (None: all), for inputs by name.

        Raises Error where an input is missing or unknown, or is not of the model's type and shape, and says which.
        """
        wanted = self._outputs if output_names is None else list(output_names)
        for name in wanted:
            if name not in self._outputs:
                raise _native.Error(f"the model has no output '{name}'; it has {', '.join(self._outputs)}")
        outputs = dict(zip(self._outputs, self._native.run(as_arrays(input_feed))))
        return [outputs[name] for name in wanted]


def _as_lists(function: Callable[..., Any]) -> Callable[..., list[np.ndarray]]:
    return lambda *inputs: list(as_arrays(dict(enumerate(as_list(function(*inputs))))).values())


def as_list(made: Any) -> list[Any]:
    """What a function returned: one array, or several."""
    return list(made) if isinstance(made, (tuple, list)) else [made]


def value_of(name: str, element: str | None, shape: list[int | str] | None) -> Value:
    return Value(name, f"tensor({_RUNTIME_NAMES.get(element, element)})" if element else "unknown", shape)
