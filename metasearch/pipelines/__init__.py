"""What the commands do, a file or folder for each."""
