"""The `dragoman` command. Its subcommands come from all packages, each loaded when it is called."""

import os

# gRPC reads it once, when it is imported, which the next import does: it would write lines of its own before
# an error of ours. Whoever sets it has them.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from dragoman.cli.group import main

__all__ = ["main"]
