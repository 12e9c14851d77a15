"""`make load-test`: load on a model server's own interface, beside what the source of this project measured.

Runs in an environment of its own (requirements-load-test.txt), so that the program's has no load tool; docs/adr has why
this one.
"""
