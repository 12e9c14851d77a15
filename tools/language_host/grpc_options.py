"""gRPC settings for servers and channels that talk to the engine."""

# The engine sends whole stacks in one message; gRPC's own limit is 4 MiB.
GRPC_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
