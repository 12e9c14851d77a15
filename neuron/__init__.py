"""The domain: Neuron hardware, image lines, models, and the arithmetic that follows from them.

Plain Python: no Pulumi, no Kubernetes client, no cloud calls. Each fact stands here once, with its source.
"(src)" in a docstring means the measurements summarised in docs/measurements.md.
"""
