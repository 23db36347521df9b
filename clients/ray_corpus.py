"""A corpus in Parquet translated by a Ray cluster, with an engine in each actor's process and no server.

    pip install 'ray[data]' and, on every machine, the wheel with its extra server-cpu, or server for GPUs
    python clients/ray_corpus.py --bundle /shared/de-en/1 --column text /shared/corpus /shared/corpus.en

Each file of the first folder becomes one of the same name in the second, with a column "translation". It
appears when all of it is done, so the same command goes on after a stop. All machines share the folders.
"""

import argparse
import os
from pathlib import Path

import pyarrow
import pyarrow.parquet
import ray
import ray.data

from dragoman_server.offline.system import open_in_process

INTO = "translation"
BATCH_ROWS = 1024
"""Rows that an engine is given at a time: many times what it decodes at once, so that it is full."""


class Translating:
    """An engine, opened once in an actor's life; it ends with the actor's process."""

    def __init__(self, *, bundle: str, column: str, device: str) -> None:
        self._column = column
        self._opened = open_in_process(
            bundle,
            beam_size=None,
            length_penalty=None,
            segmentation="sentence",
            device=device,  # type: ignore[arg-type]
            precision="auto",
        )
        self._translator = self._opened.__enter__()

    def translate(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows with their translations; a text of null has a null."""
        texts = rows.column(self._column).to_pylist()
        answers = iter(self._translator.translate([text for text in texts if text is not None]))
        translated = [None if text is None else next(answers)[0] for text in texts]
        return rows.append_column(INTO, pyarrow.array(translated, pyarrow.string()))

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[str]]:
        """Translates a file into another, which is there whole or not at all."""
        for source, target in zip(batch["source"], batch["target"], strict=True):
            fresh = f"{target}.{os.uname().nodename}.{os.getpid()}"
            schema = pyarrow.parquet.read_schema(source).append(pyarrow.field(INTO, pyarrow.string()))
            with (
                pyarrow.parquet.ParquetFile(source) as file,
                pyarrow.parquet.ParquetWriter(fresh, schema) as writer,
            ):
                for rows in file.iter_batches(BATCH_ROWS):
                    writer.write_table(self.translate(pyarrow.Table.from_batches([rows])).cast(schema))
            os.replace(fresh, target)
        return {"target": batch["target"]}


def main() -> None:
    """Translates the files that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True, help="there under this path on every machine")
    parser.add_argument("--column", default="text", help="the texts")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="a core or a GPU an actor")
    parser.add_argument("--ray", metavar="ADDRESS", help="of the cluster; without it this machine is one")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    given.target.mkdir(exist_ok=True)
    files = [
        {"source": str(file.absolute()), "target": str((given.target / file.name).absolute())}
        for file in sorted(given.source.glob("*.parquet"))
        if not (given.target / file.name).exists()
    ]
    if not files:
        return
    ray.init(address=given.ray)
    kind = "GPU" if given.device == "cuda" else "CPU"
    done = ray.data.from_items(files, override_num_blocks=len(files)).map_batches(
        Translating,
        fn_constructor_kwargs={
            "bundle": str(given.bundle.absolute()),
            "column": given.column,
            "device": given.device,
        },
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(
            min_size=1, max_size=max(1, int(ray.cluster_resources().get(kind, 0)))
        ),
        **({"num_gpus": 1} if given.device == "cuda" else {"num_cpus": 1}),
    )
    for number, _ in enumerate(done.iter_batches(batch_size=1), start=1):
        print(f"{number} of {len(files)} files", flush=True)


if __name__ == "__main__":
    main()
