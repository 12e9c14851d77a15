"""Look-ups over real HTTP against a stand-in for AWS: moto, with AWS's own documents where moto has none."""
