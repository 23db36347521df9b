"""`python -m dragoman_training` is `dragoman train`: what torchrun starts in each process."""

import os
import sys
from typing import NoReturn

from dragoman_training.cli import train


def main() -> NoReturn:
    """Train, and leave with the status that `dragoman train` has: 0, 1 for an error, 2 for wrong usage."""
    try:
        try:
            train()
        except (ValueError, OSError) as error:
            sys.exit(f"Error: {error}")
    except SystemExit as leaving:
        if "RANK" not in os.environ:
            raise
        _leave_at_once(leaving)
    sys.exit(0)


def _leave_at_once(leaving: SystemExit) -> NoReturn:
    """Leave without taking Python down.

    PyTorch keeps Gloo's threads after `destroy_process_group`. One that lets go of a tensor while Python is
    being taken down aborts the process, and torchrun would report a training that is done as failed.
    """
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None))


if __name__ == "__main__":
    main()
