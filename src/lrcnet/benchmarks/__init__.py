"""Benchmarks of speed, latency, memory and scaling, each measured together with a rival in the same run.

A benchmark is a function `measure() -> list[Measurement]`, registered as an entry point of the group
`lrcnet.benchmarks`.
"""
