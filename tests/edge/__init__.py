"""The edges with real programs on loopback: Envoy Gateway's translator, Envoy, nginx; the server is a stand-in."""
