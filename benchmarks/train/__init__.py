"""Training speed: target tokens a second of our trainer beside another toolkit's, in the same model shape."""
