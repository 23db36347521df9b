"""Training of attention sequence-to-sequence models: a recipe and a corpus in, checkpoints out."""
