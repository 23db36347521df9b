"""How good a shipped model is at what its users translate: words, strings, everyday lines, news."""
