"""Comparing two models."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Mapping

from . import _native
from ._arrays import as_arrays
from ._words import ModelLike, as_words, describe_options, path_or_bytes
from .model import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import CompareOptions


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far an output is from the reference's."""

    output: str
    max_absolute: float
    max_relative: float  # max |a-b| / max |a|
    comparable: bool  # of one type and shape, NaN and infinity in the same places
    passed: bool
    note: str  # why it is not comparable


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two models on the same inputs. True where they agree."""

    draws: list[list[Difference]]  # of each draw of inputs, by output

    @property
    def passed(self) -> bool:
        return all(difference.passed for outputs in self.draws for difference in outputs)

    def __bool__(self) -> bool:
        return self.passed


def compare(reference: ModelLike | Model, other: ModelLike | Model, *, inputs: Mapping[str, Any] | None = None,
            **options: Unpack[CompareOptions]) -> Comparison:
    """Runs two models on the same inputs, as `gopt compare` does. Inputs that are not given are drawn.

    Models are taken as by `optimize`, or as they came from `compile` and `load`.
    """
    models = [model._native if isinstance(model, Model) else path_or_bytes(model) for model in (reference, other)]
    draws = _native.compare(*models, as_words("compare", options), as_arrays(inputs or {}))
    return Comparison([[Difference(*row) for row in rows] for rows in draws])


describe_options(compare, "compare")
