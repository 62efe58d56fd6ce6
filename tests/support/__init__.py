"""What tests of the running house share."""
