"""How much each caller may ask for, and how much it has had."""
