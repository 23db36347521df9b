"""PyTorch modules to the encoder and decoder-step graphs of a bundle."""
