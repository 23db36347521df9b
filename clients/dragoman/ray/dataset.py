"""A Ray dataset gains the translations of one of its columns."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.ray.engine import Engine, EngineOptions

if TYPE_CHECKING:
    import pyarrow
    import ray.data

BATCH_ROWS = 1024
"""Rows that an actor takes at a time: many times what an engine decodes at once, so that it is full."""


def translate(
    dataset: "ray.data.Dataset",
    *,
    bundle: str | Path,
    column: str = "text",
    into: str = "translation",
    options: EngineOptions | None = None,
    actors: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> "ray.data.Dataset":
    """The dataset with the translations of a column's texts in another, and its rows in their order.

    Each actor opens the bundle, by a path that must be there on every machine, on a core or a GPU of its own.
    `actors` is how many there are; None: as many as the cluster has room for. Work of an actor that
    is lost is done again by another, to the same translations. A text of null has a null.
    """
    options = options or EngineOptions()
    translated = dataset.map_batches(
        _Batches,
        fn_constructor_kwargs={
            "bundle": str(bundle),
            "column": column,
            "into": into,
            "options": options,
        },
        batch_format="pyarrow",
        batch_size=batch_rows,
        compute=pool(options, actors),
        udf_modifying_row_count=False,
        **needs(options),
    )
    translated.context.execution_options.preserve_order = True
    return translated


def needs(options: EngineOptions) -> dict[str, Any]:
    """The state that Ray keeps for each actor."""
    return {"num_gpus": 1} if options.device == "cuda" else {"num_cpus": 1}


def pool(options: EngineOptions, actors: int | None) -> "ray.data.ActorPoolStrategy":
    """So many actors; None: from one to as many as the cluster has cores or GPUs."""
    import ray.data

    if actors is not None:
        return ray.data.ActorPoolStrategy(size=actors)
    if not ray.is_initialized():
        ray.init()
    available = ray.cluster_resources().get("GPU" if options.device == "cuda" else "CPU", 0)
    return ray.data.ActorPoolStrategy(min_size=1, max_size=max(1, int(available)))


class _Batches:
    """Runs in an actor."""

    def __init__(self, *, bundle: str, column: str, into: str, options: EngineOptions) -> None:
        self._engine = Engine(bundle, options)
        self._column = column
        self._into = into

    def __call__(self, batch: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        answers = self._engine.translate(batch.column(self._column).to_pylist())
        translations = pyarrow.array([text for text, _ in answers], pyarrow.string())
        return batch.append_column(self._into, translations)
