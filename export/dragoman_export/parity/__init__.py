"""The gate: exported graphs held against PyTorch before a bundle is written."""
