"""A second, independent oracle of right results: XLA on the CPU, through JAX; scripts/oracle runs it, docs/oracle.md explains it."""
