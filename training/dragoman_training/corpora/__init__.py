"""Training text made of the corpora that there are: `dragoman corpora`."""
