"""What a resumed run takes up beside its progress: tensors by name."""

from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman_training.checkpoint import CheckpointError, load_parameters
from dragoman_training.models import Seq2Seq
from dragoman_training.run.optimizer import MovingAverage


def state_tensors(
    model: Seq2Seq, average: MovingAverage, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Parameters, their average and the optimizer's moments, named as `checkpoint` says."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = value
    for name, parameter in average.model.named_parameters():
        tensors[f"average.{name}"] = parameter
    return tensors


def restore_state(
    tensors: Mapping[str, Tensor],
    model: Seq2Seq,
    average: MovingAverage,
    optimizer: torch.optim.Optimizer,
    *,
    num_steps: int,
    is_scaled: bool,
) -> None:
    """Takes up what `state_tensors` gave after so many steps, of a loss that was scaled or was not.

    Raises CheckpointError where it is of another model, or not whole.
    """
    if not any(name.startswith("average.") for name in tensors):
        raise CheckpointError(
            "the checkpoint can't be resumed from: it holds a model alone, as best.safetensors does; "
            "last.safetensors holds the rest"
        )
    load_parameters(model, tensors, "model.")
    load_parameters(average.model, tensors, "average.")
    # Where the loss is scaled, all steps so far may have overflowed, and taught the optimizer nothing.
    is_fresh = num_steps == 0 or (is_scaled and not any(key.startswith("optimizer.") for key in tensors))
    for name, parameter in model.named_parameters():
        keys = [key for key in tensors if key.startswith(f"optimizer.{name}.")]
        if not is_fresh and not keys:
            raise CheckpointError(
                f"the checkpoint can't be resumed from: the optimizer's state of \"{name}\" is missing"
            )
        optimizer.state[parameter] = {
            # Adam keeps its count of steps, which has no axis, on the CPU.
            key.rsplit(".", 1)[1]: tensors[key].to(
                parameter.device if tensors[key].ndim else torch.device("cpu"), copy=True
            )
            for key in keys
        }
