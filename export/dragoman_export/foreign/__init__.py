"""What models from elsewhere have in common, whatever format they come in."""
