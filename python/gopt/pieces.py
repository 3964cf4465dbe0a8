"""A model in pieces: those of its nodes that have no code are functions of the caller's, or run elsewhere."""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from . import _native
from ._words import as_words
from .model import Functions, Model, Value, as_list, value_of

if TYPE_CHECKING:
    from .options import LoadOptions


def is_plan(folder: Any) -> bool:
    """Whether `gopt optimize --emit` wrote it, of a model some of whose nodes have no code."""
    return isinstance(folder, (str, os.PathLike)) and os.path.isfile(os.path.join(folder, "plan.json"))


class PiecesModel:
    """Pieces of code, and steps between them, run in order; with the methods of `Model`."""

    def __init__(self, folder: str, functions: Functions | None, options: LoadOptions | Mapping[str, Any]) -> None:
        with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
            plan = json.load(file)
        self._inputs, self._outputs, self._steps = plan["inputs"], plan["outputs"], plan["steps"]
        self._types = {value["name"]: value
                       for value in [*self._inputs, *(v for step in self._steps for v in step["outputs"])]}
        self._runs = [_piece(folder, step, functions or {}, options) if step["kind"] == "code"
                      else _callers(folder, step, functions or {}) for step in self._steps]

    @property
    def engine(self) -> str:
        """"cpu": pieces are always code."""
        return "cpu"

    @property
    def steps(self) -> list[dict[str, Any]]:
        """As plan.json has them, in order."""
        return self._steps

    def get_inputs(self) -> list[Value]:
        return [_described(value["name"], value) for value in self._inputs]

    def get_outputs(self) -> list[Value]:
        return [_described(output["name"], self._types[output["value"]]) for output in self._outputs]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, in that order (None: all), for inputs by name. Sequences are lists."""
        values = self._checked(input_feed)
        for step, run in zip(self._steps, self._runs):
            made = run([values[value["name"]] for value in step["inputs"]])
            if len(made) < len(step["outputs"]):
                raise _native.Error(f"{step['name']} gives {len(made)} values, expected {len(step['outputs'])}")
            values.update(zip((value["name"] for value in step["outputs"]), made))
        found = {output["name"]: output["value"] for output in self._outputs}
        for name in output_names or ():
            if name not in found:
                raise _native.Error(f"the model has no output '{name}'; it has {', '.join(found)}")
        return [values[found[name]] for name in (found if output_names is None else output_names)]

    def _checked(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        names = [value["name"] for value in self._inputs]
        for name in feed:
            if name not in names:
                raise _native.Error(f"the model has no input '{name}'; it has {', '.join(names)}")
        for name in names:
            if name not in feed:
                raise _native.Error(f"input {name} is missing")
        return {name: value if isinstance(value, list) else np.asarray(value) for name, value in feed.items()}


Run = Callable[[Sequence[Any]], Sequence[Any]]


def _described(name: str, value: Mapping[str, Any]) -> Value:
    return value_of(name, value["element"], value["shape"])


def _piece(folder: str, step: Mapping[str, Any], functions: Functions, options: Mapping[str, Any]) -> Run:
    model = Model(_native.load(os.path.join(folder, step["folder"]), as_words("load", options)))
    if functions:
        model.answer(functions)
    names = [value["name"] for value in step["inputs"]]
    return lambda inputs: model.run(None, dict(zip(names, inputs)))


def _callers(folder: str, step: Mapping[str, Any], functions: Functions) -> Run:
    """A function that was given for the step or its one node, else what runs its file here."""
    names = [step["name"]]
    if len(step["nodes"]) == 1:
        names += [step["nodes"][0]["node"], "::".join(step["nodes"][0]["operator"].rsplit(".", 1))]
    for name in names:
        if name in functions:
            return lambda inputs, function=functions[name]: as_list(function(*inputs))
    why = "; ".join(node["why"] for node in step["nodes"])
    run = _runtime(os.path.join(folder, step["model"])) if step["model"] else None
    if run is None:
        raise _native.Error(f"nothing here runs {step['name']} ({why}): give a function for it, "
                            f"functions={{\"{names[-1]}\": f}}")
    inputs = [value["name"] for value in step["inputs"]]
    return lambda given: run(dict(zip(inputs, given)))


def _runtime(path: str) -> Callable[[Mapping[str, Any]], Sequence[Any]] | None:
    """ONNX Runtime, else ONNX's reference evaluator, where one is installed and takes the file."""
    try:
        import onnxruntime
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return lambda feed: session.run(None, dict(feed))
    except Exception:  # not installed, or an operator that it has not
        pass
    try:
        from onnx.reference import ReferenceEvaluator
        evaluator = ReferenceEvaluator(path)
        return lambda feed: evaluator.run(None, dict(feed))
    except Exception:
        return None
