"""How large activations are, found once on samples: steps of int8 that all rows share.

A step of each row's own takes seven passes over the row before a product and two behind it; one that is known
takes one. Neither depends on what shares a batch.
"""
