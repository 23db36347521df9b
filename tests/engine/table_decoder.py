"""A decoder whose results can be worked out by hand: probabilities are a function of source and prefix.

The state of a row is the prefix it stands for, so that a row that continues the wrong one comes out wrong.
"""

from collections.abc import Callable, Sequence

import numpy as np

from dragoman_server.engine.decoder import FloatArray, IntArray, StepInput, StepOutput

BOS, EOS = 0, 1

Tokens = tuple[int, ...]
Model = Callable[[Tokens, Tokens], FloatArray]
"""Source and target prefix -> log-probability of each target token."""


def random_model(vocabulary: int, seed: int = 0) -> Model:
    """Log-probabilities drawn at random, always the same for the same source and prefix; never BOS."""

    def log_probabilities(source: Tokens, prefix: Tokens) -> FloatArray:
        random = np.random.default_rng([seed, *source, 999, *prefix])
        logits = random.normal(size=vocabulary) * 2
        logits[BOS] = -np.inf
        return (logits - np.logaddexp.reduce(logits)).astype(np.float32)

    return log_probabilities


def attention_of(source: Tokens, prefix: Tokens) -> FloatArray:
    """What the decoder attends to before the token that follows the prefix: no two are alike."""
    return np.random.default_rng([*source, 77, *prefix]).random(len(source)).astype(np.float32)


class TableBatch:
    """The sources that are decoded and the prefix of each row of the state."""

    def __init__(self, decoder: "TableDecoder", beam_size: int) -> None:
        self._decoder = decoder
        self.beam_size = beam_size
        self._sources: list[Tokens] = []
        self._state: list[Tokens] = []
        self._source_positions = 0

    def regroup(self, origin_S: IntArray, joined: Sequence[list[Tokens]], source_positions: int) -> None:
        num_before = len(self._sources)
        for place, origin in enumerate(origin_S):
            assert origin == place or origin >= min(num_before, len(origin_S)), (
                "a place was taken from a stayer"
            )
        newcomers = [source for group in joined for source in group]
        pool = [*self._sources, *newcomers]
        self._sources = [pool[origin] for origin in origin_S]
        self._state.extend(() for _ in newcomers)
        self._source_positions = source_positions
        assert all(len(source) <= source_positions for source in self._sources)

    def step(self, rows: StepInput) -> StepOutput:
        self._decoder.observe(self._sources)
        num_sentences, beam_size = rows.token_SK.shape
        assert num_sentences == len(self._sources)
        vocabulary = self._decoder.target_vocabulary
        score_SKV = np.empty((num_sentences, beam_size, vocabulary), np.float32)
        attention_SKT = np.full((num_sentences, beam_size, self._source_positions), np.nan, np.float32)
        state = []
        for s, source in enumerate(self._sources):
            for k in range(beam_size):
                row = (*self._state[rows.parent_SK[s, k]], int(rows.token_SK[s, k]))
                prefix = row[1:]
                score_SKV[s, k] = rows.score_SK[s, k] + self._decoder.model(source, prefix)
                attention_SKT[s, k, : len(source)] = attention_of(source, prefix)
                state.append(row)
        self._state = state
        flat = score_SKV.reshape(num_sentences, -1)
        top_SC = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * beam_size]
        return StepOutput(
            top_score_SC=np.take_along_axis(flat, top_SC, axis=1),
            top_index_SC=top_SC,
            forced_score_SK=np.take_along_axis(score_SKV, rows.forced_SK[:, :, None], axis=2)[:, :, 0],
            attention_SKT=attention_SKT if rows.wants_attention else None,
        )


class TableDecoder:
    """Decodes by a model.

    `observe` is called with the sources of every step, before it; `before_encode` with those of a group;
    `on_open` with every new batch.
    """

    def __init__(
        self, model: Model, vocabulary: int, observe: Callable[[list[Tokens]], None] = lambda sources: None
    ) -> None:
        self.model = model
        self.source_vocabulary = 1000
        self.target_vocabulary = vocabulary
        self.bos = BOS
        self.eos = EOS
        self.observe = observe
        self.before_encode: Callable[[Sequence[Sequence[int]]], None] = lambda sources: None
        self.on_open: Callable[[TableBatch], None] = lambda batch: None

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> list[Tokens]:
        self.before_encode(sources)
        return [tuple(source) for source in sources]

    def open_batch(self, beam_size: int) -> TableBatch:
        batch = TableBatch(self, beam_size)
        self.on_open(batch)
        return batch

    def release_memory(self) -> None:
        pass
