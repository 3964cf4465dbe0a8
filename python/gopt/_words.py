"""What Python gives, as the native module takes it: models, and options as words of a command line."""
from __future__ import annotations

import os
import pathlib
from typing import Any, Iterable, Mapping, Protocol, Union, runtime_checkable

from . import _native


@runtime_checkable
class Serializable(Protocol):
    """A message of ONNX: `onnx.ModelProto`, without need of the package."""

    def SerializeToString(self) -> bytes: ...


ModelLike = Union[str, "os.PathLike[str]", bytes, Serializable]

_own_rules = pathlib.Path(__file__).parent / "rules"


def rules_folder() -> str:
    """The rules that came with this package."""
    return str(_own_rules) if _own_rules.is_dir() else ""


def path_or_bytes(model: ModelLike) -> str | bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return os.fsdecode(model)
    if isinstance(model, Serializable):
        return model.SerializeToString()
    raise TypeError(f"a model is a path, bytes, or an onnx.ModelProto, not {type(model).__name__}")


def as_words(command: str, options: Mapping[str, Any]) -> list[str]:
    """`beam_width=4, allow=["finite-only"]` as `--beam-width=4 --allow=finite-only`. None: as if it were not given."""
    known = {name.replace("-", "_"): name for name, _ in _native.flags(command)}
    words = []
    for keyword, value in options.items():
        if keyword not in known:
            raise TypeError(f"there is no option '{keyword}'; the options are {', '.join(sorted(known))}")
        flag = "--" + known[keyword]
        if isinstance(value, bool):
            words += [flag] if value else []
        elif value is not None:
            words += [f"{flag}={one}" for one in _texts(value)]
    return words


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):  # shape={"x": [1, 3, 224, 224], "batch": 4}
        lists = {name: [one] if isinstance(one, int) else one for name, one in value.items()}
        return [f"{name}={'x'.join(map(str, extents))}" for name, extents in lists.items()]
    if isinstance(value, (str, os.PathLike)):
        return [os.fsdecode(value)]
    return [os.fsdecode(one) if isinstance(one, os.PathLike) else str(one) for one in value] \
        if isinstance(value, Iterable) else [str(value)]


def describe_options(function: Any, command: str) -> None:
    """Appends to the function's documentation what the command line says of its flags."""
    lines = [f"    {name.replace('-', '_')}: {text}" for name, text in _native.flags(command)]
    function.__doc__ = f"{function.__doc__ or ''}\n\nOptions:\n" + "\n".join(lines)
