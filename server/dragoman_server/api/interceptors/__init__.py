"""What stands around every call: its metrics, and the refusal of what is malformed."""
