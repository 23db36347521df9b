"""Run by the Python of CTranslate2's environment: a converted model, asked over and over for translations.

Needs nothing but ctranslate2. A setting says which of the task's sentences, in how large batches, with how
many workers of how many threads; with "alone" each sentence is a call by itself.
"""

import json
import sys
import time
from typing import Any

import ctranslate2


def main() -> None:
    """Answers one line of JSON by another until there are no more."""
    task = json.loads(sys.stdin.readline())
    print(json.dumps({"version": ctranslate2.__version__}), flush=True)
    translator: Any = None
    opened: tuple[int, int] | None = None
    for line in sys.stdin:
        setting = json.loads(line)
        workers = (setting["workers"], setting["threads_per_worker"])
        if workers != opened:
            # One at a time: each holds threads of its own.
            translator = None
            translator = ctranslate2.Translator(
                task["model"],
                device="cpu",
                compute_type="int8",
                inter_threads=workers[0],
                intra_threads=workers[1],
            )
            opened = workers
            translator.translate_batch(task["sentences"][:4], max_decoding_length=2)
        sentences = task["sentences"][: setting["sentences"]]
        calls = [[sentence] for sentence in sentences] if setting["alone"] else [sentences]
        started = time.perf_counter()
        results = [
            result
            for call in calls
            for result in translator.translate_batch(
                call,
                beam_size=setting["beam"],
                max_batch_size=setting["batch"],
                batch_type="examples",
                min_decoding_length=task["steps"],
                max_decoding_length=task["steps"],
                use_vmap=task["shortlist"],
            )
        ]
        seconds = time.perf_counter() - started
        tokens = sum(len(result.hypotheses[0]) for result in results)
        print(json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)


if __name__ == "__main__":
    main()
