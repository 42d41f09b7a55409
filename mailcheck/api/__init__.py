"""The JSON spellings: values to shapes and parameters to values, once for every skin."""
