"""Run by the Python of CTranslate2's environment: a Transformer with random weights in int8.

Needs nothing but ctranslate2 and numpy. Speed does not depend on what the weights are; how many tokens come
out would, so that their number is given.
"""

import json
import sys
import tempfile
import time
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

HEADS = 4
FEED_FORWARD = 4
"""Width of the feed-forward layer, as a multiple of the model's."""


def save_model(folder: str, *, layers: int, width: int, vocabulary: int) -> None:
    """Writes a model with random weights, quantized to int8."""
    generator = np.random.default_rng(1)

    def random(*shape: int) -> Any:
        return (generator.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    def fill_linear(linear: Any, outputs: int, inputs: int) -> None:
        linear.weight, linear.bias = random(outputs, inputs), np.zeros(outputs, np.float32)

    def fill_norm(norm: Any) -> None:
        norm.gamma, norm.beta = np.ones(width, np.float32), np.zeros(width, np.float32)

    def fill_attention(attention: Any, *widths: int) -> None:
        fill_norm(attention.layer_norm)
        for linear, outputs in zip(attention.linear, widths, strict=True):
            fill_linear(linear, outputs, width)

    spec = TransformerSpec.from_config((layers, layers), HEADS, pre_norm=True)
    spec.encoder.embeddings[0].weight = random(vocabulary, width)
    spec.decoder.embeddings.weight = random(vocabulary, width)
    fill_linear(spec.decoder.projection, vocabulary, width)
    for side in (spec.encoder, spec.decoder):
        fill_norm(side.layer_norm)
        for layer in side.layer:
            fill_attention(layer.self_attention, 3 * width, width)
            fill_norm(layer.ffn.layer_norm)
            fill_linear(layer.ffn.linear_0, FEED_FORWARD * width, width)
            fill_linear(layer.ffn.linear_1, width, FEED_FORWARD * width)
    for layer in spec.decoder.layer:
        fill_attention(layer.attention, width, 2 * width, width)
    tokens = ["<unk>", "<s>", "</s>"]
    tokens += [str(number) for number in range(vocabulary - len(tokens))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(folder)


def main() -> None:
    """Answers one line of JSON by another until there are no more."""
    task = json.loads(sys.stdin.readline())
    words = task["vocabulary"] - 3
    sentences = [[*(str(id_ % words) for id_ in ids), "</s>"] for ids in task["sentences"]]
    with tempfile.TemporaryDirectory() as folder:
        save_model(folder, layers=task["layers"], width=task["width"], vocabulary=task["vocabulary"])
        translators: dict[tuple[int, int], Any] = {}
        print(json.dumps({"version": ctranslate2.__version__}), flush=True)
        for line in sys.stdin:
            setting = json.loads(line)
            workers = (setting["workers"], setting["threads_per_worker"])
            if workers not in translators:
                translators[workers] = ctranslate2.Translator(
                    folder,
                    device="cpu",
                    compute_type="int8",
                    inter_threads=workers[0],
                    intra_threads=workers[1],
                )
            started = time.perf_counter()
            results = translators[workers].translate_batch(
                sentences,
                beam_size=setting["beam"],
                max_batch_size=setting["batch"],
                min_decoding_length=task["steps"],
                max_decoding_length=task["steps"],
            )
            seconds = time.perf_counter() - started
            tokens = sum(len(result.hypotheses[0]) for result in results)
            print(json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)


if __name__ == "__main__":
    main()
