"""Whole sentences through a PyTorch model: tokenize, search, detokenize."""

import warnings
from collections.abc import Sequence

import torch
from dragoman_bundle.search import Candidates, Hypothesis, Ids, Scores, beam_search
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from torch import Tensor

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Seq2Seq, Tensors
from dragoman_training.recipe.settings import DecodingConfig

BATCH_ROWS = 320
_NOTHING = Hypothesis(tokens=(), score=0.0, log_probability=0.0, ended=True)
"""The translation of a source of which normalization leaves nothing."""


class Translator:
    """Translates sentences in batches of similar length."""

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig,
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._decoding = decoding
        self._stepper = TorchStepper(
            model,
            source_pad_id=source_tokenizer.pad_id,
            bos_id=target_tokenizer.bos_id,
            eos_id=target_tokenizer.eos_id,
        )

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """What the model reads of each sentence: its ids with eos; of one that is too long, its beginning.

        Warns of those.
        """
        limit = self._decoding.max_source_tokens - 1
        sources = self._source_tokenizer.encode_ids(sentences)
        if num_cut := sum(len(ids) > limit for ids in sources):
            warnings.warn(
                f"{num_cut} of {len(sources)} sentences have more tokens than the model takes, {limit}, and "
                "only their beginnings are translated here; a bundle splits them",
                stacklevel=2,
            )
        return [[*ids[:limit], self._source_tokenizer.eos_id] for ids in sources]

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypothesis]:
        """The best hypothesis of each source, ids with eos; an empty one where there is no other id."""
        return [found[0] if found else _NOTHING for found in self.search_lists(sources)]

    def search_lists(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """All hypotheses of each source, the best first; none of eos alone: a model makes up a sentence."""
        filled = [number for number, source in enumerate(sources) if len(source) > 1]
        by_length = sorted(filled, key=lambda number: len(sources[number]))
        found: dict[int, list[Hypothesis]] = {}
        size = max(1, BATCH_ROWS // self._decoding.beam_size)
        for start in range(0, len(by_length), size):
            numbers = by_length[start : start + size]
            results = beam_search(self._stepper, [sources[number] for number in numbers], self._decoding)
            found |= dict(zip(numbers, results, strict=True))
        return [found.get(number, []) for number in range(len(sources))]

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """The best translation of each sentence; of one that is too long, of its beginning."""
        found = self.search(self.encode(sentences))
        return [self._target_tokenizer.decode_text(hypothesis.tokens) for hypothesis in found]


class TorchStepper:
    """Steps a model in evaluation mode, on the device its parameters are on."""

    def __init__(self, model: Seq2Seq, *, source_pad_id: int, bos_id: int, eos_id: int) -> None:
        self._model = model.eval()
        self._device = next(model.parameters()).device
        self._source_pad_id = source_pad_id
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.vocabulary_size = model.output.embedding.num_embeddings

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> tuple[Tensors, Tensors]:
        """Memory and first state of sentences."""
        source_ST = pad_ids(sources, self._source_pad_id).to(self._device)
        length_S = torch.tensor([len(source) for source in sources], device=self._device)
        return self._model.encode(source_ST, length_S)

    @torch.inference_mode()
    def step(
        self, context: tuple[Tensors, Tensors], token_SK: Ids, parent_SK: Ids, score_SK: Scores
    ) -> tuple[Candidates, tuple[Tensors, Tensors]]:
        """Advances every row and returns each sentence's 2K best continuations."""
        memory, state = context
        sentences, beam = token_SK.shape
        parent_R = self._tensor(parent_SK).flatten()
        state = {name: value.index_select(0, parent_R) for name, value in state.items()}
        features_RD, _, state = self._model.step(self._tensor(token_SK), memory, state)
        logits_RV = self._model.output(features_RD)
        score_RV = logits_RV.float().log_softmax(dim=-1) + self._tensor(score_SK).flatten().unsqueeze(1)
        score_SC, index_SC = score_RV.view(sentences, -1).topk(2 * beam, dim=1)
        candidates = Candidates(score_SC=score_SC.cpu().numpy(), index_SC=index_SC.cpu().numpy())
        return candidates, (memory, state)

    def select(self, context: tuple[Tensors, Tensors], sentences: Ids) -> tuple[Tensors, Tensors]:
        """The context of some of its sentences."""
        memory, state = context
        chosen_S = self._tensor(sentences)
        return {name: value.index_select(0, chosen_S) for name, value in memory.items()}, state

    def _tensor(self, array: Ids | Scores) -> Tensor:
        return torch.from_numpy(array).to(self._device)
