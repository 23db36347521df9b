"""One unit of a text: what the model is shown of it, and what its answer becomes. Pure."""
