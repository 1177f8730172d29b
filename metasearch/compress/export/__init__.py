"""Encoders in forms that other programs run: stock models, ONNX graphs, word vectors, shorter vectors."""
