"""What all collectors share: the plan, verification, rounds and statistics, and how a recording becomes a run."""
