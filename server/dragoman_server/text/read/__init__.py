"""The first stage: a caller's text cleaned, and its markup read. Pure."""
