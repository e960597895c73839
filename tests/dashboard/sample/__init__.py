"""An area with one page of each kind, by which the frame is tested."""
