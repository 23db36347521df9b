"""How well texts are cut into sentences."""
