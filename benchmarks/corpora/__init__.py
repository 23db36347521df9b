"""How much memory training on large corpora takes, and how long until its first step."""
