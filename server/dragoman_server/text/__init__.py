"""Texts cut into sentences, cleaned, translated through an engine and joined again. Knows no gRPC."""
