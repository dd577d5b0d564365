"""The trail of a study: what is told, the hashes that bind it, the triggers that keep it, and the proof that nothing was changed."""
