"""The Transformer (Vaswani et al. 2017), also with a recurrent decoder (Kim et al. 2019).

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions so far, H heads, A width of
a head, D = H · A.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_share
from dragoman_training.models.layers import transformer_layers as layers
from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape, embeddings
from dragoman_training.models.layers.transformer_layers import DecoderLayer, EncoderLayer, Positions
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, source_mask


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes of a Transformer."""

    family: Literal["transformer"] = "transformer"
    """Names this family in a recipe."""
    width: int = 256
    """Width of embeddings and of every layer."""
    heads: int = 4
    """Heads of every attention; they divide the width."""
    feed_forward: int = 1024
    """Units of the feed-forward sublayers."""
    encoder_layers: int = 3
    """Layers of the encoder."""
    decoder_layers: int = 3
    """Layers of the decoder."""
    past: layers.Past = "self-attention"
    """How a decoder's layer knows what was said: by attention to it, or by simpler simple recurrent units
    (Kim et al. 2019), which keep it in one vector: a step takes the same however long a sentence is."""
    norm: layers.Norm = "pre"
    """Whether layers are normalised before each sublayer, or after it as in the paper."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Where the positions' vectors come from."""
    shared_positions: bool = True
    """Whether both sides have the same vectors of positions. False gives learned ones to each side."""
    max_positions: int = 1024
    """Positions that are told apart, on either side."""
    activation: layers.Activation = "relu"
    """What stands between the two layers of a feed-forward sublayer."""
    scale_embedding: bool = True
    """Whether embeddings are multiplied by the root of the width (section 3.4). False is for models
    trained elsewhere without: a new one's embeddings begin small, and would be lost beside the positions."""
    tied_output: bool = True
    """Whether the output layer's matrix is the target embedding (Press and Wolf 2017), or one of its own."""
    dropout: float = 0.3
    """Probability of dropping an activation of a sublayer's result, or of the embeddings."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", width=1, heads=1, feed_forward=1, max_positions=1)
        require_at_least(self, "model", encoder_layers=1, decoder_layers=1)
        require_share(self, "model", "dropout")
        if self.width % self.heads:
            fitting = [heads for heads in range(1, self.width + 1) if self.width % heads == 0]
            nearest = min(fitting, key=lambda heads: abs(heads - self.heads))
            raise ValueError(
                f"model.heads is {self.heads}, which does not divide model.width, {self.width}; "
                f"{nearest} heads would be {self.width // nearest} wide each"
            )


@dataclass(frozen=True, kw_only=True)
class AlignmentHead:
    """The one of a decoder's heads of cross-attention that looks at what a word comes from."""

    layer: int
    """The layer of the decoder, from 0 on."""
    head: int
    """The head of the layer, from 0 on."""


