"""Weights of a model from elsewhere by our names: what of them is the same, and what is added to them.

Must not know whose they were. Shapes: V vocabulary, L positions, D width.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dragoman_export.graphs.step_end import searchable_size
from dragoman_export.reference.imported import (
    BIAS,
    OUTPUT,
    POSITIONS,
    SOURCE,
    TARGET,
    TARGET_POSITIONS,
    Floats,
    Imported,
)


def spelled(pattern: str) -> list[str]:
    """The names that a pattern such as "{q,k,v}_proj" stands for; a name without braces stands for itself."""
    before, _, choice = pattern.partition("{")
    parts, _, behind = choice.partition("}")
    return [f"{before}{part}{behind}" for part in parts.split(",")]


def share_equal(weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """The weights of a Transformer, of which embeddings and positions that are equal are one array."""
    shared = dict(weights)
    for name, others in ((TARGET, [SOURCE]), (OUTPUT, [SOURCE, TARGET]), (TARGET_POSITIONS, [POSITIONS])):
        equal = (weights[other] for other in others if np.array_equal(weights[other], weights[name]))
        shared[name] = next(equal, weights[name])
    return shared


def starting_with(
    imported: Imported, bos: int, *, never_produced: Sequence[int], barred: Sequence[int] = ()
) -> Imported:
    """The same model, whose translations begin with that token and hold none of the others.

    The token may be one more than it has: it is made then, and never produced.
    """
    architecture = replace(
        imported.architecture, bos=bos, never_produced=tuple(never_produced), barred=tuple(barred)
    )
    return searchable(replace(imported, architecture=architecture), at_least=bos + 1)


def searchable(imported: Imported, *, at_least: int = 0) -> Imported:
    """The same model with a few target tokens more, none of which is produced: its steps search by blocks.

    It has `at_least` so many then. Embeddings of tokens that are added are 0, on both sides where they have
    one embedding.
    """
    weights, stored = dict(imported.weights), dict(imported.stored)
    vocabulary = len(weights[TARGET])
    size = searchable_size(max(vocabulary, at_least))
    if size == vocabulary:
        return imported
    is_shared = weights[SOURCE] is weights[TARGET]
    longer: dict[int, Floats] = {}
    for name in (TARGET, OUTPUT, BIAS, *([SOURCE] if is_shared else [])):
        array = weights[name]
        if id(array) not in longer:
            longer[id(array)] = np.pad(array, ((0, size - vocabulary), *[(0, 0)] * (array.ndim - 1)))
        weights[name] = longer[id(array)]
        if name in stored:
            stored[name] = stored[name].with_rows(size - vocabulary)
    never = {*imported.architecture.never_produced, *range(vocabulary, size)}
    architecture = replace(imported.architecture, never_produced=tuple(sorted(never)))
    return replace(imported, architecture=architecture, weights=weights, stored=stored)


def sinusoids(num_positions: int, width: int) -> Floats:
    """The positions of Vaswani et al. (2017), section 3.5, sines before cosines: [L, D]."""
    half = np.arange((width + 1) // 2)
    angle = np.arange(num_positions)[:, None] / 10000 ** (2 * half / width)
    return np.concatenate([np.sin(angle), np.cos(angle[:, : width // 2])], axis=1).astype(np.float32)


def even_sinusoids(num_positions: int, width: int, *, first: int) -> Floats:
    """Positions from `first` on, of wavelengths from 2π to 20000π with both ends: sines, and cosines behind
    them, and a 0 where the width is odd: [L, D].
    """
    half = width // 2
    wave = np.exp(-np.arange(half) * math.log(10000) / (half - 1))
    angle = np.arange(first, first + num_positions)[:, None] * wave
    table_LD = np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
    return np.pad(table_LD, ((0, 0), (0, width % 2)))


def are_sinusoids(table_LD: Floats) -> bool:
    """Whether its columns are pairs of a sine and a cosine, in whichever order."""
    return np.allclose(np.square(table_LD).sum(axis=1), table_LD.shape[1] / 2, rtol=1e-3)
