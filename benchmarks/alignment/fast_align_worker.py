"""Runs in fast_align's environment: SOURCE TARGET OUT NUMBER links the first NUMBER lines of a text."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import systran_align  # type: ignore[import-not-found]


def main(source: str, target: str, out: str, number: str) -> None:
    """With the options that its makers recommend."""
    texts = [Path(path).read_text("utf-8").split("\n")[:-1] for path in (source, target)]
    pairs = list(zip(*texts, strict=True))
    with TemporaryDirectory() as folder:
        text, forward, backward = (f"{folder}/{name}" for name in ("text", "forward", "backward"))
        Path(text).write_text("".join(f"{one} ||| {other}\n" for one, other in pairs), "utf-8")
        systran_align.generate_alignment_probabilities(
            text, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True
        )
        aligner = systran_align.Aligner(forward, backward)
        lines = []
        for one, other in pairs[: int(number)]:
            found = aligner.align(one.split(), other.split())["alignments"]
            lines.append(" ".join(f"{i}-{j}" for i, j in found))
    Path(out).write_text("".join(line + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
