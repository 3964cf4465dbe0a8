"""Optimizing a model."""
from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from . import _native
from ._words import ModelLike, as_words, describe_options, path_or_bytes, rules_folder

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OptimizeOptions


@dataclasses.dataclass(frozen=True)
class Check:
    """How the rewritten model was compared with the original."""

    checked: bool
    passed: bool
    engine: str  # "none" where nothing was rewritten
    why_not: str  # where it could not be checked
    max_relative: float  # max |a-b| / max |a| over the outputs


class Result:
    """What an optimization found."""

    def __init__(self, native: _native.Optimized) -> None:
        self._native = native

    @functools.cached_property
    def model(self) -> bytes:
        """The rewritten model, as the bytes of an ONNX file with its weights in it."""
        return self._native.model()

    def SerializeToString(self) -> bytes:
        """The same; a result is taken wherever a model is."""
        return self.model

    @functools.cached_property
    def report(self) -> dict[str, Any]:
        """What `gopt optimize --report FILE.json` writes (docs/report.md)."""
        return json.loads(self._native.report())

    @property
    def applied(self) -> dict[str, int]:
        """Names of the rules that were applied, in order, and how often each was."""
        return dict(collections.Counter(step["rule"] for step in self.report["applied"]))

    @property
    def check(self) -> Check:
        """Whether the outputs agree with the original's on fresh random inputs."""
        check = self.report["check"]
        worst = max((output["max_relative"] for output in check["outputs"]), default=0.0)
        return Check(check["checked"], check["passed"], check["engine"], check["why_not"], worst)

    @property
    def warnings(self) -> list[str]:
        """What the command line prints as warnings; they are given to the module `warnings`, too."""
        return self._native.warnings()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the rewritten model, its weights in PATH.data where the original's lay beside it or they are large.

        Nothing is half written. Raises Error where the file exists and `force` is not given, or is what was read.
        """
        self._native.save(os.fsdecode(path), force)

    def __repr__(self) -> str:
        applied = ", ".join(f"{rule} x{times}" for rule, times in self.applied.items()) or "none"
        return f"<gopt.Result: rules applied: {applied}; check {'passed' if self.check.passed else 'not passed'}>"


def run_optimize(model: ModelLike, options: OptimizeOptions, takes: _native.Takes) -> _native.Optimized:
    native = _native.optimize(path_or_bytes(model), as_words("optimize", {"python": sys.executable, **options}),
                              rules_folder(), takes)
    for text in native.warnings():
        warnings.warn(text, stacklevel=3)
    return native


def optimize(model: ModelLike, **options: Unpack[OptimizeOptions]) -> Result:
    """Rewrites a model with proved rules, as `gopt optimize MODEL -o OUT.onnx` does, and checks what comes out.

    `model` is a path, the bytes of a model, or an onnx.ModelProto. Files are written only where options ask for them.
    Other threads run meanwhile; Ctrl-C ends it.
    """
    return Result(run_optimize(model, options, _native.Takes.Model))


describe_options(optimize, "optimize")
