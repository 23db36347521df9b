"""A Transformer's attention with sums that depend neither on padding nor on neighbours.

The same care as in `attention`, for heads, and for a past that is padded on the left. A product cuts a long
sum into blocks, 256 positions each for heads 64 wide, and exact zeros before what counts would move the cuts.
So the past of every row is brought to begin at the row's own first position, and ends in zeros, which are
harmless. Heads are at most 128 wide for all of this to hold: the inner sum of a score must be one block.

Shapes: X sentences or rows, H heads, Q queries, N positions attended to, A width of a head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_export.attention import with_spare
from dragoman_export.exponentials import exponentials
from dragoman_training.models.attention import MASKED
from dragoman_training.models.transformer_attention import scaled

MAX_HEAD_WIDTH = 128


def check_head_width(width: int, heads: int) -> None:
    """Raises ValueError for heads so wide that a translation could depend on its neighbours."""
    if width // heads > MAX_HEAD_WIDTH:
        raise ValueError(
            f"its {heads} heads are {width // heads} wide, and beyond {MAX_HEAD_WIDTH} a translation may "
            "depend on what shares its batch; "
            f"train it with model.heads of at least {-(-width // MAX_HEAD_WIDTH)}"
        )


class HeadsGraph(nn.Module):
    """Does what Heads does, with sums in a fixed order."""

    def forward(
        self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns context [X, H, Q, A] and weights [X, H, Q, N]; a masked position weighs exactly 0."""
        scores_XHNQ = _scores(query_XHQA, keys_XHNA)
        return _attend(scores_XHNQ, values_XHNA, mask_XN, query_XHQA.shape[2])

    def context(self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor) -> Tensor:
        """The context alone."""
        return self(query_XHQA, keys_XHNA, values_XHNA, mask_XN)[0]

    def past(self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor) -> Tensor:
        """The context, of rows whose last positions count."""
        rows, heads, positions, _ = values_XHNA.shape
        position_N = torch.arange(positions, device=mask_XN.device)
        length_X1 = mask_XN.sum(dim=1, keepdim=True).to(torch.int64)
        # Beyond its end a row has its last position, over and over, with weight 0.
        own_XN = (position_N + positions - length_X1).clamp(max=positions - 1)
        first_XH1 = (torch.arange(rows * heads, device=mask_XN.device) * positions).view(rows, heads, 1)
        place_XHN = first_XH1 + own_XN.unsqueeze(1)
        scores_XHNQ = functional.embedding(place_XHN, _scores(query_XHQA, keys_XHNA).flatten(0, 2))
        values_XHNA = functional.embedding(place_XHN, values_XHNA.flatten(0, 2))
        inside_XN = (position_N < length_X1).float()
        return _attend(scores_XHNQ, values_XHNA, inside_XN, query_XHQA.shape[2])[0]


def _scores(query_XHQA: Tensor, keys_XHNA: Tensor) -> Tensor:
    """[X, H, N, Q + 1], a column for a spare query at the end."""
    return keys_XHNA @ with_spare(scaled(query_XHQA)).transpose(2, 3)


def _attend(scores_XHNQ: Tensor, values_XHNA: Tensor, mask_XN: Tensor, queries: int) -> tuple[Tensor, Tensor]:
    scores_XHQN = scores_XHNQ[..., :queries].transpose(2, 3).float()
    is_masked_X11N = mask_XN[:, None, None] == 0
    powers_XHQN = exponentials(scores_XHQN.masked_fill(is_masked_X11N, MASKED), is_masked_X11N)
    # The sum over positions in two columns, of which one is read: (X, N) -> (X, 1, N, 2)
    mask_X1N2 = mask_XN[:, None, :, None].expand(-1, -1, -1, 2)
    sums_XHQ1 = (with_spare(powers_XHQN) @ mask_X1N2)[:, :, :queries, :1]
    weights_XHQN = powers_XHQN / sums_XHQ1
    context_XHQA = (with_spare(weights_XHQN.to(values_XHNA.dtype)) @ values_XHNA)[:, :, :queries]
    return context_XHQA, weights_XHQN
