"""Judges against physicians, physicians against one another, and several judges as one."""
