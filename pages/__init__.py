"""The screens: they read, lay out and send. One file a screen."""
