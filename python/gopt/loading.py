"""Models made into code, and models and folders of code as they are."""
from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from . import _native
from ._words import ModelLike, as_words, describe_options, path_or_bytes
from .model import Functions, Model
from .pieces import PiecesModel, is_plan
from .result import run_optimize

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import LoadOptions, OptimizeOptions


def compile(model: ModelLike, target: str = "cpu", *, functions: Functions | None = None,
            **options: Unpack[OptimizeOptions]) -> Model | PiecesModel:
    """Optimizes a model as `gopt optimize --emit` does, builds the code and loads it. A C++ compiler is needed.

    The original's code is kept where the rewritten model's is not faster (`no_measure=True`: neither is timed).

    `functions`: for nodes that have no code, by operator ("com.acme::Shift") or node, from arrays to an array or
    several. Where such nodes hold strings, sequences, or extents that depend on data, the rest is compiled in pieces;
    what no function is given for is run by ONNX Runtime, or ONNX's reference evaluator, whichever is installed.
    """
    native = run_optimize(model, {"target": target, **options}, _native.Takes.Plan)
    if not native.is_in_pieces():
        return _with_functions(Model(native.load()), functions)
    with tempfile.TemporaryDirectory(prefix="gopt-") as folder:
        native.emit_pieces(os.path.join(folder, "model"))
        return PiecesModel(os.path.join(folder, "model"), functions, {"threads": options.get("threads")})


def load(model: ModelLike, *, functions: Functions | None = None,
         **options: Unpack[LoadOptions]) -> Model | PiecesModel:
    """A model as it is, or a folder that `emit` wrote, to be run: what `gopt run` runs, and pieces with their plan."""
    if not isinstance(model, bytes) and is_plan(model):
        return PiecesModel(os.fspath(model), functions, options)
    return _with_functions(Model(_native.load(path_or_bytes(model), as_words("load", options))), functions)


def _with_functions(model: Model, functions: Functions | None) -> Model:
    if functions is not None:
        model.answer(functions)
    return model


describe_options(compile, "optimize")
describe_options(load, "load")
