"""How many threads or processes a number of jobs stands for."""

from joblib import cpu_count, effective_n_jobs


def workers(n_jobs: int | None) -> int:
    """Return so many as scikit-learn counts them, at most one for each processor."""
    return min(int(effective_n_jobs(n_jobs)), max(1, int(cpu_count())))
