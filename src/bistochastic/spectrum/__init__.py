"""The embedding F of a doubly stochastic graph."""
