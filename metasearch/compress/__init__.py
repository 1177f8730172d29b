"""Smaller encoders: students made from an assistant, what they weigh, and stock models made from them again."""
