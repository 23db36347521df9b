"""Which source piece a target piece comes from: tables and links over a model's tokens."""
