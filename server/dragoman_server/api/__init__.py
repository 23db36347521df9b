"""The gRPC API: messages in, messages out, statuses, and who may call."""
