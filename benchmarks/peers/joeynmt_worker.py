"""Run by the Python of JoeyNMT's environment: its LSTM with Luong attention, random weights, its own search.

Needs nothing but joeynmt and torch. Speed does not depend on what the weights are; how many tokens come out
would, so that their number is given.
"""

import json
import sys
import time
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

SPECIALS = SimpleNamespace(
    unk_token="<unk>",
    pad_token="<pad>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token=None,
    unk_id=0,
    pad_id=1,
    bos_id=2,
    eos_id=3,
    sep_id=None,
    lang_tags=[],
)
NUM_SPECIALS = 4


def make_model(task: dict[str, Any]) -> Any:
    """An attention model of the sizes that the task names."""
    words = [f"w{number}" for number in range(task["vocabulary"] - NUM_SPECIALS)]
    vocabulary = Vocabulary(words, SPECIALS)
    embeddings = {"embedding_dim": task["embedding_size"], "scale": False}
    layer = {"type": "recurrent", "rnn_type": "lstm", "embeddings": embeddings, "dropout": 0.0}
    config = {
        "encoder": {
            **layer,
            "hidden_size": task["encoder_units"],
            "bidirectional": True,
            "num_layers": task["encoder_layers"],
        },
        "decoder": {
            **layer,
            "hidden_size": task["decoder_units"],
            "num_layers": task["decoder_layers"],
            "input_feeding": True,
            "init_hidden": "bridge",
            "attention": "luong",
        },
    }
    return build_model(config, src_vocab=vocabulary, trg_vocab=vocabulary).eval()


def make_batches(sentences: list[list[int]], size: int, words: int) -> list[Any]:
    """Batches of sentences of similar length."""
    ids = sorted(([NUM_SPECIALS + id_ % words for id_ in each] for each in sentences), key=len)
    batches = []
    for start in range(0, len(ids), size):
        # Longest first: JoeyNMT packs its sequences.
        group = [[*each, SPECIALS.eos_id] for each in reversed(ids[start : start + size])]
        longest = len(group[0])
        rows = [[*each, *[SPECIALS.pad_id] * (longest - len(each))] for each in group]
        batches.append(
            Batch(
                src=torch.tensor(rows),
                src_length=torch.tensor([len(each) for each in group]),
                src_prompt_mask=None,
                trg=None,
                trg_prompt_mask=None,
                indices=torch.arange(len(group)),
                device=torch.device("cpu"),
                pad_index=SPECIALS.pad_id,
                eos_index=SPECIALS.eos_id,
                is_train=False,
            )
        )
    return batches


def main() -> None:
    """Answers one line of JSON by another until there are no more."""
    # Whatever the toolkit prints is not for the one who asks.
    answers, sys.stdout = sys.stdout, sys.stderr
    task = json.loads(sys.stdin.readline())
    torch.manual_seed(1)
    model = make_model(task)
    print(json.dumps({"version": version("joeynmt")}), file=answers, flush=True)
    for line in sys.stdin:
        setting = json.loads(line)
        torch.set_num_threads(setting["threads"])
        batches = make_batches(task["sentences"], setting["batch"], task["vocabulary"] - NUM_SPECIALS)
        tokens = 0
        started = time.perf_counter()
        for batch in batches:
            outputs, _, _ = search(
                model=model,
                batch=batch,
                max_output_length=task["steps"],
                min_output_length=task["steps"],
                beam_size=setting["beam"],
                beam_alpha=1.0,
            )
            tokens += int(outputs.size)
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "tokens": tokens}), file=answers, flush=True)


if __name__ == "__main__":
    main()
