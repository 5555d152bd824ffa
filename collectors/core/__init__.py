"""Code that all collectors share: plan, verification, rounds, statistics, and the writing of runs."""
