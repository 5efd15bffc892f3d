"""What mercer is compared with."""
