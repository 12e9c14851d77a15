"""A stand-in for Pulumi's eks plugin: its Cluster, made of the same aws resources as the real one's."""
