"""Which phrases translate which, learnt from linked words."""
