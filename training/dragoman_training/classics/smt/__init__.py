"""Statistical machine translation: the noisy channel with words, and with phrases.

Knows the statistical aligners, no neural models and no torch.
"""
