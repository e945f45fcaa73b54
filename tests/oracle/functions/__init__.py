"""The test set: each file registers named JAX functions (cases.case)."""
