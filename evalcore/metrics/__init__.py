"""One file a question: DataFrame in, DataFrame out."""
