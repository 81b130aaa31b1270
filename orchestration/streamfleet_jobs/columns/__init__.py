"""Pure functions over columns: hashes, partitioners, digests. Arrow and numpy only; both engines and Spark's workers call them."""
