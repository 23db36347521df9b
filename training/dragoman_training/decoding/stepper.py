"""A PyTorch model behind the beam search."""

from collections.abc import Sequence

import torch
from dragoman_bundle.search import Candidates, Ids, Scores
from torch import Tensor

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Seq2Seq, Tensors


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
