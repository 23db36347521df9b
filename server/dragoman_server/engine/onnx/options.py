"""How a bundle's graphs are opened."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DecoderOptions:
    """The options of a decoder. It can be pickled, for another process to open the same decoder."""

    device: str = "auto"
    """"cpu", "cuda", or "auto" for cuda where it works."""
    precision: str = "auto"
    """"fp32", "fp16", "int8", or "auto" for the one that suits the device."""
    num_threads: int = 1
    """Threads of a run on a CPU."""
    spins: bool = False
    """Whether these wait for each other by spinning, which is quicker to wake and takes processor time from
    everyone else."""
    use_shortlist: bool = True
    """Whether a bundle that has a shortlist is decoded with it."""
    stays_on_device: bool | None = None
    """Whether sentences join and leave by the bundle's graph "regroup" and not in buffers of the host; None:
    on cuda, where the bundle has that graph."""
    gpu_memory_limit_mib: int | None = None
    """Most MiB of GPU memory that each graph's arena takes for weights and tensors, and what needs more
    fails; None: what the GPU has."""
