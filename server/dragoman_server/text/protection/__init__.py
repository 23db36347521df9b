"""What of a text must come out as it is: which spans those are, and whether an answer has them. Pure."""
