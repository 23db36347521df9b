"""Int8 graphs whose results do not depend on the batch.

Every row of activations has its own scale, or one fixed at export, and every column of weights its own. So a
sentence is rounded alike whatever shares its batch, and sums are of integers, which come out the same in any
order. Weights are stored as int8, each matrix once.
"""
