"""How likely models hold given sentences to be.

Shapes: S sentences, T source positions, U target positions, N tokens of all sentences.
"""

from collections.abc import Sequence

import numpy as np
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray
from torch.nn import functional

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Seq2Seq

BATCH_TOKENS = 4000


@torch.inference_mode()
def log_probabilities(
    model: Seq2Seq,
    tokenizers: tuple[Tokenizer, Tokenizer],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
) -> NDArray[np.float64]:
    """log P(target | source) of pairs of ids without eos; a language model's sources are empty. [S]

    As the search has them: pieces that are never produced have no share.
    """
    source, target = tokenizers
    device = next(model.parameters()).device
    result = np.zeros(len(sources))
    order = sorted(range(len(sources)), key=lambda number: (len(sources[number]), len(targets[number])))
    while order:
        longest = max(len(sources[order[-1]]), len(targets[order[-1]])) + 1
        numbers = order[-max(1, BATCH_TOKENS // longest) :]
        del order[-len(numbers) :]
        source_ST = pad_ids([[*sources[number], source.eos_id] for number in numbers], source.pad_id)
        length_S = torch.tensor([len(sources[number]) + 1 for number in numbers])
        input_SU = pad_ids([[target.bos_id, *targets[number]] for number in numbers], target.pad_id)
        output_SU = pad_ids([[*targets[number], target.eos_id] for number in numbers], target.pad_id)
        features_SUD = model(source_ST.to(device), length_S.to(device), input_SU.to(device))
        counted_SU = (output_SU != target.pad_id).to(device)
        logits_NV = model.output(features_SUD[counted_SU])
        log_N = functional.cross_entropy(logits_NV, output_SU.to(device)[counted_SU], reduction="none")
        row_N = counted_SU.nonzero()[:, 0].cpu().numpy()
        result[numbers] = -np.bincount(row_N, log_N.cpu().double().numpy(), minlength=len(numbers))
    return result
