"""IAM policies of least privilege: what a preview asks of AWS, and what an update does there."""
