"""What sentences of the target language look like: P(e), by n-grams."""
