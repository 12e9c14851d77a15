// The Kubernetes provider of pulumi-kubernetes, whose own main package embeds files that its Go module does not carry.
// The build puts the module's schema.json, with the version that requirements.txt pins, beside this file.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
