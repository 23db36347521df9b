"""The engine beside CTranslate2 on the same weights: speed, latencies of callers, memory."""
