"""A small Python language host for the Pulumi engine, for machines without the official one.

It runs programs, policy packs and plugins from source, lists their packages and installs their dependencies. It does
not generate code, attach debuggers, run type checkers or drive poetry: for those, install the official Pulumi.
"""
