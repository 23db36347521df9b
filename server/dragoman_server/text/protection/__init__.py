"""Protected spans: which parts of a text must come out unchanged, and whether an answer has them. Pure."""
