"""What came before, and what looks at models: phrases, vectors, rescoring, studies. No server needs them.

Knows the aligners; they know nothing of it.
"""
