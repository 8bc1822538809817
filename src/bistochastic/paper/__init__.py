"""The paper's experiments: what it claims, and the same done again."""
