"""Hostile input made at random, and the promises that the library keeps on it.

``case`` holds what one case found, ``forms``, ``matrices`` and ``points`` make input,
``oracles`` measures results in plain NumPy and SciPy, and the other files check the
promises of one part of the library each. ``tests/campaign.py`` runs them.
"""
