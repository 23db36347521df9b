"""What training minimises: a model's loss on a batch, as one module that can be spread over processes.

Attention may learn from an aligner (guided alignment: Chen et al. 2016; Garg et al. 2019), and the decoder to
read its own tokens too (scheduled sampling: Bengio et al. 2015).

The output layer's logits are not kept. Shapes: S sentences, U target positions, T source positions, N target
tokens, C tokens of a chunk, P tokens of a piece of it, D features, V vocabulary.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dragoman_training.data.batching import Batch
from dragoman_training.data.token_ids import Learn
from dragoman_training.device import computing_in
from dragoman_training.models import Seq2Seq, Tensors
from dragoman_training.recipe.settings import ScheduledSamplingConfig

CHUNK_LOGITS = 1 << 26
"""Logits of one product of matrices, at most: 128 MiB in bf16."""
CACHED_LOGITS = 1 << 18
"""Logits that a CPU turns into gradients at a time: what it passes over several times stays in its cache."""


class _LinearCrossEntropy(torch.autograd.Function):
    """Logits, loss and gradients chunk by chunk in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        features_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor,
        target_N: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        vocabulary = weight_VD.shape[0]
        weight = weight_VD.to(dtype)
        features = features_ND.to(dtype)
        smoothed, plain = (features_ND.new_zeros((), dtype=torch.float32) for _ in range(2))
        grad_features = torch.empty_like(features)
        grad_weight = torch.zeros_like(weight_VD, dtype=torch.float32)
        grad_bias = torch.zeros_like(bias_V, dtype=torch.float32)
        chunk = max(1, CHUNK_LOGITS // vocabulary)
        piece = max(1, CACHED_LOGITS // vocabulary) if features.device.type == "cpu" else chunk
        for start in range(0, features.shape[0], chunk):
            part = slice(start, start + chunk)
            chunk_CV = features[part] @ weight.T
            for piece_PV, target_P in zip(chunk_CV.split(piece), target_N[part].split(piece), strict=True):
                target_P1 = target_P.unsqueeze(1)
                logits_PV = piece_PV.float().add_(bias_V)
                largest_P1 = logits_PV.amax(dim=1, keepdim=True)
                # The logits from here on lack the largest, so that no exponential overflows.
                to_target_P1 = logits_PV.sub_(largest_P1).gather(1, target_P1)
                uniform_P1 = logits_PV.mean(dim=1, keepdim=True)
                total_P1 = logits_PV.exp_().sum(dim=1, keepdim=True)
                normalizer_P1 = total_P1.log()
                target_loss = (normalizer_P1 - to_target_P1).sum()
                plain += target_loss
                smoothed += (1 - smoothing) * target_loss + smoothing * (normalizer_P1 - uniform_P1).sum()
                if not any(ctx.needs_input_grad):
                    continue
                grad_PV = logits_PV.div_(total_P1).sub_(smoothing / vocabulary)
                grad_PV.scatter_add_(1, target_P1, torch.full_like(total_P1, smoothing - 1))
                grad_bias += grad_PV.sum(dim=0)
                piece_PV.copy_(grad_PV)
            if any(ctx.needs_input_grad):
                grad_features[part] = chunk_CV @ weight
                grad_weight += chunk_CV.T @ features[part]
        ctx.save_for_backward(grad_features.to(features_ND.dtype), grad_weight, grad_bias)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        # A float32 scalar leaves the type as it is: rounded to bf16 it would be off by up to 0.4%.
        return grad_features * grad, grad_weight * grad, grad_bias * grad, None, None, None


def linear_cross_entropy(
    features_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    target_N: Tensor,
    *,
    smoothing: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the smoothed loss, which has gradients, and of the plain one, which has none.

    Label smoothing is that of Szegedy et al. (2016), section 7: the target keeps 1 - `smoothing`, the rest is
    spread evenly over the vocabulary. `dtype` is the matrix products'; all else is float32. Natural logs.
    """
    result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_ND, weight_VD, bias_V, target_N, smoothing, dtype
    )
    return result


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
        self._label_smoothing, self._dtype, self._guided_weight = label_smoothing, dtype, guided_weight
        self._own_token: Literal["best", "sampled"] = own_token

    def forward(self, batch: Batch, teacher_forcing: float = 1.0) -> tuple[Tensor, Tensor]:
        """Sums over the batch, in nats: what is minimised, which has gradients, and the plain cross-entropy.

        `teacher_forcing` is the probability that the decoder reads the reference's token; at 1 it runs
        `Seq2Seq.decode`, below step by step.
        """
        guided, target_SU = None, batch.target_input_SU
        with computing_in(self._dtype, batch.source_ST.device):
            memory, state = self.model.encode(batch.source_ST, batch.source_length_S)
            if self._guided_weight and batch.guide_SUT is not None:
                features_SUD, attention_SUT = self.model.decode_with_attention(memory, state, target_SU)
                guide_SUT = batch.guide_SUT
                if self.model.looks_for_token_read:
                    # A token is read in the step after the one that says it.
                    attention_SUT, guide_SUT = attention_SUT[:, 1:], guide_SUT[:, :-1]
                guided = guided_loss(attention_SUT, guide_SUT)
            elif teacher_forcing >= 1:
                features_SUD = self.model.decode(memory, state, target_SU)
            else:
                given, token = (self.model, memory, state, target_SU), self._own_token
                features_SUD = decode_scheduled(*given, teacher_forcing=teacher_forcing, token=token)
            penalty = self.model.penalty(memory)
        counted_SU = batch.counted
        table_VD, bias_V = self.model.output.embedding.weight, self.model.output.bias
        tokens = features_SUD[counted_SU], table_VD, bias_V, batch.target_output_SU[counted_SU]
        smoothed, plain = linear_cross_entropy(*tokens, smoothing=self._label_smoothing, dtype=self._dtype)
        if penalty is not None:
            smoothed = smoothed + penalty.float() * len(batch.source_ST)
        if guided is not None:
            smoothed = smoothed + self._guided_weight * guided
        return smoothed, plain


LEAST_WEIGHT = 1e-6
"""An attention below it costs no more."""


def guided_loss(attention_SUT: Tensor, guide_SUT: Tensor) -> Tensor:
    """Cross-entropy in nats of what is looked at against the links, summed (Garg et al. 2019, equation 6).

    The links of a target token have weights that sum up to one; a token without links costs nothing.
    """
    return -(guide_SUT * attention_SUT.float().clamp(min=LEAST_WEIGHT).log()).sum()


def load_linker() -> Learn:
    """What learns to link tokens. Raises ValueError where its extra is not installed."""
    try:
        from dragoman_training.alignment.pieces import TokenLinker
    except ImportError as error:
        raise ValueError(
            f"guided_alignment.weight needs an aligner, and {error.name} is not installed: install the extra "
            "`align` beside `training`, or set it to 0"
        ) from error
    return TokenLinker


def teacher_forcing(config: ScheduledSamplingConfig, step: int) -> float:
    """Probability of the reference's token at a step, counted from 1 (Bengio et al. 2015, section 2.4)."""
    done = step - 1
    match config.decay:
        case "none":
            factor = 1.0
        case "linear":
            factor = 1 - done / config.pace
        case "exponential":
            factor = math.exp(-done / config.pace)
        case "inverse_sigmoid":
            # k / (k + exp(i / k)), written so that it can't overflow.
            factor = 1 / (1 + math.exp(min(done / config.pace, 700.0) - math.log(config.pace)))
    return max(config.least, config.teacher_forcing * factor)


def decode_scheduled(
    model: Seq2Seq,
    memory: Tensors,
    state: Tensors,
    target_SU: Tensor,
    *,
    teacher_forcing: float,
    token: Literal["best", "sampled"] = "best",
) -> Tensor:
    """Features [S, U, D], as `Seq2Seq.decode` returns them, with some inputs replaced by predictions.

    Each input after the first is the given one with that probability, else what the model predicts from its
    last features. No gradient flows through the choice. Dropout is as in `Seq2Seq.decode`. Draws from
    PyTorch's generator of the device.
    """
    gold_SU = torch.rand(target_SU.shape, device=target_SU.device) < teacher_forcing
    token_S = target_SU[:, 0]
    features = []
    for position in range(target_SU.shape[1]):
        features_SD, _, state = model.step(token_S.unsqueeze(1), memory, state)
        features.append(features_SD)
        if position + 1 < target_SU.shape[1]:
            own_S = _own_token(model, features_SD, token)
            token_S = torch.where(gold_SU[:, position + 1], target_SU[:, position + 1], own_S)
    return torch.stack(features, dim=1)


@torch.no_grad()
def _own_token(model: Seq2Seq, features_SD: Tensor, token: Literal["best", "sampled"]) -> Tensor:
    logits_SV: Tensor = model.output(features_SD)
    if token == "best":
        return logits_SV.argmax(dim=-1)
    return logits_SV.float().softmax(dim=-1).multinomial(1).squeeze(1)
