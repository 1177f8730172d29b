"""Where the processes of cells run: on this machine, in Slurm, on a Ray cluster. One a file, by its name."""
