"""Which source piece a target piece comes from, learnt from sentence pairs.

Knows no models and no torch, but for `head`, which holds a Transformer's heads against what was learnt.
"""
