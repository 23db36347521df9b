"""The processes that train one model together, as torchrun starts them; or this one alone.

Each reads the whole corpus and knows every batch, so that only gradients and a few numbers travel.
"""

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from dragoman_training.device import choose_device

Value = TypeVar("Value")

TIMEOUT = datetime.timedelta(hours=12)
"""How long a process waits for the others: the first one validates while they do."""


class Processes:
    """This process among those that train together; `number` counts from 0, and 0 leads."""

    def __init__(self, device: torch.device, *, number: int = 0, count: int = 1) -> None:
        self.device = device
        self.number = number
        self.count = count
        self.leads = number == 0
        """Whether this one validates, writes and reports for all."""

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module whose gradients are the mean over all processes."""
        if self.count == 1:
            return module
        wrapped = DistributedDataParallel(module, gradient_as_bucket_view=True)
        # Buffers are constants. The argument of that name warns from torch 2.13 on, which has another one.
        wrapped.broadcast_buffers = False
        return wrapped

    def sum(self, values: Sequence[float]) -> list[float]:
        """Each value's sum over the processes."""
        if self.count == 1:
            return list(values)
        totals = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(totals)
        return list(totals.tolist())

    def from_leader(self, value: Value) -> Value:
        """The leading process's value, in all of them."""
        if self.count == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def made_by_leader(self, make: Callable[[], Value]) -> Value:
        """What `make` makes in the leading process, in all of them; ValueError in all where it fails."""
        if self.count == 1:
            return make()
        made: tuple[Value | None, str | None] = None, None
        if self.leads:
            try:
                made = make(), None
            except (ValueError, OSError) as error:
                made = None, str(error)
        value, failure = self.from_leader(made)
        if failure is not None:
            raise ValueError(failure)
        return cast(Value, value)

    def check_alike(self, name: str, value: str) -> None:
        """Raises ValueError in all of them where `value`, what a process knows `name` by, is not the same.

        On several machines each has files of its own.
        """
        num_others = int(self.sum([float(value != self.from_leader(value))])[0])
        if num_others:
            raise ValueError(
                f"{num_others} of {self.count} processes have other {name} than the first; give each machine "
                "a copy of the same files"
            )

    def leader_first(self, make: Callable[[], Value]) -> Value:
        """What `make` makes in each process, in the leading one before the others begin.

        They find on disk what that has left there. Raises ValueError in all of them where it fails there.
        """
        results: list[Value] = []
        self.made_by_leader(lambda: results.append(make()))
        return results[0] if results else make()


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Joins the processes that torchrun started, over NCCL on GPUs and gloo on CPUs; none where it did not.

    `device` is as `choose_device` takes it; under torchrun "auto" and "cuda" give each process the GPU of
    its local number. Raises ValueError for a device that isn't there.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(choose_device(device))
        return
    if device == "cuda" or (device == "auto" and torch.cuda.is_available()):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    chosen = choose_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        yield Processes(chosen, number=distributed.get_rank(), count=count)
    finally:
        distributed.destroy_process_group()
