"""What the viewer and the network got, as pure functions and small accumulators of logged events.

The same code serves live daemons, the simulator and later analysis. A value
that does not exist (no packets, no frames) is None, never 0. Times are seconds
of one clock; windows are half-open [a, b). Nothing here grows with the length
of a run: what a percentile needs is kept in `samples.Samples`.
"""
