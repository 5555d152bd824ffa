"""The contract between the collectors and the dashboard: what a run's tables are (`schema`) and how they are kept (`store`)."""
