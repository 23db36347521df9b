"""The gate: exported graphs held against a reference before a bundle is written."""
