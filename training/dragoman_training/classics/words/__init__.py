"""Which words vectors hold to be alike: those of a model's embeddings, and those of skip-gram."""
