"""A Transformer's attention by onnxruntime's own kernels for CPUs, each of them one node for some twenty.

Their sums depend neither on padding nor on neighbours. GroupQueryAttention knows how much of its past each
row has, adds a position right behind that, and reads nothing else; so each row's past begins at the first
position and is padded behind. MultiHeadAttention adds up over source positions in their order, and what is
masked comes to nothing; but of a single query it would be another routine, which groups positions by four: so
a spare one, all zeros, keeps it company.

Shapes: S sentences, K beam, R = S·K rows, Q queries a sentence, T source positions, U positions so far,
N = U + 1, H heads, A width of a head, D = H · A.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.models.layers.multi_head_attention import split_heads
from dragoman_training.models.layers.transformer_attention import CrossAttention, SelfAttention
from dragoman_training.models.layers.transformer_layers import DecoderLayer, EncoderLayer

PAST = "GroupQueryAttention"
HEAD_WIDTH = 8
"""The kernel of pasts takes heads as wide as a multiple of this."""


class PastByKernel(nn.Module):
    """Does what `SelfAttention.step` does, with pasts that are padded behind."""

    def __init__(self, attention: SelfAttention) -> None:
        super().__init__()
        self.num_heads = attention.num_heads
        self.input, self.output = attention.input, attention.output

    def step(
        self, inputs_SKD: Tensor, keys_RHUA: Tensor, values_RHUA: Tensor, mask_RN: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `SelfAttention.step`; of the mask only counts how many positions a row sees, itself included."""
        rows_R1D = inputs_SKD.flatten(0, 1).unsqueeze(1)
        rows, heads, past, width = keys_RHUA.shape
        length_R = (mask_RN.sum(dim=1) - 1).to(torch.int32)
        longest_1 = torch.full((1,), mask_RN.shape[1], dtype=torch.int32)
        grown = [rows, heads, past + 1, width]
        context_R1D, keys_RHNA, values_RHNA = torch.onnx.ops.symbolic_multi_out(
            f"com.microsoft::{PAST}",
            # Queries, keys and values side by side.
            (self.input(rows_R1D), None, None, keys_RHUA, values_RHUA, length_R, longest_1),
            {"num_heads": self.num_heads, "kv_num_heads": self.num_heads},
            dtypes=[inputs_SKD.dtype] * 3,
            shapes=[[rows, 1, heads * width], grown, grown],
            version=1,
        )
        return self.output(context_R1D).view(inputs_SKD.shape), keys_RHNA, values_RHNA


class SourceByKernel(CrossAttention):
    """Does what `CrossAttention` does; its weights, which the kernel keeps to itself, are computed apart."""

    def __init__(self, attention: CrossAttention) -> None:
        # It has the parameters of the given one, and makes none.
        nn.Module.__init__(self)
        self.num_heads, self.heads = attention.num_heads, attention.heads
        self.query, self.memory, self.output = attention.query, attention.memory, attention.output

    def by_head(
        self,
        query_SQD: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_ST: Tensor,
        window_SQT: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """As `CrossAttention.by_head`. Whatever is not read of it is in no graph."""
        assert window_SQT is None
        queries_SQD = self.query(query_SQD)
        context_SQD = _attend(queries_SQD, keys, values, mask_ST, self.num_heads)
        _, weights_SHQT = self.heads(
            split_heads(queries_SQD, self.num_heads), keys, values, mask_ST.unsqueeze(1)
        )
        return self.output(context_SQD), weights_SHQT


class AllPositionsByKernel(SelfAttention):
    """Does what `SelfAttention.forward` does."""

    def __init__(self, attention: SelfAttention) -> None:
        nn.Module.__init__(self)
        self.num_heads, self.heads = attention.num_heads, attention.heads
        self.input, self.output = attention.input, attention.output

    def forward(self, inputs_STD: Tensor, mask_ST: Tensor) -> Tensor:
        queries, keys, values = self.input(inputs_STD).chunk(3, dim=-1)
        return self.output(_attend(queries, keys, values, mask_ST, self.num_heads))


def _attend(queries_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor, num_heads: int) -> Tensor:
    """[S, Q, D]; keys and values are [S, T, D] or [S, H, T, A]."""
    sentences, queries, width = queries_SQD.shape
    context_SXD: Tensor = torch.onnx.ops.symbolic(
        "com.microsoft::MultiHeadAttention",
        (functional.pad(queries_SQD, (0, 0, 0, 1)), keys, values, None, mask_ST.to(torch.int32)),
        {"num_heads": num_heads},
        dtype=queries_SQD.dtype,
        shape=[sentences, queries + 1, width],
        version=1,
    )
    return context_SXD[:, :queries]


def takes_cpu_kernels(model: nn.Module) -> bool:
    """Whether the model has layers for the kernels, and that of pasts takes them all."""
    layers = [module for module in model.modules() if isinstance(module, DecoderLayer)]
    return bool(layers) and all(
        layer.is_recurrent or _head_width(layer.self_attention) % HEAD_WIDTH == 0 for layer in layers
    )


def use_cpu_kernels(model: nn.Module) -> None:
    """Has the model's layers attend by the kernels."""
    for module in list(model.modules()):
        if isinstance(module, EncoderLayer):
            module.attention = AllPositionsByKernel(module.attention)
        elif isinstance(module, DecoderLayer):
            if not module.is_recurrent:
                # The name of a submodule, whatever its type.
                setattr(module, "self_attention", PastByKernel(module.self_attention))  # noqa: B010
            module.cross_attention = SourceByKernel(module.cross_attention)


def _head_width(attention: SelfAttention) -> int:
    return attention.output.in_features // attention.num_heads
