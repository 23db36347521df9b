"""What both toolkits are given: one model shape, one vocabulary, one corpus, one budget of tokens a batch."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A stacked LSTM encoder-decoder with attention that both toolkits can express.

    JoeyNMT ties its output layer only where embeddings are as wide as the decoder, so here they are.
    """

    embedding_size: int = 512
    encoder_layers: int = 2
    encoder_units: int = 256
    """A direction."""
    decoder_layers: int = 2
    decoder_units: int = 512
    dropout: float = 0.3
    label_smoothing: float = 0.1
    batch_tokens: int = 1800
    """Padded tokens a batch on the longer side, as both toolkits count them."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """The files both toolkits read, and how long each runs."""

    folder: Path
    """Where a run may write."""
    train_source: Path
    train_target: Path
    valid_source: Path
    valid_target: Path
    tokenizer: Path
    """Sentencepiece model, for both sides."""
    warmup_steps: int
    """Steps before the clock starts."""
    steps: int
    """Steps that are timed."""
    threads: int
    """CPU threads."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What one run of one toolkit measured."""

    tokens_per_second: float
    """Target tokens, end of sentence included and padding not, over the timed steps."""
    parameters: int
    """Of the model that was trained."""
