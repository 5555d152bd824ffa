"""What happens inside a kernel, by experiment: its PTX is altered, assembled and run beside the original."""
