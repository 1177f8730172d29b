"""Prepares a parallel corpus: reads, cleans and tokenises it once, in several processes, into files of shards."""
