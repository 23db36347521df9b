"""`python -m dragoman_training` is `dragoman train`: what torchrun starts in each process."""

import sys

from dragoman_training.cli import train

if __name__ == "__main__":
    try:
        train()
    except (ValueError, OSError) as error:
        sys.exit(f"Error: {error}")
