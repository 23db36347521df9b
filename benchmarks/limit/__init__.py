"""How far a decoder step is from what the machine can do: its arithmetic and bytes beside the best seen."""
