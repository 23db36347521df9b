"""A bundle's files, read within bounds and held against their checksums."""
