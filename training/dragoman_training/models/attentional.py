"""What the families with a stacked LSTM decoder and attention at its top share (after Luong et al. 2015).

A family says what its attention is and what of the encoder's states it looks at; this module owns the rest.

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, Q queries a sentence (K in
a step, U in training), E embedding width, H decoder units, M = 2 · encoder units, C a context's, G = 4 · H.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_positive, require_share
from dragoman_training.models.layers import recurrent
from dragoman_training.models.layers.attention import Attention
from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape, embeddings, fold_scale
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, source_mask


@dataclass(frozen=True, kw_only=True)
class AttentionalConfig:
    """Sizes that all of these families have."""

    embedding_size: int = 256
    """Width of embeddings and of the attentional state that the tied output layer reads."""
    embedding_std: float = 1.0
    """Standard deviation of the embeddings at the start, as they are read."""
    embedding_scale: float = 1.0
    """What embeddings are multiplied by where they are read, not where the tied output layer reads them; the
    table begins so much smaller. Adam's steps have one size for all parameters, so the table learns that
    much faster. 4 is far better than 1, which stands for models from before."""
    encoder_layers: int = 2
    """Bidirectional layers of the encoder."""
    encoder_units: int = 256
    """Units of the encoder per direction."""
    decoder_layers: int = 2
    """Layers of the decoder."""
    decoder_units: int = 512
    """Units of the decoder per layer."""
    input_feeding: bool = True
    """Whether the decoder reads its last attentional state beside the token. Without it training needs no
    loop over the target."""
    dropout: float = 0.3
    """Probability of dropping an activation: of embeddings, between layers, and of the attentional state."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, encoder_layers=1, encoder_units=1)
        require_at_least(self, "model", decoder_layers=1, decoder_units=1)
        require_share(self, "model", "dropout")
        require_positive(self, "model", "embedding_std", "embedding_scale")


