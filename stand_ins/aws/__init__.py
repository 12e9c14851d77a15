"""A stand-in for Pulumi's aws plugin. It keeps no state: what a resource is follows from its URN and inputs."""
