"""What runs and studies leave behind, read back, compared and summed up. Never imports torch."""