class Transformer(Seq2Seq):
    """Attention alone, in layers, on both sides.

    A step's state is the keys and values of every decoder layer's self-attention, [R, H, U, A], to which a
    step adds one position on the right, and `age` [R], the steps that a row has lived through. A row sees the
    last `age` positions of its past and nothing before them: what stands there pads it to the past of others.
    With SSRU it is a vector for every decoder layer, [R, D], and `age`; nothing grows.

    The attention that a step returns is that of its `alignment_head`, or where there is none the mean over
    the heads of the last layer's cross-attention.

    Differs from the paper: `norm` may come before the sublayers, with one more at the end of each stack, and
    the output layer has a bias.
    """

    looks_for_token_read = True

    def __init__(self, config: TransformerConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        self.config = config
        self.alignment_head: AlignmentHead | None = None
        """Chosen for a model that is trained; no parameter, and not kept in its checkpoint."""
        width = config.width
        sizes = width, config.heads, config.feed_forward, config.activation, config.norm, config.dropout
        # Multiplied by the root of the width, embeddings begin as large as the positions added to them.
        self.source_embedding, self.target_embedding = embeddings(vocabulary, width, 1 / math.sqrt(width))
        self.embedding_scale = math.sqrt(width) if config.scale_embedding else 1.0
        self.positions = Positions(config.max_positions, width, config.positions)
        self.target_positions: Positions | None = None
        """None where they are the source's."""
        if not config.shared_positions:
            self.target_positions = Positions(config.max_positions, width, config.positions)
        self.encoder_layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(config.encoder_layers))
        number = config.decoder_layers
        self.decoder_layers = nn.ModuleList(DecoderLayer(*sizes, config.past) for _ in range(number))
        is_pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(width) if is_pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width) if is_pre else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        table = self.target_embedding
        if not config.tied_output:
            table = nn.Embedding(vocabulary.target_size, width)
            nn.init.normal_(table.weight, std=1 / math.sqrt(width))
        self.output = OutputLayer(table, vocabulary.never_produced)

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        mask_ST = source_mask(source_ST, source_length_S)
        position_T = torch.arange(source_ST.shape[1], device=source_ST.device)
        x_STD = self._embed(self.source_embedding, source_ST, self.positions(position_T))
        for layer in self.encoder_layers:
            x_STD = layer(x_STD, mask_ST)
        x_STD = self.encoder_norm(x_STD)
        memory, state = {"mask": mask_ST}, {"age": torch.zeros_like(source_length_S)}
        for number, layer in enumerate(self.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            keys_SHTA, values_SHTA = layer.cross_attention.keys_and_values(x_STD)
            memory |= {f"keys{number}": keys_SHTA, f"values{number}": values_SHTA}
            state |= {name: x_STD.new_zeros(source_ST.shape[0], *shape) for name, shape in self._past(number)}
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        age_R = state["age"]
        past_mask_RN = None
        if self.config.past == "self-attention":
            past = state["keys0"].shape[2]
            position_N = torch.arange(past + 1, device=token_SK.device)
            past_mask_RN = (position_N >= past - age_R.unsqueeze(1)).float()
        x_SKD = self._embed_target(token_SK, age_R.view(token_SK.shape))
        new: Tensors = {"age": age_R + 1}
        attentions = []
        for number, layer in enumerate(self.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            names = [name for name, _ in self._past(number)]
            own = tuple(state[name] for name in names)
            encoded = memory[f"keys{number}"], memory[f"values{number}"]
            x_SKD, weights_SHKT, new_past = layer.step(x_SKD, own, past_mask_RN, encoded, memory["mask"])
            new |= zip(names, new_past, strict=True)
            attentions.append(weights_SHKT)
        chosen = self.alignment_head
        if chosen is None:
            # One head after the other: what reduces an axis adds up in an order that depends on the batch.
            attention_SKT = reduce(torch.add, attentions[-1].unbind(dim=1)) / self.config.heads
        else:
            attention_SKT = attentions[chosen.layer][:, chosen.head]
        return self.decoder_norm(x_SKD).flatten(0, 1), attention_SKT, new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        x_SUD = self._embed_target(target_SU, torch.arange(target_SU.shape[1], device=target_SU.device))
        for number, layer in enumerate(self.decoder_layers):
            x_SUD = layer(x_SUD, memory[f"keys{number}"], memory[f"values{number}"], memory["mask"])
        return self.decoder_norm(x_SUD)

    def decode_with_attention(
        self, memory: Tensors, state: Tensors, target_SU: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The attention is that of the first head in the last layer but one.

        That layer sees what the target says so far and is no longer at what comes next (Garg et al. 2019,
        section 4.1).
        """
        guided = max(0, len(self.decoder_layers) - 2)
        x_SUD = self._embed_target(target_SU, torch.arange(target_SU.shape[1], device=target_SU.device))
        for number, layer in enumerate(self.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            encoded = (memory[f"keys{number}"], memory[f"values{number}"], memory["mask"])
            if number == guided:
                x_SUD, weights_SHUT = layer.look(x_SUD, *encoded)
            else:
                x_SUD = layer(x_SUD, *encoded)
        return self.decoder_norm(x_SUD), weights_SHUT[:, 0]

    def _past(self, number: int) -> list[tuple[str, tuple[int, ...]]]:
        """The tensors of a decoder layer's state: their names, and a row's sizes before the first step."""
        if self.config.past == "ssru":
            return [(f"cell{number}", (self.config.width,))]
        shape = (self.config.heads, 0, self.config.width // self.config.heads)
        return [(f"keys{number}", shape), (f"values{number}", shape)]

    def _embed_target(self, token: Tensor, position: Tensor) -> Tensor:
        positions = self.positions if self.target_positions is None else self.target_positions
        return self._embed(self.target_embedding, token, positions(position))

    def _embed(self, embedding: nn.Embedding, token: Tensor, position: Tensor) -> Tensor:
        return self.dropout(embedding(token) * self.embedding_scale + position)
