"""The engine on a GPU: batches that stay on the device beside batches that regroup on the host."""
