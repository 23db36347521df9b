"""The best continuations of a sentence, searched for block by block as in `step_end`, where a step is traced.

Shapes: S sentences, K beam, R = S·K rows, V vocabulary, N blocks a row, B scores a block.
"""

import torch
from torch import Tensor

from dragoman_export.graphs.step_end import block_size


def best_continuations(token_score_RV: Tensor, score_SK: Tensor) -> tuple[Tensor, Tensor]:
    """Of a sentence's running scores the 2K best, descending, and their places among its K·V: [S, 2K] each.

    `score_SK` is what each row has so far, and `token_score_RV` what each token adds to it.
    """
    sentences, beam = score_SK.shape
    vocabulary = token_score_RV.shape[-1]
    size = block_size(vocabulary)
    if size is None:
        running_RV = token_score_RV + score_SK.reshape(-1, 1)
        top_score, top_place = torch.topk(running_RV.reshape(sentences, -1), 2 * beam, dim=1)
        return top_score, top_place
    blocks = vocabulary // size
    best_RN = token_score_RV.reshape(-1, blocks, size).amax(dim=-1) + score_SK.reshape(-1, 1)
    _, block_SC = torch.topk(best_RN.reshape(sentences, -1), 2 * beam, dim=1)
    first_S1 = torch.arange(sentences, device=block_SC.device).unsqueeze(1) * (beam * blocks)
    chosen_XB = token_score_RV.reshape(-1, size).index_select(0, (block_SC + first_S1).reshape(-1))
    row_score_SC = score_SK.gather(1, _divide(block_SC, blocks))
    running_SX = (chosen_XB + row_score_SC.reshape(-1, 1)).reshape(sentences, -1)
    top_score, place = torch.topk(running_SX, 2 * beam, dim=1)
    number_SC = _divide(place, size)
    inside_SC = place - number_SC * size
    return top_score, block_SC.gather(1, number_SC) * size + inside_SC


def _divide(places: Tensor, size: int) -> Tensor:
    """Whole parts; to round down, which is the same here, would take five nodes more."""
    return torch.div(places, size, rounding_mode="trunc")
