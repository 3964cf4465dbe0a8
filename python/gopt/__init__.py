"""gopt: optimizes ONNX models with rewrite rules that were proved, and compiles them.

    result = gopt.optimize("model.onnx", threads=4)
    result.save("model.opt.onnx")

    model = gopt.compile("model.onnx")
    (y,) = model.run(None, {"x": x})

Options have the names and meanings of the command line's flags (`gopt optimize --help`), with `_` for `-`. They are
told wrong, and models are refused, with the message that the command line prints, as `gopt.Error`.
"""
from ._native import Error, InternalError, __version__
from .comparison import Comparison, Difference, compare
from .loading import compile, load
from .model import Model, Value
from .pieces import PiecesModel
from .result import Check, Result, optimize

__all__ = ["Check", "Comparison", "Difference", "Error", "InternalError", "Model", "PiecesModel", "Result", "Value",
           "__version__", "compare", "compile", "load", "optimize"]
