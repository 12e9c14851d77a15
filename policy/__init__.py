"""The policy pack: what a stack must not do, judged on any program's Kubernetes and AWS resources.

`values` reads properties in which unknown values may stand, `manifests` and `workloads` find the pod templates,
`rules` holds one rule a file, and `rule` makes the SDK's policy objects of them.
"""
