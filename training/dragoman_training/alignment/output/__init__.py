"""Links between words: written, drawn, scored, and joined from two directions."""
