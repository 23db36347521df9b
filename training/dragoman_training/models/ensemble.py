"""Several models that decode as one (Sutskever et al. 2014, section 3.6; Luong et al. 2015, section 4).

Shapes: S sentences, K beam, R = S·K rows, T source positions, V target vocabulary, N members, D_n width of
a member's features, D = ΣD_n.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor, nn

from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape
from dragoman_training.models.seq2seq import Seq2Seq, Tensors


class Ensemble(Seq2Seq):
    """Members of any families over one vocabulary; what each says of the next token counts alike.

    The distribution of a step is the members' geometric mean, normalised: a product of experts (Hinton 2002,
    equation 1), where the papers take the arithmetic one. It is the softmax of the mean of the members'
    logits, and so one product: their features side by side, with their output layers side by side. To
    everything else the ensemble is a model like any other: its memory and state are those of all members,
    named after them, and its attention is the mean of those that look somewhere.

    It is put together of trained models, whose parameters it shares, and not trained as one.
    """

    feature_scale_D: Tensor

    def __init__(self, members: Sequence[Seq2Seq], vocabulary: VocabularyShape) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        weights = [member.output.embedding.weight.detach() for member in members]
        biases = [member.output.bias.detach() for member in members]
        # Tables of one size side by side, so that none is lost when a row of all is rounded by one step.
        sizes = [weight.square().mean().sqrt() for weight in weights]
        side_by_side = torch.cat([own / size for own, size in zip(weights, sizes, strict=True)], dim=1)
        table = nn.Embedding.from_pretrained(side_by_side)
        self.output = OutputLayer(table, vocabulary.never_produced)
        self.output.bias.detach().copy_(torch.stack(biases).mean(dim=0))
        scale_D = torch.cat([size.expand(own.shape[1]) for own, size in zip(weights, sizes, strict=True)])
        self.register_buffer("feature_scale_D", scale_D / len(members), persistent=False)

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        memory: Tensors = {}
        state: Tensors = {}
        for number, member in self._numbered():
            own_memory, own_state = member.encode(source_ST, source_length_S)
            if "mask" in own_memory:
                memory["mask"] = own_memory.pop("mask")  # The same for all.
            memory |= _named(number, own_memory)
            state |= _named(number, own_state)
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        features, attentions = [], []
        new: Tensors = {}
        for number, member in self._numbered():
            own_memory, own_state = _own(number, memory), _own(number, state)
            features_RD, attention_SKT, own_new = member.step(token_SK, own_memory, own_state)
            features.append(features_RD)
            attentions.append(attention_SKT)
            new |= _named(number, own_new)
        return self._side_by_side(features), _mean_of_looks(torch.stack(attentions)), new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        given = [(member, _own(number, memory), _own(number, state)) for number, member in self._numbered()]
        return self._side_by_side([one.decode(own, past, target_SU) for one, own, past in given])

    def _side_by_side(self, features: Sequence[Tensor]) -> Tensor:
        return torch.cat(tuple(features), dim=-1) * self.feature_scale_D

    def _numbered(self) -> list[tuple[int, Seq2Seq]]:
        return list(enumerate(self.members))  # type: ignore[arg-type]


def _mean_of_looks(attention_NSKT: Tensor) -> Tensor:
    """[S, K, T]; 0 where no member looks anywhere."""
    looks_NSK1 = (attention_NSKT.sum(dim=-1, keepdim=True) > 0).to(attention_NSKT.dtype)
    # In this order whatever the batch, which what reduces an axis does not promise.
    return reduce(torch.add, attention_NSKT.unbind(dim=0)) / looks_NSK1.sum(dim=0).clamp(min=1)


def _named(number: int, tensors: Tensors) -> Tensors:
    """A member's tensors among those of all."""
    return {f"member{number}.{name}": tensor for name, tensor in tensors.items()}


def _own(number: int, tensors: Tensors) -> Tensors:
    """A member's own of the tensors of all, and the mask, which is everybody's."""
    prefix = f"member{number}."
    own = {name: tensor for name, tensor in tensors.items() if name.startswith(prefix) or name == "mask"}
    return {name.removeprefix(prefix): tensor for name, tensor in own.items()}
