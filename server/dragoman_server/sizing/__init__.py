"""How many cores, servers and how much memory a load takes: measured in short, worked out in virtual time."""
