"""What training minimises: a model's loss on a batch, as one module that can be spread over processes.

Shapes: S sentences, U target positions, D features.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.data.batching import Batch
from dragoman_training.device import computing_in
from dragoman_training.models import Seq2Seq
from dragoman_training.run.guided_alignment import guided_loss
from dragoman_training.run.loss import linear_cross_entropy
from dragoman_training.run.scheduled_sampling import decode_scheduled


class Objective(nn.Module):
    """Label-smoothed cross-entropy of a model, its penalty and its attention's loss included.

    A forward pass goes through this module, so that DistributedDataParallel, wrapped around it, sees it.
    """

    def __init__(
        self,
        model: Seq2Seq,
        *,
        label_smoothing: float,
        dtype: torch.dtype = torch.float32,
        own_token: Literal["best", "sampled"] = "best",
        guided_weight: float = 0.0,
    ) -> None:
        """`dtype` is that of activations and matrix products; float32 leaves all as it is.

        With a `guided_weight` attention is held against the batches' guides.
        """
        super().__init__()
        self.model = model
        self._label_smoothing = label_smoothing
        self._dtype = dtype
        self._guided_weight = guided_weight
        self._own_token: Literal["best", "sampled"] = own_token

    def forward(self, batch: Batch, teacher_forcing: float = 1.0) -> tuple[Tensor, Tensor]:
        """Sums over the batch, in nats: what is minimised, which has gradients, and the plain cross-entropy.

        `teacher_forcing` is the probability that the decoder reads the reference's token; at 1 it runs
        `Seq2Seq.decode`, below step by step.
        """
        guided = None
        with computing_in(self._dtype, batch.source_ST.device):
            memory, state = self.model.encode(batch.source_ST, batch.source_length_S)
            if self._guided_weight and batch.guide_SUT is not None:
                features_SUD, attention_SUT = self.model.decode_with_attention(
                    memory, state, batch.target_input_SU
                )
                guided = self._guided_loss(attention_SUT, batch.guide_SUT)
            elif teacher_forcing >= 1:
                features_SUD = self.model.decode(memory, state, batch.target_input_SU)
            else:
                features_SUD = decode_scheduled(
                    self.model,
                    memory,
                    state,
                    batch.target_input_SU,
                    teacher_forcing=teacher_forcing,
                    token=self._own_token,
                )
            penalty = self.model.penalty(memory)
        counted_SU = batch.counted
        smoothed, plain = linear_cross_entropy(
            features_SUD[counted_SU],
            self.model.output.embedding.weight,
            self.model.output.bias,
            batch.target_output_SU[counted_SU],
            smoothing=self._label_smoothing,
            dtype=self._dtype,
        )
        if penalty is not None:
            smoothed = smoothed + penalty.float() * len(batch.source_ST)
        if guided is not None:
            smoothed = smoothed + self._guided_weight * guided
        return smoothed, plain

    def _guided_loss(self, attention_SUT: Tensor, guide_SUT: Tensor) -> Tensor:
        if self.model.looks_for_token_read:
            # A token is read in the step after the one that says it.
            attention_SUT, guide_SUT = attention_SUT[:, 1:], guide_SUT[:, :-1]
        return guided_loss(attention_SUT, guide_SUT)
