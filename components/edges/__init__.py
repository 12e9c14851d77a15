"""The kinds of edge: pure builders, one a file, and the plan that they share."""
