"""The Marcus mapping: when it exists and five ways to compute it."""
