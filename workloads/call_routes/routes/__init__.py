"""The routes, a module each. Packages are imported where a route starts, so that listing the workload needs none of them."""
