"""An app's topology as a lock, made in a confined child process; two locks compared, with a verdict and a price."""
