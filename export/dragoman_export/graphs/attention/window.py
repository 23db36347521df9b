"""A predicted window whose products keep the names of their weights.

An int8 graph knows by these names what has to stay in fp32 (`int8/kept.py`). A product of rows [R, H] is one
node that reads its weight as it is stored; of rows [S, Q, H], the exporter would store a transposed copy
under a name that says nothing.

Shapes: S sentences, Q queries a sentence, R = S·Q rows, T source positions, H decoder units.
"""

from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.models.layers.window import PredictedWindow, Window, sentence_length


class PredictedWindowGraph(PredictedWindow):
    """Does what the given window does, row by row."""

    def __init__(self, window: PredictedWindow) -> None:
        # As any window: it has the parameters of the given one, and makes none.
        Window.__init__(self, window.reach)
        self.hidden = window.hidden
        # The second output is not read: a product with a vector may sum in another order for one row than for
        # many (`PredictedWindow.centre`).
        self.direction_2H = nn.Parameter(
            functional.pad(window.direction.detach().unsqueeze(0), (0, 0, 0, 1)), requires_grad=False
        )

    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        hidden_RH = self.hidden(query_SQH.flatten(0, 1)).tanh()
        logit_R = functional.linear(hidden_RH, self.direction_2H)[:, 0]
        logit_SQ = logit_R.unflatten(0, query_SQH.shape[:2])
        return sentence_length(mask_ST) * logit_SQ.float().sigmoid()
