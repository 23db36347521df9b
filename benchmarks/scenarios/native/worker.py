"""Run by the Python of the peers' environment: Mozilla's engine and Marian, on one thread each.

The first line is the task; then a setting each time, answered with the processor's seconds and the words that
came out. Knows nothing of ours.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path


def open_fxtranslate(folder: Path) -> Callable[[list[str]], list[str]]:
    """It decodes greedily, a sentence after the other."""
    import fxtranslate

    vocabulary = (folder / "vocab.spm").read_bytes()
    translator = fxtranslate.Translator((folder / "model.bin").read_bytes(), vocabulary, vocabulary)
    return lambda texts: [translator.translate(text) for text in texts]


def open_marian(folder: Path, beam: int, batch: int) -> Callable[[list[str]], list[str]]:
    """It decodes the floats of the `.npz`."""
    import pymarian

    vocabulary = str(folder / "vocab.spm")
    translator = pymarian.Translator(
        models=[str(folder / "model.npz")],
        vocabs=[vocabulary, vocabulary],
        beam_size=beam,
        mini_batch=batch,
        maxi_batch=1,
        cpu_threads=1,
        quiet=True,
    )
    return lambda texts: translator.translate(texts)


def main() -> None:
    """Answers until its input ends."""
    folder = Path(json.loads(sys.stdin.readline())["folder"])
    translators = {"fxtranslate": cache(lambda beam, batch: open_fxtranslate(folder))}
    translators["marian"] = cache(lambda beam, batch: open_marian(folder, beam, batch))
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        translate = translators[asked["system"]](asked["beam"], asked["batch"])
        texts = asked["texts"]
        translate(texts[:1])
        began = time.process_time()
        found = (
            translate(texts) if asked["batch"] > 1 else [out for text in texts for out in translate([text])]
        )
        seconds = time.process_time() - began
        words = sum(len(text.split()) for text in found)
        print(json.dumps({"seconds": seconds, "words": words}), flush=True)


if __name__ == "__main__":
    main()
