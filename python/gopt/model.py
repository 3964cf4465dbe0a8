"""Models that run."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _native
from ._arrays import as_arrays
from ._words import ModelLike, as_words, describe_options, path_or_bytes
from .result import run_optimize

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack

    from .options import LoadOptions, OptimizeOptions

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
        return [_value(*row) for row in self._native.inputs()]

    def get_outputs(self) -> list[Value]:
        return [_value(*row) for row in self._native.outputs()]

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


def _value(name: str, element: str, shape: list[int | str] | None) -> Value:
    return Value(name, f"tensor({_RUNTIME_NAMES.get(element, element)})", shape)


def compile(model: ModelLike, target: str = "cpu", **options: Unpack[OptimizeOptions]) -> Model:
    """Optimizes a model as `gopt optimize --emit` does, builds the code and loads it. A C++ compiler is needed.

    The original's code is kept where the rewritten model's is not faster (`no_measure=True`: neither is timed).
    """
    native = run_optimize(model, {"target": target, **options}, _native.Takes.Plan)
    return Model(native.load())


def load(model: ModelLike, **options: Unpack[LoadOptions]) -> Model:
    """A model as it is, or a folder that `emit` wrote, to be run: what `gopt run` runs."""
    return Model(_native.load(path_or_bytes(model), as_words("load", options)))


describe_options(compile, "optimize")
describe_options(load, "load")
