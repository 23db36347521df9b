"""grpc.health.v1: what the server says of itself and of its models."""
