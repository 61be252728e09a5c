"""The suite that re-runs the paper *Liquid Resistance Liquid Capacitance Networks*, built on the library `lrcnet`."""
