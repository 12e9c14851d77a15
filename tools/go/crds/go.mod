// Pins the Go modules whose CustomResourceDefinition files the control plane installs (tools/control_plane/crds.py).
// Nothing is compiled here: keep it from `go mod tidy`.
module neuron-serving/tools/crds

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
