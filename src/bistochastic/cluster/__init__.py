"""Clustering by doubly stochastic graphs."""
