// Pins the Go modules whose CustomResourceDefinition files the control plane installs (tools/control_plane/crds.py).
// Nothing is compiled here: keep it from `go mod tidy`.
module neuron-serving/tools/crds

go 1.26.6

require (
	github.com/aws/karpenter-provider-aws v1.14.1
	github.com/envoyproxy/gateway v1.9.0
	github.com/kedacore/keda/v2 v2.20.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.6.3
)
