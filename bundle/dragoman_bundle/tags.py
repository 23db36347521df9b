"""Tags: characters for private use that stand before a source and tell a model how to translate it.

Each is a piece of its own in the vocabulary of a model that was trained with it. In a caller's text they are
no tags: a server shows them to no tokenizer.
"""

FORMAL = "\ue000"
"""Asks for formal address, such as German "Sie"."""
INFORMAL = "\ue001"
"""Asks for informal address, such as German "du"."""
MACHINE = "\ue002"
"""Marks a source that a machine translated (Caswell et al. 2019); for training alone."""
FIRST_TAG, LAST_TAG = "\ue000", "\ue00f"
"""Those that recipes may name."""
