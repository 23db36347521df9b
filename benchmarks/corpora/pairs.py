"""As many sentence pairs as are wanted, made of fewer: over and over, shuffled, their numbers changed."""

import random
from pathlib import Path


def write_pairs(source: Path, target: Path, count: int, out: tuple[Path, Path]) -> None:
    """Writes that many pairs, line by line beside each other."""
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (source, target)]
    pairs = list(zip(*lines, strict=True))
    generator = random.Random(1)
    with out[0].open("w", encoding="utf-8") as sources, out[1].open("w", encoding="utf-8") as targets:
        while count:
            digits = "".join(generator.sample("0123456789", 10))
            table = str.maketrans("0123456789", digits)
            generator.shuffle(pairs)
            some = pairs[:count]
            for stream, side in ((sources, 0), (targets, 1)):
                stream.write("".join(f"{pair[side]}\n" for pair in some).translate(table))
            count -= len(some)
