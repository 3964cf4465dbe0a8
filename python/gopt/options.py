"""Options as types; each is a flag of the command line, whose help says what it means."""
from __future__ import annotations

import os
from typing import Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Shapes = Union[str, Sequence[str], Mapping[str, Union[int, Sequence[int]]]]


class OptimizeOptions(TypedDict, total=False):
    """Of `optimize` and `compile`."""

    target: str
    rules: Path | Sequence[Path]
    search: str
    budget: str
    steps: int
    alpha: float
    beam_width: int
    enable: str | Sequence[str]
    disable: str | Sequence[str]
    allow: str | Sequence[str]
    safe: bool
    mutate: str
    mutate_rules: Path
    cost: str
    cost_model: str
    cache: Path
    gpu: str
    precision: str
    threads: int
    workers: int
    shape: Shapes
    check: str
    seed: int
    rtol: float
    atol: float
    output: Path
    emit: Path
    prefix: str
    specialize: str | Sequence[str]
    maximum: str | Sequence[str]
    report: Path | Sequence[Path]
    runs: int
    no_measure: bool
    freeze_initializers: bool
    runtime: str
    measure: str
    python: str
    measure_timeout: float
    dry_run: bool
    force: bool


class LoadOptions(TypedDict, total=False):
    """Of `load`."""

    engine: str
    threads: int
    shape: Shapes


class CompareOptions(TypedDict, total=False):
    """Of `compare`."""

    reference_engine: str
    engine: str
    threads: int
    shape: Shapes
    seed: int
    repeats: int
    rtol: float
    atol: float
