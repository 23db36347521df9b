"""Translation as the first attention tutorials write it: one sentence at a time, one token at a time, greedy.

Plain on purpose: what everything else is compared with.
"""

from collections.abc import Sequence

import torch

from dragoman_training.checkpoint import Checkpoint


class Tutorial:
    """A PyTorch model that translates sentence by sentence."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._model = checkpoint.model.eval()
        self._source_tokenizer = checkpoint.source_tokenizer
        self._target_tokenizer = checkpoint.target_tokenizer
        self._decoding = checkpoint.recipe.decoding

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The lines' translations, one to one."""
        return [self._translate(line) for line in lines]

    def _translate(self, line: str) -> str:
        with torch.no_grad():
            source = self._source_tokenizer.encode_ids([line])[0][: self._decoding.max_source_tokens - 1]
            source.append(self._source_tokenizer.eos_id)
            memory, state = self._model.encode(torch.tensor([source]), torch.tensor([len(source)]))
            token = self._target_tokenizer.bos_id
            output: list[int] = []
            for _ in range(self._decoding.output_limit(len(source))):
                features, _attention, state = self._model.step(torch.tensor([[token]]), memory, state)
                token = int(self._model.output(features).argmax(dim=-1).item())
                if token == self._target_tokenizer.eos_id:
                    break
                output.append(token)
            return self._target_tokenizer.decode_text(output)
