"""HOW FAST: paired interleaved latency, the stop rule, intervals."""
