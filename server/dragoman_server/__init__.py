"""The translation server: gRPC, text and metrics around the engine that decodes."""
