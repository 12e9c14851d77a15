"""The policy pack: what a stack must not do, judged on any program's Kubernetes and AWS resources.

`values` reads properties in which unknown values may stand, `manifests` and `workloads` find the pod templates. What
several rules ask (which nodes, which images, which autoscalers, which buckets) is a module each. `rules` holds one rule
a file, `rule` says what a rule is, `exceptions` what excuses its violations, `policies` makes the SDK's policy objects
of them, and `decoding` keeps the SDK from reading each resource anew for each of them. docs/policies has a page a rule.
"""
