"""What every door does with a call: who may make it, its model, its limits, its answer. Knows no door."""