class AttentionalLSTM(Seq2Seq):
    """A stacked LSTM decoder whose top state attends over a bidirectional LSTM encoder.

    The attentional state h̃ = tanh(W [context; hidden]) (Luong et al. 2015, equation 5) feeds the output layer
    and, with input feeding, the first layer at the next step (section 3.3). Differs from the paper: the
    encoder reads in both directions, a tanh layer leads from its last states to the decoder's first, the
    output layer is tied to the embedding and the attentional state as wide as that, not as the decoder, and
    dropout, which there is of the LSTMs (section 4.1), is of the attentional state too, also as it is fed.
    """

    def __init__(
        self,
        config: AttentionalConfig,
        vocabulary: VocabularyShape,
        attention: Callable[[], Attention],
        *,
        context_size: int,
        counts_steps: bool = False,
    ) -> None:
        """`attention` is called in its turn, so that a seed gives each layer the same parameters as ever.

        With `counts_steps` the state holds how many tokens each row has read, `position` [R] int64.
        """
        super().__init__()
        width, units, memory_size = config.embedding_size, config.decoder_units, 2 * config.encoder_units
        self._sizes, layers, self._counts_steps = config, config.decoder_layers, counts_steps
        self._embedding_scale = config.embedding_scale
        std = config.embedding_std / config.embedding_scale
        self.source_embedding, self.target_embedding = embeddings(vocabulary, width, std)
        sizes = width, config.encoder_units, config.encoder_layers
        self.encoder = recurrent.BidirectionalEncoder("lstm", *sizes, dropout=config.dropout)
        self.bridge = nn.Linear(memory_size, 2 * config.decoder_layers * units)
        if config.input_feeding:
            self.token_input = nn.Linear(width, 4 * units)
            self.feed_input = nn.Linear(width, 4 * units, bias=False)
            self.layer_inputs = nn.ModuleList(nn.Linear(units, 4 * units) for _ in range(layers - 1))
            self.cells = nn.ModuleList(recurrent.LSTMCell(units) for _ in range(layers))
        else:
            self.decoder = recurrent.StackedRecurrent("lstm", width, units, layers, dropout=config.dropout)
        self.attention = attention()
        self.combine = nn.Linear(context_size + units, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(self.target_embedding, vocabulary.never_produced)

    def fold_embedding_scale(self) -> None:
        first = self.encoder.layers[0]
        assert isinstance(first, recurrent.BidirectionalLayer)
        decoder = self.token_input if self._sizes.input_feeding else self.decoder.layers[0]
        fold_scale(self._embedding_scale, first.forward_rnn, first.backward_rnn, decoder)
        self._embedding_scale = 1.0

    @abstractmethod
    def remember(self, states_STM: Tensor, mask_ST: Tensor) -> Tensors:
        """What the decoder will look at, from the encoder's states: the memory."""

    @abstractmethod
    def look(self, top_SQH: Tensor, memory: Tensors, position_SQ: Tensor | None) -> tuple[Tensor, Tensor]:
        """Context [S, Q, C] of decoder states, and weights [S, Q, ...] over what they looked at.

        `position_SQ` is how many target tokens were read before each, if the family counts steps.
        """

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        source_STE = self.source_embedding(source_ST) * self._embedding_scale
        states_STM, ahead_SH, back_SH = self.encoder(source_STE, source_length_S)
        memory = self.remember(states_STM, source_mask(source_ST, source_length_S))
        first = self.bridge(torch.cat([ahead_SH, back_SH], dim=-1)).tanh()
        hidden_and_cell = first.chunk(2 * self._sizes.decoder_layers, dim=-1)
        state: Tensors = {}
        if self._sizes.input_feeding:
            state["feed"] = first.new_zeros(first.shape[0], self._sizes.embedding_size)
        if self._counts_steps:
            state["position"] = torch.zeros_like(source_length_S)
        for layer in range(self._sizes.decoder_layers):
            state[f"hidden{layer}"] = hidden_and_cell[2 * layer]
            state[f"cell{layer}"] = hidden_and_cell[2 * layer + 1]
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        token_SKE = self.dropout(self.target_embedding(token_SK) * self._embedding_scale)
        if self._sizes.input_feeding:
            attention_SKT, state = self._advance(self.token_input(token_SKE), memory, state)
            return state["feed"], attention_SKT, state
        top_RH, new = self.decoder.step(token_SKE.flatten(0, 1), state)
        position_SK = self._count(state, new, token_SK.shape)
        return *self._attend(top_RH.unflatten(0, token_SK.shape), memory, position_SK), new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        token_SUE = self.dropout(self.target_embedding(target_SU) * self._embedding_scale)
        if not self._sizes.input_feeding:
            position_SU = None
            if self._counts_steps:
                read_U = torch.arange(target_SU.shape[1], device=target_SU.device)
                position_SU = state["position"].unsqueeze(1) + read_U
            features_RE, _ = self._attend(self.decoder(token_SUE, state), memory, position_SU)
            return features_RE.unflatten(0, target_SU.shape)
        features = []
        for projected_S1G in self.token_input(token_SUE).split(1, dim=1):
            _, state = self._advance(projected_S1G, memory, state)
            features.append(state["feed"])
        return torch.stack(features, dim=1)

    def _advance(self, projected_SKG: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensors]:
        """One step with input feeding of all rows, from their projected tokens.

        The new `feed` is the attentional state.
        """
        sizes = projected_SKG.shape[:2]
        inputs_RG = projected_SKG.flatten(0, 1) + self.feed_input(state["feed"])
        new: Tensors = {}
        for layer, cell in enumerate(self.cells):
            hidden_RH, new[f"cell{layer}"] = cell(inputs_RG, state[f"hidden{layer}"], state[f"cell{layer}"])
            new[f"hidden{layer}"] = hidden_RH
            if layer < len(self.layer_inputs):
                inputs_RG = self.layer_inputs[layer](self.dropout(hidden_RH))
        position_SK = self._count(state, new, sizes)
        new["feed"], attention_SKT = self._attend(hidden_RH.unflatten(0, sizes), memory, position_SK)
        return attention_SKT, new

    def _count(self, state: Tensors, new: Tensors, sizes: torch.Size) -> Tensor | None:
        """How many tokens each row had read, [S, K]; one more in the new state."""
        if not self._counts_steps:
            return None
        new["position"] = state["position"] + 1
        return state["position"].unflatten(0, sizes)

    def _attend(self, top_SQH: Tensor, memory: Tensors, position_SQ: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attentional states [S·Q, E], and weights as `look` gives them."""
        context_SQC, weights = self.look(top_SQH, memory, position_SQ)
        joined_RJ = torch.cat([context_SQC, top_SQH], dim=-1).flatten(0, 1)
        return self.dropout(self.combine(joined_RJ).tanh()), weights
