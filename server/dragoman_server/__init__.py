"""The translation server: gRPC, text and metrics around the engine that decodes."""

import os

# gRPC writes lines of its own to standard error, with what strangers send in them, newlines too: anyone who
# reaches the port could write lines of the log. It reads this once, when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
