"""Benchmarks: programs that measure and print, `python -m streamd.bench.NAME`.

They judge nothing that depends on the speed of the machine.
"""
