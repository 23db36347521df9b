"""A language model that attends over its own past (Daniluk et al. 2017, section 2.1): the target side alone.

Shapes: S sentences, K beam, R = S·K rows, T source positions (of a text's beginning), U target
positions, N past positions (a row's own), E embedding width, H units, A attention units.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.checks import require_at_least, require_positive, require_share
from dragoman_training.models.layers.attention import MASKED, AdditiveAttention
from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape
from dragoman_training.models.layers.recurrent import ForwardLayer, StackedRecurrent
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, sentence_length, source_mask


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a sentence's rows have in common."""

    keys_STA: Tensor
    values_STH: Tensor
    seen_SKT: Tensor
    """Bool: what each row looks at."""


@dataclass(frozen=True, kw_only=True)
class OwnPast:
    """What each row has added. The last position is the one that looks, and does not see itself."""

    keys_RNA: Tensor
    values_RNH: Tensor
    num_seen_R: Tensor
    """How many of the positions just before the last one each row looks at; what is before them may be
    anything."""


class ContinuingAttention(AdditiveAttention):
    """The additive score, over both at once: each row must see something of one of the two."""

    def over_both(
        self, query_SKH: Tensor, beginning: Beginning, own: OwnPast
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Context [S, K, H], and the weights [S, K, T] and [S, K, N], which together add up to 1."""
        scores_SKX, seen_SKX = self.scores_of_both(query_SKH, beginning, own)
        weights_SKX = scores_SKX.masked_fill(~seen_SKX, MASKED).float().softmax(dim=-1)
        weights_SKT, weights_SKN = split(weights_SKX, beginning)
        values_SKNH = own.values_RNH.unflatten(0, query_SKH.shape[:2])
        context_SKH = weights_SKT.to(values_SKNH.dtype) @ beginning.values_STH
        own_SK1H = weights_SKN.to(values_SKNH.dtype).unsqueeze(2) @ values_SKNH
        return context_SKH + own_SK1H.squeeze(2), weights_SKT, weights_SKN

    def scores_of_both(self, query_SKH: Tensor, beginning: Beginning, own: OwnPast) -> tuple[Tensor, Tensor]:
        """The scores before the softmax, and which are seen: [S, K, T + N] twice, the beginning first."""
        query_SKA = self.query(query_SKH)
        scores_SKT = self.match(query_SKA, beginning.keys_STA.unsqueeze(1))
        scores_SKN = self.match(query_SKA, own.keys_RNA.unflatten(0, query_SKH.shape[:2]))
        last = own.keys_RNA.shape[1] - 1
        distance_N = last - torch.arange(last + 1, device=query_SKH.device)
        seen_RN = (distance_N > 0) & (distance_N <= own.num_seen_R.unsqueeze(1))
        seen_SKX = torch.cat([beginning.seen_SKT, seen_RN.unflatten(0, query_SKH.shape[:2])], dim=-1)
        return torch.cat([scores_SKT, scores_SKN], dim=-1), seen_SKX


def split(both_SKX: Tensor, beginning: Beginning) -> tuple[Tensor, Tensor]:
    """The beginning's part and the own one: [S, K, T] and [S, K, N]."""
    positions = beginning.keys_STA.shape[1]
    return both_SKX[..., :positions], both_SKX[..., positions:]


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Sizes of an attention language model. Its data has no source side: it continues texts."""

    family: Literal["lm"] = "lm"
    """Names this family in a recipe."""
    embedding_size: int = 256
    """Width of the embedding and of what the tied output layer reads."""
    embedding_std: float = 1.0
    """Standard deviation of the embedding at the start."""
    layers: int = 2
    """LSTM layers."""
    units: int = 512
    """Units of each layer."""
    attention_units: int = 256
    """Units of the attention's hidden layer."""
    span: int = 0
    """States just before its own that a state may look at, the paper's L; 0 is all of them."""
    dropout: float = 0.3
    """Probability of dropping an activation: of embeddings, between layers, and of what is predicted from."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, layers=1, units=1, attention_units=1, span=0)
        require_share(self, "model", "dropout")
        require_positive(self, "model", "embedding_std")


class LanguageModel(Seq2Seq):
    """An LSTM whose top state looks at its own earlier states before it predicts.

    The state h attends over the states before it with the additive score (equations 1 to 3), and the features
    are tanh(W [context; h]) (equation 4). The first state looks at the zeros that the LSTM begins with.
    Differs from the paper: the output layer is tied to the embedding, behind a layer to its width.

    Under the interface of translation models a source is the beginning of a text, in training an empty one,
    and its translation is how the text goes on. Of a source of n tokens and eos the encoder reads bos and all
    tokens but the last; with the zeros that is one state a source position, the memory's `past` [S, T, H],
    and `keys` [S, T, A] are what they are looked at by. Its `last` [S] is the token still to be read, bos
    where the source is empty; a first step reads it in place of the token that it is given.

    A state's `past` and `keys` are of the row's own, and grow by one a step on the right. `age` [R] counts
    the steps that a row has lived through: what stands before its last `age` positions pads them to those of
    others. The attention that a step returns is, at each token of the source, that on the state which has
    just read it.
    """

    def __init__(self, config: LanguageModelConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        width, units = config.embedding_size, config.units
        self.config = config
        self.bos = vocabulary.bos
        self.embedding = nn.Embedding(vocabulary.target_size, width)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        self.decoder = StackedRecurrent("lstm", width, units, config.layers, dropout=config.dropout)
        # The same layers, over sources of several lengths.
        layers = (layer for layer in self.decoder.layers if isinstance(layer, nn.LSTM))
        self.reader = nn.ModuleList(map(ForwardLayer, layers))
        self.attention = ContinuingAttention(query_size=units, value_size=units, units=config.attention_units)
        self.combine = nn.Linear(2 * units, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(self.embedding, vocabulary.never_produced)

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        begun_SN = torch.cat([torch.full_like(source_ST[:, :1], self.bos), source_ST], dim=1)
        last_S1 = begun_SN.gather(1, (source_length_S - 1).unsqueeze(1))
        zeros_SH = self.embedding.weight.new_zeros(source_ST.shape[0], self.config.units)
        state: Tensors = {"age": torch.zeros_like(source_length_S)}
        for number in range(self.config.layers):
            state[f"hidden{number}"] = state[f"cell{number}"] = zeros_SH
        states = zeros_SH.unsqueeze(1)
        # In training nothing is read. That takes no time then, and there is no dropout here.
        if torch.compiler.is_exporting() or source_ST.shape[1] > 1:
            # A layer must read something: of an empty source bos, and nobody sees what it makes of it.
            num_read_S = (source_length_S - 1).clamp(min=1)
            is_empty_S1 = (source_length_S == 1).unsqueeze(1)
            states = self.embedding(begun_SN[:, :-1])
            for number, layer in enumerate(self.reader):
                states, hidden_SH, cell_SH = layer(states, num_read_S)
                state[f"hidden{number}"] = torch.where(is_empty_S1, zeros_SH, hidden_SH)
                state[f"cell{number}"] = torch.where(is_empty_S1, zeros_SH, cell_SH)
        past_STH = torch.cat([zeros_SH.unsqueeze(1), states], dim=1)[:, :-1]
        keys_STA = self.attention.keys(past_STH)
        state |= {"past": _without_positions(past_STH), "keys": _without_positions(keys_STA)}
        memory = {"mask": source_mask(source_ST, source_length_S), "past": past_STH, "keys": keys_STA}
        memory["last"] = last_S1.squeeze(1)
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        age_SK = state["age"].view(token_SK.shape)
        token_SK = torch.where(age_SK == 0, memory["last"].unsqueeze(1), token_SK)
        token_SKE = self.dropout(self.embedding(token_SK))
        top_RH, new = self.decoder.step(token_SKE.flatten(0, 1), state)
        top_R1H, top_SKH = top_RH.unsqueeze(1), top_RH.unflatten(0, token_SK.shape)
        new["age"] = state["age"] + 1
        new["past"] = torch.cat([state["past"], top_R1H], dim=1)
        new["keys"] = torch.cat([state["keys"], self.attention.keys(top_R1H)], dim=1)
        span = self.config.span
        seen_SKT = self._seen_of_source(memory["mask"], age_SK)
        beginning = Beginning(keys_STA=memory["keys"], values_STH=memory["past"], seen_SKT=seen_SKT)
        num_seen_R = state["age"].clamp(max=span) if span else state["age"]
        own = OwnPast(keys_RNA=new["keys"], values_RNH=new["past"], num_seen_R=num_seen_R)
        context_SKH, weights_SKT, weights_SKN = self.attention.over_both(top_SKH, beginning, own)
        attention_SKT = self._on_source(weights_SKT, weights_SKN, memory["mask"], age_SK)
        return self._features(context_SKH, top_SKH).flatten(0, 1), attention_SKT, new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        read_SU = torch.cat([memory["last"].unsqueeze(1), target_SU[:, 1:]], dim=1)
        top_SUH = self.decoder(self.dropout(self.embedding(read_SU)), state)
        past_SNH = torch.cat([memory["past"], top_SUH[:, :-1]], dim=1)
        mask_ST, age_U = memory["mask"], torch.arange(target_SU.shape[1], device=target_SU.device)
        own_UN = self._is_within_span(age_U.unsqueeze(1) - 1 - age_U[:-1])
        source_SUT = self._seen_of_source(mask_ST, age_U.expand(target_SU.shape))
        seen_SUN = torch.cat([source_SUT, own_UN.expand(len(target_SU), -1, -1)], dim=-1)
        keys_SNA, all_SN = self.attention.keys(past_SNH), torch.ones_like(past_SNH[:, :, 0])
        window_SUN = seen_SUN.to(past_SNH.dtype)
        context_SUH, _ = self.attention(top_SUH, keys_SNA, past_SNH, all_SN, window_SUN)
        return self._features(context_SUH, top_SUH)

    def _seen_of_source(self, mask_ST: Tensor, age_SQ: Tensor) -> Tensor:
        """Which of the source's states those see that have so many of their own before: [S, Q, T] bool."""
        before_SQ = sentence_length(mask_ST).to(age_SQ.dtype) + age_SQ
        position_T = torch.arange(mask_ST.shape[1], device=mask_ST.device)
        is_near_SQT = self._is_within_span(before_SQ.unsqueeze(2) - 1 - position_T)
        return is_near_SQT & (mask_ST.unsqueeze(1) > 0)

    def _is_within_span(self, between: Tensor) -> Tensor:
        """Whether a later state sees an earlier one, with so many others between: bool, of that shape."""
        is_before = between >= 0
        return is_before & (between < self.config.span) if self.config.span else is_before

    def _on_source(self, weights_SKT: Tensor, weights_SKN: Tensor, mask_ST: Tensor, age_SK: Tensor) -> Tensor:
        """The weights on the states that have just read a token of the source, at that token: [S, K, T].

        The zeros, and the state that has read bos, stand before those of the source's tokens. The last token
        was read by the first of the row's own states.
        """
        positions, own = weights_SKT.shape[2], weights_SKN.shape[2]
        attention_SKT = functional.pad(weights_SKT, (0, 2))[..., 2:]
        position_T = torch.arange(positions, device=mask_ST.device)
        is_last_ST = position_T == sentence_length(mask_ST) - 2
        first_SK1 = weights_SKN.gather(2, (own - 1 - age_SK).unsqueeze(2))
        return attention_SKT + first_SK1 * is_last_ST.unsqueeze(1)

    def _features(self, context_SQH: Tensor, top_SQH: Tensor) -> Tensor:
        joined_SQJ = torch.cat([context_SQH, self.dropout(top_SQH)], dim=-1)
        return self.dropout(self.combine(joined_SQJ).tanh())


def _without_positions(states_SND: Tensor) -> Tensor:
    """States of as many sentences, of the same kind and width, but of no position: [S, 0, D]."""
    sentences, _, width = states_SND.shape
    return states_SND.new_zeros(sentences, 0, width)
