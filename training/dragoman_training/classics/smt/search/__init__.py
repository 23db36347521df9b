"""Which translation of a sentence is the best: stack decoding (Koehn et al. 2003, section 3; Koehn 2004)."""
