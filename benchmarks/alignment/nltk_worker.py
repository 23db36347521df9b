"""Runs in NLTK's environment: SOURCE TARGET OUT MODEL ITERATIONS trains on a text and links it.

Prints the seconds that the training took.
"""

import sys
import time
from pathlib import Path

from nltk.translate import AlignedSent, IBMModel1, IBMModel2  # type: ignore[import-not-found]


def main(source: str, target: str, out: str, model: str, iterations: str) -> None:
    """NLTK aligns the first words of a sentence pair to the second."""
    texts = [Path(path).read_text("utf-8").split("\n")[:-1] for path in (source, target)]
    bitext = [AlignedSent(other.split(), one.split()) for one, other in zip(*texts, strict=True)]
    began = time.perf_counter()
    # Of model 2 it makes as many iterations of model 1 before. Both link the text as they end.
    (IBMModel1 if model == "ibm1" else IBMModel2)(bitext, int(iterations))
    print(time.perf_counter() - began)
    lines = (" ".join(f"{i}-{j}" for j, i in sorted(pair.alignment) if i is not None) for pair in bitext)
    Path(out).write_text("".join(line + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
