"""What AWS says before anything is made: boto3 look-ups with typed results, one theme a file.

What a look-up finds wrong in the stack file is a ConfigurationError with the path that it was given. What keeps AWS
from answering (credentials, permissions, network) is an AwsError. Both are one line a fault.
"""
